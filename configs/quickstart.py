"""PRIME on chains of digit operations: six CPU minutes from start to curves.

  rlx train quickstart workdir=/tmp/rlx/quickstart
  rlx train quickstart:smoke workdir=/tmp/rlx/smoke

The start is configs/models/chain, made by configs/sft_chain.py on chains of 4 to 7
operations with noisy steps; here they have 5 to 8.
"""
from rlx.configs import base


def get_config(arg=""):
  c = base.get_config()
  c.steps = 100
  c.prompts.options = dict(size=20000, n_min=5, n_max=8, ops="Mm")
  c.prompts.per_step, c.prompts.max_tokens = 32, 18
  c.rollouts.per_prompt, c.rollouts.max_tokens = 8, 18
  c.rollouts.chunk = c.rollouts.bucket = 18
  c.rollouts.step_separator = ";"
  c.rollouts.filter_groups.low, c.rollouts.filter_groups.high = 0.1, 0.9
  # "failed", as in the recorded runs: 6 groups in 100 steps, at the end, none before.
  c.rollouts.max_draws, c.rollouts.fill = 4, "failed"
  c.learner.optimizer.lr = c.prm.optimizer.lr = 5e-4
  # Completions are 8 to 16 tokens, not thousands: with the paper's 0.05 the PRM
  # would have to move every token by nats before its logit says anything.
  c.prm.beta = 0.5
  # Until the PRM has something to say, the normaliser must not make it louder.
  c.rewards.process.floor = 0.5
  c.eval.prompts, c.eval.batch = 512, 512
  return base.sized(c, arg)


def grpo(arg=""):
  """The quickstart's task with GRPO: one reward, the verdict, and no filter by accuracy.

  The base of most configs in configs/papers/, which change what their paper changes.
  """
  c = get_config(arg)
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  return c


def ppo(arg="", *, lam=0.95):
  """As `grpo`, with a value model that learns at the policy's rate, and whitened GAE."""
  c = grpo(arg)
  c.advantages = dict(total=dict(name="temporal.gae", gamma=1.0, lam=lam), whiten=True)
  c.value.optimizer.lr = c.learner.optimizer.lr
  return c
