"""Verdicts alone on tasks whose right completions may have any number of steps.

  rlx sft free_length:chase-clean workdir=runs/clean/chase
  rlx sft free_length:chase-sft workdir=runs/starts/chase
  rlx sft free_length:walk-sft workdir=runs/starts/walk
  rlx train free_length:walk workdir=DIR

The argument is walk or chase, also with -sft, -clean and -smoke. experiments/prime/free_length.py
has the tasks; experiments/prime/length.py compares advantages on them. Initial models make
systematic mistakes, take redundant steps and answer early or late. All values are ours.
"""
from rlx.configs import base, quickstart, sft_chain

# Tokens of a prompt and of a completion; mistakes, see `trace`.
TASKS = dict(walk=dict(prompt=4, completion=24, wrong=0.75, confused=0.5, redundant=0.15),
             chase=dict(prompt=23, completion=20, wrong=0.75, confused=0.8, redundant=0.1))


def get_config(arg=""):
  words = arg.split("-")
  is_clean, is_sft = "clean" in words, "sft" in words or "clean" in words
  name, size = base.variant("-".join(w for w in words if w not in ("sft", "clean")), tuple(TASKS))
  task = TASKS[name]
  c = sft_chain.get_config(size) if is_sft else quickstart.grpo()
  c.steps = 120
  c.prompts.source, c.prompts.dataset = "generated", f"experiments.prime.free_length:{name}"
  with c.prompts.ignore_type(): c.prompts.options, c.prompts.columns = dict(size=4000), {}
  c.prompts.max_tokens = task["prompt"]
  c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = task["completion"]
  c.rollouts.step_separator = ";"
  c.eval.answer = "#(.*)"
  if is_sft:
    c.sft.fresh.alphabet = "0123456789abcdefghijklmnopqrstuvwxyz;#|>="
    c.sft.target = dict(
        name="experiments.prime.free_length:trace", early=0.05, late=0.4,
        redundant=task["redundant"], wrong_rate=0.0 if is_clean else task["wrong"],
        confused=task["confused"])
    if not size:
      c.model.path = "runs/clean/chase/model" if name == "chase" and not is_clean else None
      c.sft.steps = 300 if c.model.path else 1500 if is_clean else 500
      c.sft.optimizer.total_steps = c.sft.steps
    return c
  c.model.path = f"runs/starts/{name}/model"
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=True)
  c.prompts.per_step, c.rollouts.per_prompt = 8, 4
  c.learner.optimizer.lr, c.prm.optimizer.lr = 3e-4, 5e-5
  c.learner.pack = False  # Batches this small would compile a program for most packing plans.
  c.eval.every, c.eval.prompts, c.eval.batch, c.eval.final_samples = 0, 48, 48, 2
  c.checkpoint.every = c.steps
  return base.sized(c, size)
