"""From Verifiable Dot to Reward Chain: Harnessing Verifiable Reference-based Rewards for
Reinforcement Learning of Open-ended Generation (arXiv:2601.18533).

The reward is how well the key points of a reference occur in its order, and a term for the
style.

  rlx train papers/rlvrr workdir=DIR model.path=MODEL
  rlx train papers/rlvrr:smoke workdir=DIR model.path=MODEL

Letters beside the values: C taken from the released code (YJiangcm/RLVRR, reward_fn.py), O our
choice. Differences from the paper: its checks of style are programs that a model writes for
each prompt, here the length alone is checked; key points are those of made facts and not found
by a model.

The figure of CLAIMS is that of the abstract.

Confidence in the formula: high.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "does better than supervised training with ten times the data and than reward models",
)


def get_config(arg=""):
  c = domains.grpo(arg, "facts", "Reply with the facts that lead to the answer, in their order.",
                   verifier="coverage.points")                                                # C
  c.verifier.scores = ("format.length",)                                                      # O
  c.rewards = dict(content=dict(name="outcome.verdict", coef=1.0),                            # C
                   style=dict(name="outcome.score", coef=1.0))                                # C
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                            # O
  return c
