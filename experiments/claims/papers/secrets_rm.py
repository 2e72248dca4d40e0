"""Ten networks learn from 200 pairs, of which a quarter have the wrong label
(environments/preferences.py), each from other initial weights. By the mean difference of their
scores the weakest tenth of the labels is turned round. Then a network learns all pairs with labels
that are as soft as the mean says, as in the config's variant :denoised. The rival learns the labels
as they are, by Bradley-Terry, as the ten networks do. The ten have the rate of the last one.

The measure is the accuracy on new pairs, which are ordered by the gold score.
"""
import functools

import jax
import jax.numpy as jnp

from configs.papers import secrets_rm
from experiments.claims.environments import learn, preferences as environment
from rlx.evals import preferences
from rlx.losses import reward_model

MEASURE = "accuracy with the weakest labels turned and all softened minus that with labels as given"
MARGIN, RATE = 0.01, 0.01
FIRST = ("not seen", None)
MEMBERS = 10


def curated(chosen_NM, rejected_NM):
  """Returns (keep_N, strength_N of the pairs as they are then ordered), on the host."""
  share = secrets_rm.get_config("denoised").train_scorer.curate.share
  keep_N = preferences.swap_weakest(chosen_NM, rejected_NM, share=share)
  strength_N = keep_N * preferences.measure_strength(chosen_NM, rejected_NM)
  return keep_N.astype("float32"), strength_N.astype("float32")


def scores(seed, rate, *, denoised):
  """Returns the scores of new pairs, of the better ones and of the worse ones."""
  keys = jax.random.split(jax.random.key(seed), 3)
  data = environment.drawn(keys[0])
  pairs, loss_of = data.labelled, reward_model.bradley_terry
  if denoised:
    ensemble = jax.vmap(lambda key: environment.fit(key, pairs, rate, loss_of))(
        jax.random.split(keys[1], MEMBERS))
    of_members = jax.vmap(environment.scores, in_axes=(0, None), out_axes=1)(ensemble, pairs)
    like_N = jax.ShapeDtypeStruct(pairs.valid_N.shape, jnp.float32)
    keep_N, strength_N = jax.pure_callback(
        curated, (like_N, like_N), *of_members, vmap_method="sequential")
    stays_N1 = keep_N[:, None] > 0
    pairs = pairs._replace(
        chosen_ND=jnp.where(stays_N1, pairs.chosen_ND, pairs.rejected_ND),
        rejected_ND=jnp.where(stays_N1, pairs.rejected_ND, pairs.chosen_ND))
    loss_of = lambda chosen_N, rejected_N, valid_N: reward_model.soft_bradley_terry(
        chosen_N, rejected_N, strength_N, valid_N)
  return environment.scores(environment.fit(keys[2], pairs, rate, loss_of), data.new)


def arms():
  return {name: learn.arm(functools.partial(scores, denoised=denoised), environment.accuracy)
          for name, denoised in (("denoised", True), ("labels as given", False))}
