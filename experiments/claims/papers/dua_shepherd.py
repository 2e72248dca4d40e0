"""Solutions have six steps. A wrong step multiplies the chance of success by about 0.4: the solver
may still notice it. A right step may be a detour, which multiplies it by about 0.6. People label
the first wrong step, one label of a step in twenty is mistaken; eight rollouts after each step say
whether it still leads to the answer.

Two linear PRMs of the same features learn one kind of label each: noisy signs of whether a step is
right and of whether it is no detour, the mean of these over the steps before, the difficulty of the
prompt and the position. The first arm scores a step by the product of their probabilities, as the
config's head does. Measured is the mean of the two figures of the claim, best of 8 by the least
step and the F1 of first errors on new solutions. That both heads share a network is left out.

Against correctness alone the two figures differ in sign, at 401 thresholds of the F1: best of 8
gains 0.014 [0.004, 0.024], the F1 loses 0.039 [0.033, 0.045].
"""
import types

import jax
import jax.numpy as jnp
import optax

from configs.papers import dua_shepherd
from experiments.claims.environments import learn, steps, tabular
from rlx.evals import best_of_n, step_errors
from rlx.losses import reward_model
from rlx.models import value
from rlx.rewards import step_labels

MEASURE = "mean of best-of-8 accuracy and F1 of first errors with the product minus that with one"
MARGIN, RATE = 0.02, 1.0
FIRST = ("opposite", None)
PROMPTS, GROUP, STEPS, ROLLOUTS = 64, 8, 6, 8
SOLUTIONS = PROMPTS * GROUP


def solutions(key, sign, hard, kept, far):
  """Returns (features_BJD, is_right_BJ, chance_BJ of success after each step)."""
  keys = jax.random.split(key, 5)
  is_right_BJ = jax.random.bernoulli(keys[0], 0.9, (SOLUTIONS, STEPS))
  is_short_BJ = ~is_right_BJ | jax.random.bernoulli(keys[1], 0.9, is_right_BJ.shape)
  difficulty_B1 = jnp.repeat(jax.random.uniform(keys[2], (PROMPTS, 1)), GROUP, axis=0)
  left_1J = STEPS - 1 - jnp.arange(STEPS)[None]
  chance_BJ = ((1 - hard * difficulty_B1)**left_1J * kept**jnp.cumsum(~is_right_BJ, axis=1)
               * far**jnp.cumsum(~is_short_BJ, axis=1))
  seen_BJD = steps.signs(keys[3], is_right_BJ, difficulty_B1, sign)
  own_BJS = jnp.concatenate([seen_BJD[..., :8], steps.signs(
      keys[4], is_short_BJ, difficulty_B1, sign)[..., :8]], axis=2)
  before_BJS = (jnp.cumsum(own_BJS, axis=1) - own_BJS) / STEPS
  return jnp.concatenate([own_BJS, before_BJS, seen_BJD[..., 8:]], axis=2), is_right_BJ, chance_BJ


def labels(key, is_right_BJ, chance_BJ, error):
  """Returns (labels_BJ by people, 0 from the first wrong step on, and labels_BJ by rollouts)."""
  keys, mask_BJ = jax.random.split(key), jnp.ones(is_right_BJ.shape, bool)
  judged_BJ = is_right_BJ ^ jax.random.bernoulli(keys[0], error, is_right_BJ.shape)
  values_BJ = jax.random.binomial(keys[1], ROLLOUTS, chance_BJ) / ROLLOUTS
  return (step_labels.from_values(1.0 * judged_BJ, mask_BJ, kind="until_first_zero"),
          step_labels.from_values(values_BJ, mask_BJ, kind="hard"))


def arms():
  head = types.SimpleNamespace(score_head=dua_shepherd.get_config().train_scorer.head)
  def arm(scores_of):
    def run(seed, rate):
      keys = jax.random.split(jax.random.key(seed), 5)
      *world, error = tabular.around(keys[0], (0.5, 0.4, 0.4, 0.6, 0.05))
      x_BJD, *known = solutions(keys[1], *world)
      labels_BJ2 = jnp.stack(labels(keys[2], *known, error), axis=2)
      new_BJD, right_BJ, chance_BJ = solutions(keys[3], *world)
      def loss(weights_D2, _):
        return reward_model.bce((x_BJD @ weights_D2).ravel(), labels_BJ2.ravel(),
                                jnp.ones(labels_BJ2.size, bool))
      weights_D2 = learn.descend(jnp.zeros((x_BJD.shape[2], 2)), loss, optax.sgd(rate), steps=300)
      return (scores_of(new_BJD @ weights_D2),
              step_labels.first_error(1.0 * right_BJ, jnp.ones(right_BJ.shape, bool)),
              1.0 * jax.random.bernoulli(keys[4], chance_BJ[:, -1]))

    def measure(scores_BJ, error_B, outcome_B):
      best = best_of_n.best_of_n(best_of_n.score(scores_BJ).reshape(PROMPTS, GROUP),
                                 outcome_B.reshape(PROMPTS, GROUP))
      return (best + step_errors.tune(scores_BJ, error_B, count=41)[1]) / 2
    return learn.arm(run, measure)

  return {"product": arm(lambda x_BJ2: value.combine(head, x_BJ2)),
          "correctness": arm(lambda x_BJ2: x_BJ2[..., 0]),
          "potential": arm(lambda x_BJ2: x_BJ2[..., 1])}
