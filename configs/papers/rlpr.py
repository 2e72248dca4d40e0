"""RLPR: Extrapolating RLVR to General Domains without Verifiers (arXiv:2506.18254):
GRPO on the mean probability of the reference answer after the reasoning.

  rlx train papers/rlpr workdir=DIR
  rlx train papers/rlpr:smoke workdir=DIR

C (code) OpenBMB/RLPR, prob.py and reproduce_qwen.sh. Without its format reward
(weight 0.1); its filter of prompts by their rewards' spread is ema_std_filter.py. The
answer is one token here: the mean is that token's probability.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "mean probability is more stable than product or log-prob; taking the base off helps",
    "beats VeriFree by 7.6 points on TheoremQA and 7.5 on Minerva",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.likelihood.separator, c.likelihood.max_tokens = "#", 1  # the answer is one digit
  c.rewards.outcome = dict(
      name="likelihood.reference", coef=1.0, agg="mean_p", baseline="diff",
      post="clip01")  # C
  c.learner.loss.clip_low, c.learner.loss.clip_high = 0.2, 0.27  # C
  c.learner.minibatches = 4                       # clipping acts off-policy only
  return c
