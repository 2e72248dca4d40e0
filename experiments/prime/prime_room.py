"""How much can dense rewards gain? Exact advantages of steps against verdicts alone.

The tasks are those of configs/step_tasks.py. The exact advantage of a step is the change of the
chance of success of continuations that make mistakes in 10% of their steps
(`experiments.prime.step_tasks:chances`). No policy can collect it by writing more or fewer steps:
the changes of a completion add up to its verdict less the chance at the start.

What is measured, fixed before the runs, with the same seeds 0 to 4 in all arms:

- accuracy over the run: the mean of rollouts/accuracy over all steps, `exact` less the better of
  `outcome` and `outcome-band`;
- steps until the mean of rollouts/accuracy over five steps is 0.5 (chain, lookup) or 0.15 (sums),
  60 where it never is, as a ratio to that arm.

A task has room for dense rewards if the first is at least 0.15 or the second at most 1/2. The arm
`exact-summed` has the same rewards, but each step gets the sum of its own and all later ones, as
the published estimator of PRIME sums a PRM's rewards: the verdict less the chance before the step.
That chance is not the policy's, so it is a baseline, but not the best one.

  rlx grid experiments/prime/prime_room.py
  rlx grid experiments/prime/prime_room.py:whitened \\
      --out runs/prime_room_whitened
  rlx plots runs/prime_room --metrics rollouts/accuracy
"""
from configs import step_tasks
from rlx.grids import grid as grids

TASKS = [{"arm": name, "config": f"configs/step_tasks.py:{name}"} for name in step_tasks.TASKS]
SEEDS = [{"seed": s} for s in range(5)]

BAND = {"rollouts.filter_groups": dict(name="filter_groups.accuracy_band", low=0.1, high=0.9),
        "rollouts.max_draws": 4}


def exact(gamma=0.0):
  """Exact advantages of steps.

  Args:
    gamma: 0: each step has its own change as advantage; 1: the sum of its own and all later
      changes, which is the verdict less the chance of success before the step.
  """
  own_steps = dict(name="experiments.prime.step_tasks:own_steps", gamma=gamma)
  return {"verifier.steps": "experiments.prime.step_tasks:chances",
          "rewards": dict(process=dict(name="experiments.prime.step_tasks:gains", coef=1.0)),
          "advantages": dict(process=own_steps, whiten=False)}


ARMS = [
    {"arm": "outcome"},
    {"arm": "outcome-band"} | BAND,
    {"arm": "exact"} | exact(),
    {"arm": "exact-summed"} | exact(gamma=1.0),
]


def grid():
  return grids.product(SEEDS, TASKS, ARMS)  # The first seed of all arms comes first.


def whitened():
  """Added after the results of `grid`: summed rewards whose advantages are whitened, as those of
  `outcome` are. Whitening subtracts the mean, which is below 0 where the chances are too high."""
  summed = exact(gamma=1.0)
  arm = {"arm": "exact-summed-whitened"} | summed | {
      "advantages": summed["advantages"] | dict(whiten=True)}
  return grids.product(SEEDS, TASKS, [arm])

