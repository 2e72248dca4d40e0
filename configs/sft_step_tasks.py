"""Initial models for configs/step_tasks.py: decoders that get some of the steps right.

  rlx sft sft_step_tasks:lookup workdir=runs/clean/lookup
  rlx sft sft_step_tasks:lookup-noisy workdir=runs/starts/lookup
  rlx sft sft_step_tasks:lookup-right workdir=runs/right/lookup

The first command trains on right completions for 1500 steps. The second one continues for 200
steps (confused tasks: 400) on completions with wrong steps, so that the model gets a known share of
its steps wrong. The third one trains an initial model of configs/prime_steps.py for 200 steps on
those of its own completions in runs/prm/lookup that are right
(experiments/prime/prime_gain.py).
"""
from rlx.configs import base, prime_steps, sft_chain, step_tasks


def get_config(arg=""):
  words = arg.split("-")
  is_noisy, is_right = "noisy" in words, "right" in words
  name, size = base.variant("-".join(w for w in words if w not in ("noisy", "right")),
                            tuple(step_tasks.TASKS))
  c = sft_chain.get_config(size)
  task = prime_steps.get_config(name) if is_right else step_tasks.get_config(name)
  c.prompts, c.rollouts = task.prompts, task.rollouts
  of = step_tasks.TASKS[name]
  c.sft.fresh.alphabet = ("abcdefghijklmnopqrstuvwxyz=;#" if of.get("dataset") == "reverse"
                          else "0123456789Mm+-*=;#|>")
  c.sft.target = dict(name="experiments.prime.step_tasks:trace", wrong_rate=0.0, confused=0.0)
  if is_noisy:
    c.model.path = f"runs/clean/{name}/model"
    c.sft.target.update(wrong_rate=of["wrong"], confused=of.get("confused", 0.0))
  if is_right:
    c.model.path, c.sft.target = task.model.path, dict(name="jsonl.demonstration")
    c.prompts.source, c.prompts.dataset = f"jsonl:runs/prm/{name}/{{split}}.jsonl", "jsonl"
    with c.prompts.ignore_type(): c.prompts.options, c.prompts.columns = {}, {}
  if not size:
    c.sft.steps = 400 if is_noisy and "confused" in of else 200 if is_noisy or is_right else 1500
  c.sft.optimizer.total_steps = c.sft.steps
  return c
