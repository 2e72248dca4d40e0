"""PRIME with step rewards: the PRM is trained first, and a step's advantage is its own reward.

  rlx train prime_steps:confused_chain workdir=DIR
  rlx train prime_steps:confused_chain-outcome workdir=DIR     # verdicts alone

The argument is a name of STARTS, also with -outcome, -prm (the config of the PRM's training) and
-smoke. Commands run in the root of the repository. Initial model and PRM of confused_chain are in
configs/models; these commands made them, and make those of confused_lookup:

  rlx sft sft_step_tasks:confused_chain workdir=runs/clean/confused_chain
  rlx sft sft_step_tasks:confused_chain-noisy workdir=runs/starts/confused_chain
  rlx train_scorer prime_steps:confused_chain-prm workdir=runs/prm/confused_chain seed=2
  rlx convert source=runs/prm/confused_chain to=runs/prm/confused_chain/model model=prm

The initial model of lookup gets 30% of the steps wrong at random (sft_step_tasks:lookup-noisy
workdir=runs/mild/lookup sft.target.wrong_rate=0.3). For chain, prompts and initial model are those
of the quickstart.

Differences from PRIME as published (arXiv:2502.01456); docs/prime.md measures what they gain:

- The PRM learns first, from 51,200 completions of the initial policy, and is then kept as it is.
- The advantage of a step is its own log-ratio, not the sum of its own and all later ones.
- It is bounded and has no baseline (lookup and chain: that of the same step of the other
  completions, and the difference is bounded).
- The last step, which states the answer, has only the advantage of the verdict.

A step of training has 32 completions, few enough that the noise of the gradient limits learning.
"""
from rlx.configs import base, quickstart, step_tasks

STARTS = dict(lookup="runs/mild/lookup/model", chain="configs/models/chain",
              confused_chain="configs/models/confused_chain",
              confused_lookup="runs/starts/confused_lookup/model",
              confused_carry="runs/starts/confused_carry/model",
              confused_reverse="runs/starts/confused_reverse/model")
PRMS = dict(confused_chain="configs/models/confused_chain_prm")
LEARNING_RATES = dict(confused_chain=3e-4, confused_lookup=4e-4)


def get_config(arg=""):
  words = arg.split("-")
  name, size = base.variant("-".join(w for w in words if w not in ("prm", "outcome")), tuple(STARTS))
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
  process = (dict(name="process.bounded_steps", low=-5.0, high=1.0) if name.startswith("confused")
             else dict(name="process.steps_loo", clip=1.0))
  c.advantages = dict(outcome=dict(name="group.rloo"), process=process, whiten=True)
  c.learner.optimizer.update(dict(
      lr=LEARNING_RATES.get(name, 5e-4), schedule="linear", total_steps=120))
  c.eval.samples, c.eval.prm_sets = 16, ("experiments.prime.step_tasks:right_steps",)
  if "prm" in words:
    if not size: c.steps, c.train_scorer.prompts = 200, 6400
  else:
    c.prm.path, c.prm.order = PRMS.get(name, f"runs/prm/{name}/model"), "none"
    if not size: c.steps, c.prompts.per_step, c.rollouts.per_prompt = 120, 8, 4
    c.learner.pack = False  # Batches this small would compile a program for most packing plans.
    c.checkpoint.every = c.steps
    # Verdicts alone, the mean of ten seeds.
    if name == "confused_chain": c.log.baseline = "configs/recorded/confused_chain_outcome"
  if "outcome" in words:
    c.prm.path, c.prm.order, c.log.baseline = None, "single", None
    del c.rewards.process, c.advantages.process
  return c
