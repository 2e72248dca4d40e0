"""Feedback-Driven Tool-Use Improvements in Large Language Models via Automated Build
Environments (arXiv:2508.08791). The reward of a turn balances precision and completeness of its
calls, 2 solved / (calls + 1), where a call solves a part of the question that is still open. A
turn without calls is rewarded for the answer or for its form.

  rlx train papers/ftrl workdir=DIR
  rlx train papers/ftrl:smoke workdir=DIR

The initial model is that of environments/calculator; it makes one call in each turn. Letters
beside the values: C taken from the released code (bytedance/FTRL,
Scripts/FTRL-GRPO-Qwen25.sh), O our choice.

Differences from the paper: it cuts stored episodes into turns, draws 16 replies after the same
history and takes the z-scores of what this turn earns. This config samples 8 episodes and compares
turns that happen to have the same history by what the episode earns from there on, without a
division by the standard deviation. So that calls without an answer never earn more than the right
answer, that has 1 + the number of unsolved steps, as much as if calls had solved them, instead of
the code's 1 / (1 + unsolved).

Confidence in the formula: high.
"""
from rlx.configs.environments import calculator

CLAIMS = ("a reward that balances the precision and the completeness of calls does better than "
          "either alone",)


def get_config(arg=""):
  c = calculator.get_config(f"outcome-{arg}" if arg else "outcome")
  c.environment.turn_rewards = "ftrl"  # C compute_solve_f1, but O for the right answer
  c.environment.at_once = 2
  c.episodes.turn_tokens = max(24, c.episodes.turn_tokens)  # O: two calls have up to 20 tokens
  c.rewards = dict(turns=dict(name="turns.environment", coef=1.0))  # C
  c.advantages = dict(total=dict(name="turns.prefix", gamma=1.0), whiten=False)  # O
  c.kl.coef, c.kl.kind, c.kl.place = 0.001, "k3", "loss"  # C
  c.learner.entropy_coef = 0.001  # C
  # C bytedance/FTRL Code/verl/trainer/config/ppo_trainer.yaml.
  c.learner.aggregation = "seq-mean-token-mean"
  return c
