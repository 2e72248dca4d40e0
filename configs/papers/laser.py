"""LaSeR: Reinforcement Learning with Last-Token Self-Rewarding (arXiv:2510.14943): an auxiliary
loss trains the policy to predict, by the logit of an unused token after the completion,
whether the completion is right. A tenth of the advantage comes from this prediction.

  rlx train papers/laser workdir=DIR
  rlx train papers/laser:smoke workdir=DIR

Letters beside the values: C taken from the released code (RUCBM/LaSeR, dp_actor.py,
ray_trainer.py, actor.yaml), which gives the formulas, beta_v, alpha, tau and the threshold on
the standard deviation; O our choice (the token and its c_ref). Differences from the code: the
code starts the auxiliary loss after 200 steps and the mixed advantage after 200 more; this
config has no warm-up. As in the code, the self-reward of the advantage and that of the loss
scale log-probs differently, and share c_ref: they agree at the sampling temperature 1 alone.
The paper's final weighted voting is not included.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "the self-reward tells right from wrong completions far better than the model did before, for "
    "one more logit",
    "votes weighted by the self-reward beat the majority",
    "accuracy does not suffer",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # C: groups are not filtered by their accuracy.
  c.likelihood.token, c_ref = base.part("token without use, with its log-prob")   # O
  own = dict(c_ref=c_ref, beta_v=0.1)         # C beta_v
  c.advantages = dict(outcome=dict(
      name="group.self_rewarded", tau=0.1, least_std=0.1, **own), whiten=False)  # C
  c.learner.auxiliary = dict(name="auxiliary.last_token", coef=0.1, **own)       # C alpha
  # C RUCBM/LaSeR verl/verl/trainer/config/actor/actor.yaml, which
  # verl/examples/grpo_trainer/run_qwen2_5_7b.sh does not change.
  c.learner.aggregation = "token-mean"
  return c
