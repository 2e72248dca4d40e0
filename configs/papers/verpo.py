"""VeRPO: Verifiable Dense Reward Policy Optimization for Code Generation
(arXiv:2601.03525): unit tests passed, weighted by how few pass them, beside the
verdict.

  python -m rlx.train --config=configs/papers/verpo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/verpo.py:smoke --workdir=DIR

O (ours) the weights' formula and numbers: known is that they fall with the pass
rate and with how many tests have nearly that rate. Its unit tests are here two
verifiers, one of which gives a share, and the verdict is whether the answer is
right.
"""
from configs import quickstart

PAPER = dict(
    title="VeRPO: Verifiable Dense Reward Policy Optimization for Code Generation",
    arxiv="2601.03525",
    claims=(
        "beats the reward for passing all tests and the plain share of tests passed",
    ),
    confidence="low")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.verifier.scores = ("chain.answer", "chain.step_share")  # stand in for unit tests
  c.rewards = dict(
      tests=dict(name="shaping.unit_tests", coef=1.0, weight="density", width=0.1),
      outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(tests=dict(name="group.grpo"), outcome=dict(name="group.grpo"),
                      whiten=False)                # two advantages, added
  c.rollouts.keep = dict(name="keep.everything")  # failed prompts pass some tests
  return c
