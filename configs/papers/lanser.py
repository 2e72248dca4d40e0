"""Language Server CLI Empowers Language Agents with Process Rewards (arXiv:2510.22907). The
reward of a turn is how many diagnostics its edit removes, plus a bonus if the edit is safe.

  rlx train papers/lanser workdir=DIR
  rlx train papers/lanser:smoke workdir=DIR

The policy repairs a line of code (rlx/environments/zoo/debug.py), whose diagnostics are the shown
tests that fail. The initial model is that of environments/debug.

Letters beside the values: P example of the paper's page (yifanzhang-pro.github.io/lanser-cli),
O our choice. Differences from the paper: its diagnostics are those of a language server, its
edits of files can be unsafe or have an ambiguous address, and it trains nothing; an attempt here
is safe if it has values for the shown tests, and the bonus is for becoming safe: paid for every
attempt, it would reward attempts that put off the repair. The outcome and the estimator are our
choice.

Confidence in the formula: high.
"""
from rlx.configs.environments import debug

CLAIMS = ("rewards of steps by facts of a language server align an agent with the program",)


def get_config(arg=""):
  c = debug.get_config(f"outcome-{arg}" if arg else "outcome")
  c.environment.decrease, c.environment.sound = 0.5, 0.4  # P
  c.rewards = dict(turns=dict(name="turns.environment", coef=1.0))  # P, and the outcome: O
  c.advantages = dict(total=dict(name="turns.loo", gamma=1.0), whiten=False)  # O
  return c
