"""Free Process Rewards without Process Labels (arXiv:2412.01981): a PRM learns step
rewards from outcomes.

  rlx train_prm papers/implicit_prm workdir=DIR
  rlx train_prm papers/implicit_prm:smoke workdir=DIR
  :dpo, :nca, :kto are its other losses, each with -smoke too; rlx.train runs it on
  completions sampled anew in every step. train_prm.labels=hard is the PRM of
  Monte Carlo step labels that it is compared with (experiments/prm_comparison.py).

P (paper) the losses; C (code) PRIME-RL/ImplicitPRM, loss.py and ce_trainer.py (beta
0.05, rate 5e-7, 8 completions; NCA unchecked); O (ours) beta and rate, those of the
quickstart, steps and sizes. The policy does not learn, it gives the data. best@k of
`rlx evaluate` is the paper's measure.

Confidence in the formula: high.
"""
from rlx.configs import base
from rlx.configs import quickstart

CLAIMS = (
    "beats a PRM of Monte Carlo step labels in best-of-n at a fraction of its cost",
    "cross-entropy works with one completion per prompt, where DPO cannot",
)

LOSSES = dict(ce="prm.ce", dpo="prm.dpo", nca="prm.nca", kto="prm.kto_even")


def get_config(arg=""):
  loss, size = base.variant(arg, tuple(LOSSES))
  c = quickstart.grpo(size)
  c.prm.loss = dict(name=LOSSES[loss])
  c.prm.beta = 0.5
  c.rewards = dict(process=dict(name="implicit.process", coef=1.0, granularity="step", norm="none"))
  c.advantages = dict(process=dict(name="process.reinforce"), whiten=False)
  c.learner.optimizer.lr = 0.0                    # the policy stays
  c.train_prm.prompts = 256                       # O; the paper has 33k
  c.eval.every, c.eval.prompts, c.eval.batch, c.eval.samples = 0, 256, 256, 16
  c.eval.difficulty, c.eval.prm_sets = "operations", ("chain.steps",)
  if size == "smoke":
    base.smoke(c)
    c.eval.batch, c.eval.samples = 16, 4
  return c
