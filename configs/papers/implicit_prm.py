"""Free Process Rewards without Process Labels (arXiv:2412.01981): a process reward model
(PRM) is trained on outcomes only. Its step rewards are log-ratios to a reference model.

  rlx train_scorer papers/implicit_prm workdir=DIR
  rlx train_scorer papers/implicit_prm:smoke workdir=DIR

The variants :dpo, :nca and :kto use the other losses of the paper; each also has a -smoke
variant. `rlx train` trains the PRM on completions that are sampled anew in every step.
train_scorer.labels=hard trains the PRM on Monte Carlo step labels with which the paper compares
it (experiments/prime/prm_comparison.py).

Letters beside the values: O our choice. The losses are stated in the paper. The released code
(PRIME-RL/ImplicitPRM, loss.py and ce_trainer.py) uses beta 0.05, learning rate 5e-7 and 8
completions; the NCA loss is not verified. Beta and the learning rate of this config are those
of the quickstart, and the steps and sizes are our choice. The policy is not trained; it only
generates the data. The paper's measure is best@k of `rlx evaluate`.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "beats a PRM of Monte Carlo step labels in best-of-n at a fraction of its cost",
    "cross-entropy works with one completion per prompt, where DPO cannot",
)

LOSSES = dict(ce="prm.ce", dpo="prm.dpo", nca="prm.nca", kto="prm.kto_even")


def get_config(arg=""):
  loss, size = base.variant(arg, tuple(LOSSES))
  c = quickstart.grpo(size)
  c.prm.loss = dict(name=LOSSES[loss])
  c.rewards = dict(process=dict(name="implicit.process", coef=1.0, granularity="step", norm="none"))
  c.advantages = dict(process=dict(name="process.reinforce"), whiten=False)
  c.learner.optimizer.lr = 0.0                    # the policy is not trained
  c.train_scorer.prompts = 256                       # O; the paper has 33k
  c.eval.every, c.eval.prompts, c.eval.batch, c.eval.samples = 0, 256, 256, 16
  c.eval.difficulty = base.part("difficulty", c.eval.difficulty)
  if steps := base.part("checker of steps", None): c.eval.prm_sets = (steps,)
  if size == "smoke":
    base.smoke(c)
    c.eval.batch, c.eval.samples = 16, 4
  return c
