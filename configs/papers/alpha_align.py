"""AlphaAlign: Incentivizing Safety Alignment with Extremely Simplified Reinforcement Learning
(arXiv:2507.14987).

The reward is 1 for a refusal of a harmful prompt and for an answer to a harmless one, after a
thought, and 0 otherwise. Answers to harmless prompts are also rewarded by how helpful they are.

  rlx train papers/alpha_align workdir=DIR model.path=MODEL
  rlx train papers/alpha_align:smoke workdir=DIR model.path=MODEL
  rlx train papers/alpha_align:scorer scorers.trained.path=SCORER workdir=DIR model.path=MODEL

The variant :scorer has the reward for helpfulness: the score of a reward model such as
<workdir>/scorer of `rlx train_scorer`, on the scale of the answers to the same prompt. The others
have the reward for safety alone.

Letters beside the values: P stated in the paper (the reward for refusals in the right form, by
the label of the prompt; the normalised score of helpful answers), O our choice. Differences from
the paper: the scale of the score is not verified; the prompts are made.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.bases import domains

CLAIMS = (
    "refuses harmful prompts more often, and harmless ones less often, after few steps",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("safety", "scorer"))
  c = domains.grpo(size, "decisions", "Think in <think></think> about whether the request may be "
                   "answered, then answer or refuse in <answer></answer>.", kinds=("refusal",))  # O
  c.verifier.scores = ("format.tags",)                                                        # P
  c.rewards.outcome = dict(name="outcome.stages", coef=1.0, weights=(0.0, 1.0),               # P
                           thresholds=(1.0,))
  if kind == "safety": return c
  c.verifier.scores += ("labels.answered", *base.scored_by(c, "scorer", "graded verifier"))
  # The form alone is a condition: the others are met by any score.
  c.rewards.outcome.update(weights=(0.0, 0.0, 0.0, 1.0), thresholds=(1.0, 0.0, -1e9))         # P
  c.rewards.helpful = dict(name="shaping.gated", coef=1.0, index=2, gate=1)                   # P, O
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)                            # O
  return c
