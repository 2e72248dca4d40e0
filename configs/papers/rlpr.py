"""RLPR: Extrapolating RLVR to General Domains without Verifiers (arXiv:2506.18254). The reward
of GRPO is the mean probability that the policy assigns to the tokens of the reference
answer after the completion's reasoning, so that no verifier is needed.

  rlx train papers/rlpr workdir=DIR
  rlx train papers/rlpr:smoke workdir=DIR

Letters beside the values: C taken from the released code (OpenBMB/RLPR, prob.py and
reproduce_qwen.sh).

Differences from the paper: The code adds an entropy bonus of 0.001, which this config leaves
out. The paper adds a reward for the format with a weight of 0.1; this
config leaves it out. Its filter of prompts by the spread of their rewards is in
ema_std_filter.py. In this config the answer is one token, so the mean is the probability of
that token.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "mean probability is more stable than product or log-prob; taking the base off helps",
    "beats VeriFree by 7.6 points on TheoremQA and 7.5 on Minerva",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # Prompts are not filtered by accuracy: the method needs no verdict.
  c.likelihood.separator, c.likelihood.max_tokens = base.part("mark of the answer")
  c.rewards.outcome = dict(
      name="likelihood.reference", coef=1.0, agg="mean_p", baseline="diff",
      post="clip01")  # C
  c.learner.loss.clip_low, c.learner.loss.clip_high = 0.2, 0.27  # C
  c.learner.minibatches = 4                       # Clipping has no effect on-policy.
  # C OpenBMB/RLPR verl/workers/actor/dp_actor.py, the default; examples/RLPR/reproduce_qwen.sh does
  # not set it.
  c.learner.aggregation = "token-mean"
  return c
