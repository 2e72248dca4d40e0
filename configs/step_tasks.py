"""Outcome-only RLOO on tasks whose steps have an exact chance of success.

  rlx sft sft_step_tasks:lookup workdir=runs/clean/lookup
  rlx sft sft_step_tasks:lookup-noisy workdir=runs/starts/lookup
  rlx train step_tasks:lookup workdir=DIR

The argument is a task of experiments/step_tasks.py: chain | lookup | sums, also with -smoke.
Commands run in the root of the repository. Few completions of the initial models are right, and
every step can be checked, so that dense rewards have room to help. The grids of
experiments/papers/grids/prime_room.py compare rewards on these tasks.
"""
from rlx.configs import base
from rlx.configs import quickstart

# Prompts (rows and options), tokens of a prompt and of a completion, initial models: share of
# wrong steps.
TASKS = dict(
    chain=dict(options=dict(n_min=11, n_max=13, ops="Mm"), prompt=28, completion=28, wrong=0.6),
    lookup=dict(options=dict(n_min=6, n_max=8), prompt=31, completion=18, wrong=0.5),
    sums=dict(options=dict(config=dict(chain_sum=dict(
        min_terms=5, max_terms=6, min_digits=1, max_digits=1))), prompt=14, completion=26,
        wrong=0.5))


def get_config(arg=""):
  name, size = base.variant(arg, tuple(TASKS))
  task = TASKS[name]
  c = quickstart.grpo()
  c.steps = 60
  c.model.path = f"runs/starts/{name}/model"
  c.prompts.source = "gym:chain_sum" if name == "sums" else "chain"
  c.prompts.dataset = f"experiments.step_tasks:{name}"
  c.prompts.options = dict(task["options"], size=20000)
  c.prompts.max_tokens = task["prompt"]
  c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = task["completion"]
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=True)
  c.prm.optimizer.lr = 2e-5
  c.eval.every, c.eval.prompts, c.eval.batch, c.eval.final_samples = 0, 256, 256, 2
  c.eval.answer = "#(.*)"
  c.checkpoint.every = 60
  return base.sized(c, size)
