"""Grids: PRIME and the outcome alone on the shipped environments, three seeds each.

  rlx grid experiments/prime/turns.py:calculator
  rlx plots runs/turns-calculator --baseline outcome \\
      --metrics rollouts/accuracy

The initial model is that of the config; `rlx sft environments/NAME:sft` trains it.
"""
import functools

from rlx.grids import grid as grids

def cells(name):
  """The cells of an environment."""
  path = f"configs/environments/{name}.py"
  return grids.product(
      [{"arm": "prime", "config": path}, {"arm": "outcome", "config": f"{path}:outcome"}],
      [{"seed": s} for s in range(3)])


calculator = grid = functools.partial(cells, "calculator")
search = functools.partial(cells, "search")
sql = functools.partial(cells, "sql")
game = functools.partial(cells, "game")
python = functools.partial(cells, "python")
debug = functools.partial(cells, "debug")
