"""Solutions have six steps; in half of the solutions all steps are wrong from some step on. One
step in ten is hard: what a prompt of the judge says of it is the toss of a coin. Of other steps a
prompt is wrong about one in eight, each prompt by its own mistakes. All prompts see the same, so
that their number alone is compared.

A logistic PRM learns the labels of the majority of three prompts, as in the config, or those of the
first of them; steps behind a wrong one count as wrong. The solutions and the features are those of
prm_lessons. The F1 of first errors is measured.
"""
import jax
import jax.numpy as jnp
import optax

from configs.papers import aurora
from experiments.claims.environments import learn, tabular
from experiments.claims.papers import prm_lessons
from rlx.evals import step_errors
from rlx.losses import reward_model
from rlx.rewards import step_labels

MEASURE = "the F1 of first errors with labels of three prompts' votes minus that with one prompt's"
MARGIN, RATE = 0.05, 1.0
FIRST = ("confirmed", None)


def verdicts(key, is_right_BJ, count, hard, error):
  """Returns verdicts_KBJ of several prompts of the judge, 1 for right."""
  keys = jax.random.split(key)
  error_BJ = jnp.where(jax.random.bernoulli(keys[0], hard, is_right_BJ.shape), 0.5, error)
  mistaken_KBJ = jax.random.bernoulli(
      keys[1], jnp.broadcast_to(error_BJ, (count, *is_right_BJ.shape)))
  return 1.0 * (is_right_BJ[None] ^ mistaken_KBJ)


def arms():
  prompts = len(aurora.get_config().verifier.judges.panel.of)
  def f1(used):
    def run(seed, rate):
      keys = jax.random.split(jax.random.key(seed), 4)
      sign, hard, error = tabular.around(keys[0], (0.5, 0.1, 1 / 8))
      x_BJD, right_BJ, _ = prm_lessons.solutions(keys[1], sign)
      mask_BJ = jnp.ones(right_BJ.shape, bool)
      # With an odd number of prompts this is the majority.
      voted_BJ = jnp.median(verdicts(keys[2], right_BJ, prompts, hard, error)[:used], axis=0)
      labels_BJ = step_labels.from_values(voted_BJ, mask_BJ, kind="until_first_zero")
      new_BJD, right_BJ, _ = prm_lessons.solutions(keys[3], sign)
      weights_D = learn.descend(jnp.zeros(x_BJD.shape[2]), lambda weights_D, _: reward_model.bce(
          (x_BJD @ weights_D).ravel(), labels_BJ.ravel(), mask_BJ.ravel()),
                                optax.sgd(rate), steps=300)
      return new_BJD @ weights_D, step_labels.first_error(1.0 * right_BJ, mask_BJ)

    return learn.arm(run, lambda *one: step_errors.tune(*one, count=41)[1])
  return {"three prompts": f1(prompts), "one prompt": f1(1)}
