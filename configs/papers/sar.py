"""Self-Aligned Reward: Towards Effective and Efficient Reasoners (arXiv:2509.05489):
the verdict, and how much more likely the prompt makes the completion.

  rlx train papers/sar workdir=DIR
  rlx train papers/sar:smoke workdir=DIR

C (code)
amazon-science/Self-Aligned-Reward-Towards_Effective_and_Efficient_Reasoners,
SA-grpo-4B.sh (6 completions). Without a prompt a completion follows the EOS here:
there is no BOS.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "higher accuracy than GRPO with about 30% shorter completions",
    "rewards of entropy or confidence instead do harm",
)


def get_config(arg=""):
  # No filter by accuracy: the second term differs where all answers are right.
  c = quickstart.grpo(arg)
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      aligned=dict(name="likelihood.self_aligned", coef=0.2))  # C reward_factors
  c.advantages = dict(total=dict(name="group.mean_baseline"), whiten=False)  # C no std
  c.kl.coef, c.kl.place, c.kl.kind = 0.001, "loss", "k3"       # C
  c.learner.aggregation = "seq-mean-token-sum-norm"            # C
  c.learner.minibatches = 2                       # C 128 prompts in parts of 64
  return c
