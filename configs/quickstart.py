"""PRIME on chains of digit operations, which takes one to two minutes on two CPU threads.

  rlx train quickstart workdir=/tmp/rlx/quickstart
  rlx train quickstart:outcome workdir=/tmp/rlx/outcome
  rlx train quickstart:smoke workdir=/tmp/rlx/smoke

The second command has no PRM and no process rewards. A recorded run of it is the baseline in
curves.png of the first one. On this task verdicts alone are as good; docs/prime.md shows tasks on
which process rewards help.

configs/bases/toy.py has the task, the model and all sizes; base=gsm8k applies the same method to a
language model (docs/methods.md).
"""
from rlx.configs import base


def get_config(arg=""):
  name, size = base.variant(arg, ("prime", "outcome"))
  c = base.start()
  if name == "outcome":
    c.log.baseline = None
    del c.rewards.process, c.advantages.process
  return base.sized(c, size)


def grpo(arg=""):
  """Returns the base with GRPO, with the verdict as the only reward.

  No group is filtered by its accuracy. Most configs in configs/papers/ start from this config and
  change what their paper changes.
  """
  c = get_config(arg)
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  return c


def ppo(arg="", *, lam=0.95):
  """Returns `grpo` with whitened GAE and a value model, at the policy's rate or a higher one."""
  c = grpo(arg)
  c.advantages = dict(total=dict(name="temporal.gae", gamma=1.0, lam=lam), whiten=True)
  c.value.optimizer.lr = max(c.value.optimizer.lr, c.learner.optimizer.lr)
  return c
