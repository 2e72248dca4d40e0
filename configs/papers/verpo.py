"""VeRPO: Verifiable Dense Reward Policy Optimization for Code Generation
(arXiv:2601.03525).

A dense reward for the unit tests that a completion passes, each weighted by how few completions
pass it, is added to the verdict. Both rewards have their own advantages.

  rlx train papers/verpo workdir=DIR
  rlx train papers/verpo:smoke workdir=DIR

Letters beside the values: P stated in the third version of the paper (Beyond Binary: Turning
Partial Success into Dense Verifiable Rewards), O our choice. Differences from the paper: on the
toy, checks of the intermediate results stand in for unit tests; base=code has the tests of its
problems, which run once for the items and, up to the first that fails, once for the verdict. There
is only one turn.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = ("beats the reward for passing all tests and the plain share of tests passed",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: completions that fail still pass some tests.
  c.verifier.by_item = base.part("unit tests")
  c.rewards = dict(
      tests=dict(name="items.unit_tests", weight="density", alpha=2.0,  # P
                 coef=1.0, width=0.1),                                    # O
      outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(tests=dict(name="group.mean_baseline"),             # P
                      outcome=dict(name="group.mean_baseline"), whiten=False)
  return c
