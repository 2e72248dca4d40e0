"""PRIME with step rewards: the PRM is trained first, and a step's advantage is its own reward.

  rlx sft sft_step_tasks:lookup workdir=runs/clean/lookup
  rlx sft sft_step_tasks:lookup-noisy workdir=runs/mild/lookup sft.target.wrong_rate=0.3
  rlx train_prm prime_steps:lookup-prm workdir=runs/prm/lookup
  rlx convert source=runs/prm/lookup to=runs/prm/lookup/model model=prm
  rlx train prime_steps:lookup workdir=DIR

The argument is a task, lookup or chain, also with -prm (the config of the PRM's training) and
-smoke. The first two commands make the initial model, which gets 30% of the steps wrong. For chain
they are not needed: its prompts and initial model are those of the quickstart. Commands run in the
root of the repository.

Differences from PRIME as published (arXiv:2502.01456); docs/prime.md measures what they gain:

- The PRM learns first, from 51,200 completions of the initial policy, and is then kept as it is.
- The advantage of a step is its own log-ratio, not the sum of its own and all later ones.
- The baseline is the same step of the prompt's other completions.
- The advantage of a step is clipped, and the last step, which states the answer, has only that of
  the verdict.

A step of training has 32 completions, few enough that the noise of the gradient limits learning.
"""
from rlx.configs import base
from rlx.configs import quickstart
from rlx.configs import step_tasks

STARTS = dict(lookup="runs/mild/lookup/model", chain="configs/models/chain")


def get_config(arg=""):
  words = arg.split("-")
  name, size = base.variant("-".join(w for w in words if w != "prm"), tuple(STARTS))
  c = step_tasks.get_config("-".join(filter(None, (name, size))))
  if name == "chain":
    easy = quickstart.get_config(size)
    c.prompts.options, c.prompts.max_tokens = easy.prompts.options, easy.prompts.max_tokens
    for key in ("max_tokens", "chunk", "bucket"): c.rollouts[key] = easy.rollouts[key]
  c.model.path = STARTS[name]
  c.prm.beta, c.prm.optimizer.lr = 0.5, 5e-4
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      process=dict(name="implicit.process", coef=0.3, granularity="step", norm="none"))
  c.advantages = dict(outcome=dict(name="group.rloo"),
                      process=dict(name="process.steps_loo", clip=1.0), whiten=True)
  c.learner.optimizer.update(dict(lr=5e-4, schedule="linear", total_steps=120))
  c.eval.samples, c.eval.prm_sets = 16, ("experiments.step_tasks:right_steps",)
  if "prm" in words:
    if not size: c.steps, c.train_prm.prompts = 200, 6400
  else:
    c.prm.path, c.prm.order = f"runs/prm/{name}/model", "none"
    if not size: c.steps, c.prompts.per_step, c.rollouts.per_prompt = 120, 8, 4
    c.learner.pack = False  # Batches this small would compile a program for most packing plans.
    c.checkpoint.every = c.steps
  return c
