"""Solutions have six steps, each of which is wrong with a probability of one in ten. A right step
brings the solution nearer to its answer, a wrong one multiplies the chance of success by about 0.4:
the solver may still notice it. The chances, of hard prompts lower ones, are estimated from eight
rollouts at the start and after each step.

A logistic PRM learns labels of steps from these estimates: right if the chance is at least 0.8
times that of the step before, or if it is above 0. Its features are noisy signs of whether a step
is right, the difficulty of the prompt and the position. The F1 of first errors is measured.
Rationales are left out.
"""
import jax
import jax.numpy as jnp
import optax

from experiments.claims.environments import learn, steps, tabular
from rlx.evals import step_errors
from rlx.losses import reward_model
from rlx.rewards import step_labels

MEASURE = "the F1 of first errors with relative labels minus that with absolute ones"
MARGIN, RATE = 0.05, 1.0
FIRST = ("not seen", None)
SOLUTIONS, STEPS, ROLLOUTS = 500, 6, 8


def solutions(key, sign):
  """(features_BJD, is_right_BJ, difficulty_B1)."""
  keys = jax.random.split(key, 3)
  is_right_BJ = jax.random.bernoulli(keys[0], 0.9, (SOLUTIONS, STEPS))
  difficulty_B1 = jax.random.uniform(keys[1], (SOLUTIONS, 1))
  return steps.signs(keys[2], is_right_BJ, difficulty_B1, sign), is_right_BJ, difficulty_B1


def labels(key, is_right_BJ, difficulty_B1, hard, kept, kind):
  """Labels [B, J] from estimates of the chance of success."""
  made_BU = jnp.arange(STEPS + 1)[None]  # Steps that are made, from none to all.
  wrong_BU = jnp.pad(jnp.cumsum(~is_right_BJ, axis=1), ((0, 0), (1, 0)))
  chance_BU = (1 - hard * difficulty_B1) ** (STEPS - made_BU) * kept**wrong_BU
  values_BU = jax.random.binomial(key, ROLLOUTS, chance_BU) / ROLLOUTS
  return step_labels.from_values(
      values_BU[:, 1:], jnp.ones(is_right_BJ.shape, bool), values_BU[:, 0], kind=kind)


def arms():
  def f1(kind):
    def run(seed, rate):
      keys = jax.random.split(jax.random.key(seed), 4)
      sign, *rest = tabular.around(keys[0], (0.5, 0.3, 0.4))
      x_BJD, *known = solutions(keys[1], sign)
      labels_BJ = labels(keys[2], *known, *rest, kind)
      new_BJD, right_BJ, _ = solutions(keys[3], sign)
      weights_D = learn.descend(jnp.zeros(x_BJD.shape[2]), lambda weights_D, _: reward_model.bce(
          (x_BJD @ weights_D).ravel(), labels_BJ.ravel(), jnp.ones(labels_BJ.size, bool)),
                                optax.sgd(rate), steps=300)
      return new_BJD @ weights_D, step_labels.first_error(
          1.0 * right_BJ, jnp.ones(right_BJ.shape, bool))

    return learn.arm(run, lambda *one: step_errors.tune(*one, count=41)[1])
  return {"relative": f1("relative"), "absolute": f1("hard")}
