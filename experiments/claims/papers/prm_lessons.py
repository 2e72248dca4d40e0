"""Labels on which Monte Carlo values and a judge agree, against the labels of either.

Solutions have six steps; in half of the solutions all steps are wrong from some step on. The
features of a step are noisy signs of whether it is right, the difficulty of its prompt, and
its position.

One labeller estimates Monte-Carlo values from eight rollouts: on hard prompts early right
steps seem wrong, and by luck wrong steps seem right. The other labeller is a judge that is
wrong about one step in twelve. A logistic PRM is trained on the solutions for which both
labellers have the same first error, or on all solutions with the labels of one of them. The
F1 of first errors is measured.
"""
import jax
import jax.numpy as jnp
import optax

from experiments.claims.environments import learn, steps, tabular
from rlx.evals import step_errors
from rlx.losses import reward_model
from rlx.rewards import step_labels

MEASURE = "the F1 of first errors with labels of consensus minus that with labels of one labeller"
MARGIN, RATE = 0.05, 1.0
FIRST = ("not seen", "the measure took the better labeller of each seed")
SOLUTIONS, STEPS = 1000, 6


def solutions(key, sign):
  """(features_BJD, is_right_BJ, difficulty_B1)."""
  keys = jax.random.split(key, 3)
  wrong_B = jax.random.randint(keys[0], (SOLUTIONS,), 0, 2 * STEPS)  # Half have no error.
  is_right_BJ = jnp.arange(STEPS)[None, :] < wrong_B[:, None]
  difficulty_B1 = jax.random.uniform(keys[1], (SOLUTIONS, 1))
  return steps.signs(keys[2], is_right_BJ, difficulty_B1, sign), is_right_BJ, difficulty_B1


def labels(key, is_right_BJ, difficulty_B1, hard, luck, error):
  """{labeller: (labels_BJ, solutions that are learned from)}."""
  keys, mask_BJ = jax.random.split(key), jnp.ones(is_right_BJ.shape, bool)
  left_1J = STEPS - 1 - jnp.arange(STEPS)[None, :]
  chance_BJ = jnp.where(is_right_BJ, (1 - hard * difficulty_B1) ** left_1J, luck)
  sampled_BJ = step_labels.from_values(
      jax.random.binomial(keys[0], 8, chance_BJ) / 8, mask_BJ, kind="until_first_zero")
  judged_BJ = 1.0 * (is_right_BJ ^ jax.random.bernoulli(keys[1], error, mask_BJ.shape))
  all_B = mask_BJ[:, 0]
  return {"consensus": (sampled_BJ, step_labels.consensus(sampled_BJ, judged_BJ, mask_BJ)),
          "Monte-Carlo values": (sampled_BJ, all_B), "judge": (judged_BJ, all_B)}


def arms():
  def f1(labeller):
    def run(seed, rate):
      keys = jax.random.split(jax.random.key(seed), 4)
      sign, *rest = tabular.around(keys[0], (0.5, 0.5, 0.05, 1 / 12))
      x_BJD, *known = solutions(keys[1], sign)
      labels_BJ, keep_B = labels(keys[2], *known, *rest)[labeller]
      new_BJD, right_BJ, _ = solutions(keys[3], sign)
      def loss(weights_D, _):
        return reward_model.bce((x_BJD @ weights_D).ravel(), labels_BJ.ravel(),
                                jnp.repeat(keep_B, STEPS))
      weights_D = learn.descend(jnp.zeros(x_BJD.shape[2]), loss, optax.sgd(rate), steps=300)
      return new_BJD @ weights_D, step_labels.first_error(
          1.0 * right_BJ, jnp.ones(right_BJ.shape, bool))

    return learn.arm(run, lambda *one: step_errors.tune(*one, count=41)[1])
  return {name: f1(name) for name in ("consensus", "Monte-Carlo values", "judge")}
