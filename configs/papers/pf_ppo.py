"""Policy Filtration in RLHF to Fine-Tune LLM for Code Generation (arXiv:2409.06957):
PPO on completions with extreme scores, where the reward model is reliable.

  rlx train papers/pf_ppo workdir=DIR
  rlx train papers/pf_ppo:smoke workdir=DIR

C (code) swtheing/PF-PPO-RLHF, train_ppo_llama.sh; O (ours) lambda and the value
model's rate. It keeps of 5 completions by weight, here of 8 the best and one other.
Its reward model is here the share of right steps. Other rule:
rollouts.select_completions.kind=best_worst

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "scores are the most reliable at their extremes; training on those has the higher pass rate",
)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # O. No filter by accuracy: RLHF has no verdict.
  c.verifier.scores = ("chain.step_share",)       # stands in for a reward model
  c.rollouts.select_completions = dict(name="select_completions.extremes", kind="best_random")  # C
  c.rewards = dict(outcome=dict(name="shaping.plain", coef=1.0, kind="linear"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # C init_kl_coef
  return c
