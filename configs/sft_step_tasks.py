"""Initial models for configs/step_tasks.py: decoders that get some of the steps right.

  rlx sft sft_step_tasks:lookup workdir=runs/clean/lookup
  rlx sft sft_step_tasks:lookup-noisy workdir=runs/starts/lookup

The first command trains on right completions for 1500 steps. The second one continues for 200
steps on completions with wrong steps, so that the model gets a known share of its steps wrong.
"""
from rlx.configs import base
from rlx.configs import sft_chain
from rlx.configs import step_tasks


def get_config(arg=""):
  words = arg.split("-")
  is_noisy = "noisy" in words
  name, size = base.variant("-".join(w for w in words if w != "noisy"), tuple(step_tasks.TASKS))
  c = sft_chain.get_config(size)
  task = step_tasks.get_config(name)
  c.prompts, c.rollouts = task.prompts, task.rollouts
  c.sft.fresh.alphabet = "0123456789Mm+-*=;#|>"
  c.sft.target = dict(name="experiments.step_tasks:trace",
                      wrong_rate=step_tasks.TASKS[name]["wrong"] if is_noisy else 0.0)
  if is_noisy: c.model.path = f"runs/clean/{name}/model"
  if not size: c.sft.steps = 200 if is_noisy else 1500
  c.sft.optimizer.total_steps = c.sft.steps
  return c
