"""HelpSteer2-Preference: Complementing Ratings with Preferences (arXiv:2410.01257): the loss
of a pair is multiplied by the strength of the annotators' preference.

The simulated annotators see pairs of completions with noise. The better completion is the one
that the noisy gap favours; the strength is 1, 2 or 3 by the size of the gap, for a third of the
pairs each.

A linear reward model learns from the pairs with scaled Bradley-Terry, with plain Bradley-Terry
and with the strength as a margin. The measure is the accuracy on new pairs, which are ordered
by the true gap.

Confidence in the formula: medium.
"""
import functools

import jax
import jax.numpy as jnp
import optax

from experiments.claims.environments import learn
from rlx.evals import reward_model as evaluation
from rlx.losses import reward_model

CLAIMS = ("Bradley-Terry scaled by the strength of a preference is better than plain Bradley-Terry "
          "and than the strength as a margin",
          "Bradley-Terry and regression on ratings are equally good if their data match")
MEASURE = "accuracy with scaled Bradley-Terry minus that of the rival"
MARGIN, RATE = 0.01, 0.5
FIRST = ("not seen", None)
PAIRS, SIZE = 200, 16
LOSSES = {
    "scaled": reward_model.scaled_bradley_terry,
    "plain": lambda c, r, strength_N, valid_N: reward_model.bradley_terry(c, r, valid_N),
    "margin": lambda c, r, strength_N, valid_N: reward_model.bradley_terry(
        c, r, valid_N, strength_N)}


def scores(seed, rate, loss_of):
  """Returns the scores of new pairs, of the better ones and of the worse ones."""
  keys = jax.random.split(jax.random.key(seed), 4)
  true_D = jax.random.normal(keys[0], (SIZE,)) / SIZE**0.5
  x_2ND = jax.random.normal(keys[1], (2, PAIRS, SIZE))
  gap_N = (x_2ND[0] - x_2ND[1]) @ true_D + jax.random.normal(keys[2], (PAIRS,))
  chosen_ND, rejected_ND = jnp.where(gap_N[:, None] > 0, x_2ND, x_2ND[::-1])
  strength_N = 1.0 + jnp.digitize(jnp.abs(gap_N), jnp.quantile(
      jnp.abs(gap_N), jnp.array([1 / 3, 2 / 3])))
  weights_D = learn.descend(
      jnp.zeros(SIZE), lambda w_D, _: loss_of(chosen_ND @ w_D, rejected_ND @ w_D, strength_N,
                                              jnp.ones(PAIRS, bool)), optax.sgd(rate), steps=300)
  new_2ND = jax.random.normal(keys[3], (2, 4000, SIZE))
  better_N = (new_2ND[0] - new_2ND[1]) @ true_D > 0
  return tuple(jnp.where(better_N[:, None], new_2ND, new_2ND[::-1]) @ weights_D)


def arms():
  return {name: learn.arm(functools.partial(scores, loss_of=loss_of), evaluation.pair_accuracy)
          for name, loss_of in LOSSES.items()}
