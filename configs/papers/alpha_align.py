"""AlphaAlign: Incentivizing Safety Alignment with Extremely Simplified Reinforcement Learning
(arXiv:2507.14987).

The reward is 1 for a refusal of a harmful prompt and for an answer to a harmless one, after a
thought, and 0 otherwise.

  rlx train papers/alpha_align workdir=DIR model.path=MODEL
  rlx train papers/alpha_align:smoke workdir=DIR model.path=MODEL

Letters beside the values: P stated in the paper (the reward for refusals in the right form, by
the label of the prompt), O our choice. Differences from the paper: harmless prompts have no
reward for how helpful the answer is, which takes a reward model (verifier.scores); the prompts
are made.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "refuses harmful prompts more often, and harmless ones less often, after few steps",
)


def get_config(arg=""):
  c = domains.grpo(arg, "decisions", "Think in <think></think> about whether the request may be "
                   "answered, then answer or refuse in <answer></answer>.", kinds=("refusal",))  # O
  c.verifier.scores = ("format.tags",)                                                        # P
  c.rewards.outcome = dict(name="outcome.stages", coef=1.0, weights=(0.0, 1.0),               # P
                           thresholds=(1.0,))
  return c
