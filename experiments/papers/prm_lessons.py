"""Solutions of six steps, half of them with an error from some step on. Steps have noisy
signs of their rightness, and their prompt's difficulty can be told.

One labeller has Monte-Carlo values of eight rollouts: hard prompts look wrong early,
luck makes wrong steps look right. The other is a judge that errs about one step in
twelve. A logistic PRM learns from the solutions on whose first error both agree, or
from all with the labels of either. It is measured by the F1 of first errors.
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.worlds import reward_models
from rlx.evals import step_errors
from rlx.losses import reward_model
from rlx.rewards import step_labels

PAPER = dict(
    title="The Lessons of Developing Process Reward Models in Mathematical Reasoning",
    arxiv="2501.07301",
    claims=(
        "labels on which Monte-Carlo values and a judge agree train a better PRM than "
        "those of either, from about 40% of the data",
        "PRMs of Monte-Carlo labels come to score outcomes",
    ),
    confidence="medium")
CLAIM = 0
MEASURE = "score F1 of first errors, labels of consensus less the better labeller alone"
SOLUTIONS, STEPS = 1000, 6


def solutions(key, count):
  """(features_BJD, is_right_BJ, difficulty_B1)."""
  keys = jax.random.split(key, 4)
  wrong_B = jax.random.randint(keys[0], (count,), 0, 2 * STEPS)  # Half of them: none.
  is_right_BJ = jnp.arange(STEPS)[None, :] < wrong_B[:, None]
  difficulty_B1 = jax.random.uniform(keys[1], (count, 1))
  signs_BJD = (jnp.where(is_right_BJ, 0.5, -0.5)[:, :, None]
               + jax.random.normal(keys[2], (count, STEPS, 8)))
  known_BJ1 = jnp.broadcast_to(difficulty_B1, is_right_BJ.shape)[:, :, None]
  place_BJJ = jnp.broadcast_to(jnp.eye(STEPS), (count, STEPS, STEPS))
  features_BJD = jnp.concatenate([signs_BJD, known_BJ1, place_BJJ], axis=2)
  return features_BJD, is_right_BJ, difficulty_B1


@jax.jit
def scores(key):
  """Of new solutions by three PRMs, and the true first errors there."""
  keys = jax.random.split(key, 4)
  x_BJD, is_right_BJ, difficulty_B1 = solutions(keys[0], SOLUTIONS)
  mask_BJ = jnp.ones(is_right_BJ.shape, bool)
  left_1J = STEPS - 1 - jnp.arange(STEPS)[None, :]
  chance_BJ = jnp.where(is_right_BJ, (1 - 0.5 * difficulty_B1) ** left_1J, 0.05)
  values_BJ = jax.random.binomial(keys[1], 8, chance_BJ) / 8
  sampled_BJ = step_labels.from_values(values_BJ, mask_BJ, kind="until_first_zero")
  judged_BJ = 1.0 * (is_right_BJ ^ jax.random.bernoulli(keys[2], 1 / 12, mask_BJ.shape))
  agree_B = step_labels.consensus(sampled_BJ, judged_BJ, mask_BJ)
  new_BJD, new_right_BJ, _ = solutions(keys[3], SOLUTIONS)

  def prm(labels_BJ, keep_B):
    def loss(weights_D):
      return reward_model.bce((x_BJD @ weights_D).ravel(), labels_BJ.ravel(),
                              (mask_BJ & keep_B[:, None]).ravel())
    return new_BJD @ reward_models.learned(
        jnp.zeros(x_BJD.shape[2]), loss, optimizer=optax.sgd(1.0))

  everything_B = jnp.ones(SOLUTIONS, bool)
  prms = (prm(sampled_BJ, agree_B), prm(sampled_BJ, everything_B),
          prm(judged_BJ, everything_B))
  return prms, step_labels.first_error(1.0 * new_right_BJ, mask_BJ)


def effects(seeds):
  found = []
  for seed in seeds:
    prms, errors_B = scores(jax.random.key(seed))
    both, sampled, judged = (step_errors.tune(
        np.asarray(s_BJ), np.asarray(errors_B), count=41)[1] for s_BJ in prms)
    found.append(both - max(sampled, judged))
  return found
