"""Configs of episodes: a tiny policy that answers an environment in turns.

The initial model learns from episodes of an expert that makes mistakes. PRIME's rewards are those of
turns; the variant `outcome` has the outcome of an episode alone.
"""
from rlx.configs import base


def get_config(arg, name, *, alphabet, environment, options, wrong_rate, turns, prompt_tokens,
               turn_tokens, observation_tokens, total_tokens, steps=60, per_step=16, lr=2e-4):
  """The config of an environment.

  Args:
    arg: prime, outcome or sft; each also as NAME-smoke.
    name: module of the environment.
    alphabet: characters of prompts, replies and observations.
    environment: the section `environment`.
    options: of the questions.
    wrong_rate: share of an expert's replies that are wrong.
    steps, per_step, lr: of the RL loop: its steps, prompts of a step, and learning rate.
  """
  if base.chosen() not in (None, "toy"): return _over_base(arg, name)
  kind, size = base.variant(arg, ("prime", "outcome", "sft"))
  c = base.get_config()
  c.model.path = None if kind == "sft" else f"configs/models/{name}"
  c.prompts.source, c.prompts.dataset = "generated", f"rlx.environments.zoo.{name}:prompts"
  c.prompts.options = dict(dict(size=4096), **options)
  c.prompts.max_tokens = prompt_tokens
  c.environment = environment
  c.episodes.turns, c.episodes.turn_tokens = turns, turn_tokens
  c.episodes.observation_tokens, c.episodes.cut_mark = observation_tokens, ";"
  c.rollouts.max_tokens = total_tokens
  c.rollouts.chunk, c.rollouts.bucket = 16, 32
  # Trajectories of one width are one program. Packed ones, of up to eight sizes, would be
  # compiled for longer than they save.
  c.learner.pack = False
  c.rollouts.step_separator = "<turn>"
  c.steps, c.prompts.per_step, c.rollouts.per_prompt = steps, per_step, 8
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  c.learner.optimizer.lr = c.prm.optimizer.lr = lr
  c.prm.beta = 0.5
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      process=dict(name="implicit.process", coef=0.3, granularity="step", norm="none"))
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=True,
                      process=dict(name="process.steps_loo", clip=1.0))
  c.eval.prompts, c.eval.batch, c.eval.final_samples = 256, 256, 2
  c.eval.answer = r"#(.*)"
  if kind == "outcome": del c.rewards.process, c.advantages.process
  c.sft.fresh = dict(alphabet=alphabet, d_model=96, n_layers=2, n_heads=4, n_kv_heads=2,
                     head_dim=24, d_ff=288)
  c.sft.target = dict(name=f"rlx.environments.zoo.{name}:expert", wrong_rate=wrong_rate)
  c.sft.steps, c.sft.batch = 600, 64
  c.sft.optimizer = base.optimizer(2e-3, warmup_steps=50, schedule="cosine", total_steps=600)
  if size:
    c = base.smoke(c)
    c.rollouts.max_tokens, c.rollouts.chunk = total_tokens, 8
    c.prompts.options.size = 128
    c.sft.steps, c.sft.batch = 2, 8
  return c


def _over_base(arg, name):
  """The config of the chosen base, which has an environment and a chat model of its own."""
  kind, size = base.variant(arg, ("prime", "outcome"))
  base.part(f"dialogue with the environment {name}")
  c = base.start()
  if kind == "outcome": del c.rewards.process, c.advantages.process
  return base.sized(c, size)
