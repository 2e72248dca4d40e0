"""A pool has 400 pairs, of which a quarter have the wrong label (environments/preferences.py). One
network learns 50 verified pairs, all with the right label, and another one, the judge, 50 more. As
in the config, a network then learns the pairs of the pool whose label both of them share, and those
that both contradict the other way round; in a second round, that network stands in for the first
one. The rivals learn the whole pool as it is labelled, or the pool and all verified pairs. All
networks of an arm have the same rate.

The measure is the accuracy on new pairs, which are ordered by the gold score.
"""
import functools

import jax
import jax.numpy as jnp

from experiments.claims.environments import learn, preferences as environment
from rlx.evals import preferences
from rlx.losses import reward_model

MEASURE = "accuracy with pairs that two rounds curate minus that with all pairs"
MARGIN, RATE = 0.01, 0.01
FIRST = ("not recorded", "this is the first version; its outcomes are those of the rows")
POOL, VERIFIED = 400, 50


def agreed(chosen_NM, rejected_NM):
  """Returns keep_N, with the options of the config, on the host."""
  return preferences.keep_agreed(chosen_NM, rejected_NM).astype("int32")


def curated(models, pairs):
  """Returns the pairs of the pool as two models leave them."""
  sides = [jnp.stack(s, axis=1) for s in zip(*(environment.scores(m, pairs) for m in models))]
  keep_N = jax.pure_callback(agreed, jax.ShapeDtypeStruct(pairs.valid_N.shape, jnp.int32), *sides,
                             vmap_method="sequential")
  is_swapped_N1 = keep_N[:, None] < 0
  return environment.Pairs(jnp.where(is_swapped_N1, pairs.rejected_ND, pairs.chosen_ND),
                           jnp.where(is_swapped_N1, pairs.chosen_ND, pairs.rejected_ND),
                           keep_N != 0)


def scores(seed, rate, *, kind):
  """Returns the scores of new pairs, of the better ones and of the worse ones."""
  keys = jax.random.split(jax.random.key(seed), 5)
  data = environment.drawn(keys[0], labelled=POOL, verified=2 * VERIFIED)
  fit = lambda key, pairs: environment.fit(key, pairs, rate, reward_model.bradley_terry)
  if kind == "curated":
    model, judge = (fit(key, jax.tree.map(lambda x: x[part], data.verified))
                    for key, part in ((keys[1], slice(VERIFIED)), (keys[2], slice(VERIFIED, None))))
    for key in keys[3:]: model = fit(key, curated((model, judge), data.labelled))
  else:
    pairs = data.labelled if kind == "all" else jax.tree.map(
        lambda *x: jnp.concatenate(x), data.labelled, data.verified)
    model = fit(keys[4], pairs)
  return environment.scores(model, data.new)


def arms():
  return {name: learn.arm(functools.partial(scores, kind=kind), environment.accuracy)
          for name, kind in (("curated", "curated"), ("the whole pool", "all"),
                             ("the pool and the verified pairs", "with verified"))}
