"""Policy Filtration in RLHF to Fine-Tune LLM for Code Generation (arXiv:2409.06957). PF-PPO
trains PPO only on the completions of a group with extreme scores, for which the reward
model is the most reliable.

  rlx train papers/pf_ppo workdir=DIR
  rlx train papers/pf_ppo:smoke workdir=DIR
  rlx train papers/pf_ppo:scorer scorers.trained.path=SCORER workdir=DIR

The variant :scorer takes the score from a trained model with a head instead, such as
<workdir>/scorer of `rlx train_scorer`.

Letters beside the values: C taken from the released code (swtheing/PF-PPO-RLHF,
train_ppo_llama.sh), O our choice (lambda and the value model's learning rate, among others).
The paper's other rule is rollouts.select_completions.kind=best_worst.

Differences from the paper: The code samples from 5 completions by weight; this config takes
the best of 8 and one other. The paper scores with a reward model; this config uses the
share of right steps.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "scores are the most reliable at their extremes; training on those has the higher pass rate",
)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  # O. Prompts are not filtered by accuracy, because RLHF has no verdicts.
  c = quickstart.ppo(size)
  # The graded verifier stands in for a reward model.
  c.verifier.scores = base.scored_by(c, kind, "graded verifier")
  c.rollouts.select_completions = dict(name="select_completions.extremes", kind="best_random")  # C
  c.rewards = dict(outcome=dict(name="shaping.plain", coef=1.0, kind="linear"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # C init_kl_coef
  # C swtheing/PF-PPO-RLHF openrlhf_filter/models/loss.py, OpenRLHF, not verl.
  c.learner.aggregation = "seq-mean-token-mean"
  return c
