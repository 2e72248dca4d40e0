"""Low-probability Tokens Sustain Exploration in Reinforcement Learning with
Verifiable Reward (arXiv:2510.03222): a KL term towards the policy without its least likely
tokens, which are regarded as noise, keeps up the probability of the other rare tokens of wrong
completions.

  rlx train papers/lp_reg workdir=DIR
  rlx train papers/lp_reg:smoke workdir=DIR

The variants :off and :off-smoke take 8 optimizer steps per batch, as the paper's off-policy
runs do.

Letters beside the values: C taken from the released code (CarlanLark/Lp-Reg-dev,
Qwen3_14b_lp_reg_*.sh). The code uses 256 prompts per batch; this config uses the
quickstart's number. The scripts also set clip_ratio_c=10, which the code's loss does not read.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "rare tokens that lead to solutions keep their probability, and accuracy grows on",
    "average of five math benchmarks 60.17%, 2.66 above the best baseline",
    "a bonus for entropy alone lifts noise with them",
)
MINIBATCHES = dict(on=1, off=8)  # C


def get_config(arg=""):
  kind, size = base.variant(arg, tuple(MINIBATCHES))
  c = quickstart.grpo(size)  # C: the estimator
  c.distribution.min_p = 0.02  # C
  c.learner.loss = dict(name="distribution.lp_reg", fraction=0.01, kl_coef=1.0,
                        clip_low=1.0, clip_high=9.0)  # C
  c.learner.aggregation = "token-mean"  # C
  c.learner.minibatches = MINIBATCHES[kind]
  return c
