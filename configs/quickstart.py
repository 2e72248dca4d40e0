"""PRIME on chains of digit operations, which takes one to two minutes on two CPU threads.

  rlx train quickstart workdir=/tmp/rlx/quickstart
  rlx train quickstart:outcome workdir=/tmp/rlx/outcome
  rlx train quickstart:smoke workdir=/tmp/rlx/smoke

The second command has no PRM and no process rewards. A recorded run of it is the baseline in
curves.png of the first one. On this task verdicts alone are as good; docs/prime.md shows tasks on
which process rewards help.

The initial model is configs/models/chain. configs/sft_chain.py trained it on chains of 4 to 7
operations with noisy steps; the chains of this config have 5 to 8.
"""
from rlx.configs import base


def get_config(arg=""):
  name, size = base.variant(arg, ("prime", "outcome"))
  c = base.get_config()
  c.steps = 100
  c.prompts.options = dict(size=20000, n_min=5, n_max=8, ops="Mm")
  c.prompts.per_step, c.prompts.max_tokens = 32, 18
  c.rollouts.per_prompt, c.rollouts.max_tokens = 8, 18
  c.rollouts.chunk = c.rollouts.bucket = 18
  c.rollouts.step_separator = ";"
  c.rollouts.filter_groups.low, c.rollouts.filter_groups.high = 0.1, 0.9
  # "failed" as in the recorded runs, where it filled 6 groups in 100 steps, all at the end.
  c.rollouts.max_draws, c.rollouts.fill = 4, "failed"
  c.learner.optimizer.lr = c.prm.optimizer.lr = 5e-4
  # Completions have 8 to 16 tokens, not thousands: with the paper's 0.05 the PRM would have to
  # change the log-prob of every token by nats before its logit is informative.
  c.prm.beta = 0.5
  # The normaliser must not amplify the rewards of the PRM before it has learned anything.
  c.rewards.process.floor = 0.5
  c.eval.prompts, c.eval.batch = 512, 512
  c.log.baseline = "configs/recorded/quickstart_outcome"
  if name == "outcome":
    c.log.baseline = None
    del c.rewards.process, c.advantages.process
  return base.sized(c, size)


def grpo(arg=""):
  """Returns the quickstart's task with GRPO, with the verdict as the only reward.

  No group is filtered by its accuracy. Most configs in configs/papers/ start from this config and
  change what their paper changes.
  """
  c = get_config(arg)
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  return c


def ppo(arg="", *, lam=0.95):
  """Returns `grpo` with whitened GAE and a value model that learns at the policy's rate."""
  c = grpo(arg)
  c.advantages = dict(total=dict(name="temporal.gae", gamma=1.0, lam=lam), whiten=True)
  c.value.optimizer.lr = c.learner.optimizer.lr
  return c
