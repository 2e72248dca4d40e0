"""LaSeR: Reinforcement Learning with Last-Token Self-Rewarding (arXiv:2510.14943): the
policy learns to say, in the logit of a token that nobody uses, whether it was right,
and a tenth of the advantage is of what it says.

  rlx train papers/laser workdir=DIR
  rlx train papers/laser:smoke workdir=DIR

C (code) formulas, beta_v, alpha, tau and the gate on the std (RUCBM/LaSeR, dp_actor.py,
ray_trainer.py, actor.yaml); O (ours) the token and its c_ref, and no warm-up: there the
loss starts after 200 steps, the mix after 200 more. Without weighted voting at the end.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "the self-reward tells right from wrong completions far better than the model did before, for "
    "one more logit",
    "votes weighted by the self-reward beat the majority",
    "accuracy does not suffer",
)


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.likelihood.token = "*"                    # O an operation these chains do not have
  own = dict(c_ref=-9.7, beta_v=0.1)          # O the start says -9.7 +- 1.2; C beta_v
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(
      name="group.self_rewarded", tau=0.1, least_std=0.1, **own), whiten=False)  # C
  c.learner.auxiliary = dict(name="auxiliary.last_token", coef=0.1, **own)       # C alpha
  return c
