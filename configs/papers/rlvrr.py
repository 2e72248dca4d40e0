"""From Verifiable Dot to Reward Chain: Harnessing Verifiable Reference-based Rewards for
Reinforcement Learning of Open-ended Generation (arXiv:2601.18533).

The reward is how well the key points of a reference occur in its order, and a term for the
style.

  rlx train papers/rlvrr workdir=DIR model.path=MODEL
  rlx train papers/rlvrr:smoke workdir=DIR model.path=MODEL
  rlx train papers/rlvrr:programs workdir=DIR model.path=MODEL

In the variant :programs the style is checked by programs, each with a weight, that rows have in the
column `items` (rlx/verifiers/code_checks.py); the made facts share two.
The others check the length alone.

Letters beside the values: C taken from the released code (YJiangcm/RLVRR, reward_fn.py), O our
choice. Differences from the paper: a model writes its programs, and finds its key points; those of
made facts are known.

The figure of CLAIMS is that of the abstract.

Confidence in the formula: high.
"""
from rlx.configs import base
from rlx.configs.bases import domains

CLAIMS = (
    "does better than supervised training with ten times the data and than reward models",
)


PROGRAMS = (  # O
    dict(name="short", weight=0.5, code="def check(text):\n  return len(text.split()) <= 80"),
    dict(name="sentences", weight=0.5, code="def check(text):\n  return text.strip()[-1:] == '.'"))


def get_config(arg=""):
  kind, size = base.variant(arg, ("length", "programs"))
  c = domains.grpo(size, "facts", "Reply with the facts that lead to the answer, in their order.",
                   verifier="coverage.points")                                                # C
  c.verifier.scores = ("format.length",)                                                      # O
  c.rewards = dict(content=dict(name="outcome.verdict", coef=1.0),                            # C
                   style=dict(name="outcome.score", coef=1.0))                                # C
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                            # O
  if kind == "length": return c
  c.verifier.scores, c.verifier.by_item = (), "code_checks.items"                             # C
  c.verifier.default_items, c.verifier.workers = PROGRAMS, max(c.verifier.workers, 1)
  c.rewards.style = dict(name="items.weighted", coef=1.0, kind="sum")                         # C
  return c
