"""Knowledge Graphs are Implicit Reward Models: Path-Derived Signals Enable Compositional
Reasoning (arXiv:2601.15160).

The reward is 1 for a right answer, and half of the share of the words of the path through the
knowledge graph that the completion contains, times the share of its different sentences.

  rlx train papers/kg_path workdir=DIR model.path=MODEL
  rlx train papers/kg_path:smoke workdir=DIR model.path=MODEL

Letters beside the values: P stated in the paper (the two terms), O our choice (their weights,
the least number of words, the graph, which is made). Differences from the paper: wrong answers
have no reward below 0; its supervised start on paths of 1 to 3 facts is not here.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "trained on paths of 1 to 3 facts, questions of 4 and 5 are answered better",
)


def get_config(arg=""):
  c = domains.grpo(arg, "facts", "Say which facts lead to the answer, then on a last line the name "
                   "alone.", n_min=1, n_max=3)                                                # P
  c.verifier.scores = ("coverage.path",)                                                      # P
  c.rewards = dict(answer=dict(name="outcome.verdict", coef=1.0),                             # P
                   path=dict(name="outcome.score", coef=0.5))                                 # O
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                            # O
  return c
