"""Improve Mathematical Reasoning in Language Models by Automated Process Supervision
(arXiv:2406.06592): the first wrong step of a solution is located by binary search, with
rollouts from the prefixes.

The simulated solutions are wrong and have 16 steps, of which any may be the first wrong one.
After a right prefix each remaining step is right with probability 0.95; after a wrong prefix
one rollout in 50 reaches the answer by chance.

Binary search with 8 rollouts per prefix is compared with Math-Shepherd's hard labels from
equally many rollouts in all, distributed over all steps.

Confidence in the formula: high.
"""
import jax.numpy as jnp
import numpy as np

from rlx.rewards import step_labels

CLAIMS = ("binary search finds the first wrong step with fewer rollouts than rollouts from every "
          "step",
          "a PRM trained on these labels is better than one trained on Math-Shepherd's")
CLAIM = 0
MEASURE = ("share of first errors found by binary search minus that by hard labels, with equal "
           "rollouts")
MARGIN = 0.05
FIRST = ("confirmed", None)
ILLUSTRATION = ("Both shares follow from the binomial probabilities that are chosen here: two "
                "rollouts from every step often miss an error, eight rollouts from each of four "
                "steps hardly ever do.")
STEPS, ROLLOUTS, SOLUTIONS = 16, 8, 500


def located(seed):
  rng = np.random.default_rng(seed)
  wrong_B = rng.integers(0, STEPS, SOLUTIONS)
  well, luck = rng.uniform(0.94, 0.96), rng.uniform(0.016, 0.024)
  def value(done_X, wrong_X):
    """Returns the probability that a rollout after the first `done_X` steps is right."""
    return np.where(done_X <= wrong_X, well ** (STEPS - done_X), luck)

  calls, halves_B = 0, []
  for wrong in wrong_B:
    def is_open(done):
      nonlocal calls
      calls += 1
      return rng.binomial(ROLLOUTS, value(done, wrong)) > 0
    halves_B.append(step_labels.bisect_first_error(is_open, STEPS))

  each = round(calls * ROLLOUTS / (SOLUTIONS * STEPS))  # rollouts from every step
  done_1J = np.arange(1, STEPS + 1)[None, :]
  values_BJ = rng.binomial(each, value(done_1J, wrong_B[:, None])) / each
  mask_BJ = jnp.ones(values_BJ.shape, bool)
  labels_BJ = step_labels.from_values(jnp.asarray(values_BJ), mask_BJ, kind="hard")
  every_B = np.asarray(step_labels.first_error(labels_BJ, mask_BJ))
  return np.mean(halves_B == wrong_B) - np.mean(every_B == wrong_B)


def effects(seeds):
  return {"rollouts from every step": [located(seed) for seed in seeds]}
