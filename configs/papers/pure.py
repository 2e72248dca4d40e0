"""Stop Summation: Min-Form Credit Assignment Is All Process Reward Model Needs
for Reasoning (arXiv:2504.15275). PURE takes the lowest score among the steps of a
completion as its value, in place of the sum: a softmin weighs the process rewards so that
they add up to about this minimum.

  rlx train papers/pure workdir=DIR
  rlx train papers/pure:smoke workdir=DIR
  rlx train papers/pure:scorer scorers.trained.path=SCORER workdir=DIR

The variant :scorer takes the scores of steps from a trained model with a head instead, as
probabilities, such as <workdir>/scorer of `rlx train_scorer` with labels of steps.

Letters beside the values: C taken from the released code (CJReinforce/PURE), O our choice.

Differences from the paper: A trained PRM scores the steps in the paper; this config uses
the exact checker of steps. About one in ten of the paper's prompts has a verdict; in this
config every prompt has one.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "step rewards that are summed collapse early, softmin ones train stably",
    "with verdicts on a tenth of the prompts the rest of the reward hacking is gone",
)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.grpo(size)  # C: prompts are not filtered by accuracy.
  c.verifier.steps, = base.scored_by(c, kind, "checker of steps", gives="probability")  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),      # C
      process=dict(name="steps.refine", coef=1.0, kind="softmin",
                   signed=True, temperature=0.1))          # C
  c.advantages = dict(
      outcome=dict(name="group.rloo"),                     # C
      process=dict(name="process.rloo_steps", unit="token"),  # C
      kl=dict(name="process.reinforce"),  # C: rewards to go without a baseline
      whiten=False)
  c.kl.coef, c.kl.kind, c.kl.place = 1e-3, "k1", "reward"  # C
  # C CJReinforce/PURE openrlhf/models/loss.py, OpenRLHF, not verl.
  c.learner.aggregation = "seq-mean-token-mean"
  return c
