"""The Climb Carves Wisdom Deeper Than the Summit: On the Noisy Rewards in Learning to
Reason (arXiv:2505.22653): PPO on verdicts that are inverted at random, for all completions of
a prompt at once.

  rlx train papers/noisy_rew workdir=DIR
  rlx train papers/noisy_rew:smoke workdir=DIR
  rlx train papers/noisy_rew:phrases base=gsm8k model.path=MODEL workdir=DIR

The variant :phrases is the paper's reasoning pattern reward (RPR), which verdicts do not enter. The
variant :calibrated gives it to the completions that the prompt's verifier calls wrong, where that
verifier is noisy. Both need a chat model, since the chains of the toy have no phrases.

Letters beside the values: P stated in the paper (the rate of inverted verdicts, PPO with
gamma = lambda = 1, no KL term), C taken from the released code
(trestad/Noisy-Rewards-in-Learning-to-Reason at train_rl_math_7b_orz_flip.sh), O our choice (the
value model's learning rate). Differences from the paper: the phrases are ours
(rlx/verifiers/phrases.py); its noisy reward models of open tasks have no counterpart here.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "40% of flips cost little: 72.0 against 75.9 on MATH-500 with Qwen-2.5-7B",
    "50% of flips collapse: the reward is random",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("flips", "phrases", "calibrated"))
  c = quickstart.grpo(size)  # No filter by accuracy: it would use the verdicts without noise.
  c.rewards.outcome = dict(
      name="noise.channel", coef=1.0, false_positive=0.4, false_negative=0.4,  # P 0 to 0.5
      level="group")  # C one random draw for all completions of a prompt
  if kind != "flips":
    base.part("chat model")
    c.verifier.scores = ("phrases.reasoning",)
    c.rewards.outcome = (dict(name="outcome.score", coef=1.0) if kind == "phrases" else
                         dict(name="outcome.cascade", coef=1.0, mode="addon", weight=1.0))  # C
  c.advantages = dict(outcome=dict(name="temporal.gae", gamma=1.0, lam=1.0),   # P
                      whiten=True)                 # C verl's PPO
  c.value.optimizer.lr = c.learner.optimizer.lr    # O equal to the policy's (C 5e-6 and 1e-6)
  # C trestad/Noisy-Rewards-in-Learning-to-Reason verl/verl/trainer/ppo/core_algos.py, which has no
  # other mode.
  c.learner.aggregation = "token-mean"
  return c
