"""Self-Aligned Reward: Towards Effective and Efficient Reasoners (arXiv:2509.05489).

The reward is the verdict plus a term that measures how much more likely the completion is with
its prompt than without it, by the relative difference of the two perplexities.

  rlx train papers/sar workdir=DIR
  rlx train papers/sar:smoke workdir=DIR

Letters beside the values: C taken from the released code
(amazon-science/Self-Aligned-Reward-Towards_Effective_and_Efficient_Reasoners,
SA-grpo-4B.sh). Differences from the paper: the released script samples 6 completions per
prompt, the quickstart 8. In this config the completion without its prompt follows the EOS
token, because the tokenizer has no BOS token.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "higher accuracy than GRPO with about 30% shorter completions",
    "rewards of entropy or confidence instead do harm",
)


def get_config(arg=""):
  # No filter by accuracy: the second term also differs between completions that are all right.
  c = quickstart.grpo(arg)
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      aligned=dict(name="likelihood.self_aligned", coef=0.2))  # C reward_factors
  c.advantages = dict(total=dict(name="group.mean_baseline"), whiten=False)  # C no std
  c.kl.coef, c.kl.place, c.kl.kind = 0.001, "loss", "k3"       # C
  c.learner.aggregation = "seq-mean-token-sum-norm"            # C
  c.learner.minibatches = 2                       # C 128 prompts in minibatches of 64
  return c
