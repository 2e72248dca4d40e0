"""Bag of Tricks for Inference-time Computation of LLM Reasoning (arXiv:2502.07191). Temperature and
top-p of the samples, and the rule that selects one of them, decide how much a model gains from
several samples, without any training.

  rlx train papers/bag_of_tricks base=gsm8k model.path=MODEL steps=0 workdir=DIR
  rlx doctor papers/bag_of_tricks base=gsm8k model.path=MODEL
  rlx train papers/bag_of_tricks:smoke workdir=DIR

Each pair of a temperature and a top-p is an evaluation set of the same held-out prompts, so that
one table has the accuracy of all (eval/sampled/t08_p09 is that of temperature 0.8 and top-p 0.9).
Rules of selection are functions of the samples: the majority (rlx.evals.pass_at_k.majority, which
`rlx doctor` shows), sums of scores by answer (its weights) and the highest score
(rlx.evals.best_of_n.best_of_n), of steps by their minimum, sum, last, mean or product
(rlx.evals.best_of_n.scores).

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
wordings of prompts and its searches (beam, tree) are not here; the grid is ours.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "tuning the temperature raises the accuracy of language models by up to 5%",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  for temperature in (0.6, 0.8, 1.0):                                               # O
    for top_p in (0.9, 1.0):                                                        # O
      name = f"t{temperature * 10:02.0f}_p{top_p * 10:02.0f}"
      c.eval.sets[name] = dict(
          samples=4 if arg else 16, decoding=dict(temperature=temperature, top_p=top_p))  # O
  return c
