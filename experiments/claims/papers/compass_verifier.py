"""A third of the texts are right, a third wrong, and a third no answers: cut off, repeating their
steps, or refusing. Two small verifiers learn from 300 texts: one says which of the three a text is,
the other one whether it is right. Both are softmax regressions on the trigrams of a text and on
what it states (environments/judges.py), and both are judged by whether they accept right texts and
reject the others. The texts are chains of operations.
"""
import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.claims.environments import judges, learn
from rlx.losses import aggregate, sft

MEASURE = ("mean over the three kinds of the share that is accepted or rejected rightly: three "
           "verdicts minus two")
MARGIN, RATE = 0.05, 0.05
FIRST = ("confirmed", None)
TEXTS = 300
WRONG, RIGHT, NONE = range(3)


def texts(seed):
  """Returns (features_NF, kind_N) of texts, of which every third is no answer."""
  rng, prompts, rows, kinds = random.Random(f"compass_verifier/{seed}"), [], [], []
  for i, (prompt, text, label) in enumerate(judges.texts(f"compass_verifier/{seed}", TEXTS)):
    if i % 3 == NONE:
      text = rng.choice((text[:len(text) // 2], text.partition(" ")[0] * 3,
                         rng.choice(judges.OPENERS) + "I cannot answer this."))
    prompts.append(prompt)
    rows.append(text)
    kinds.append(NONE if i % 3 == NONE else int(label))
  return judges.features(prompts, rows), np.array(kinds)


@functools.cache
def drawn(seed):
  """Returns (texts to learn from, new texts)."""
  return texts(f"{seed}/train"), texts(f"{seed}/test")


def fit(features_NF, label_N, rate):
  """Returns the weights [F, 3] of a softmax regression."""
  mask_N = jnp.ones(label_N.shape, bool)
  def loss(weights_FC, _):
    logps_NC = jax.nn.log_softmax(features_NF @ weights_FC)
    logps_N = jnp.take_along_axis(logps_NC, label_N[:, None], axis=1)[:, 0]
    return aggregate.mean(sft.nll(logps_N[:, None], mask_N[:, None])[:, 0], mask_N)
  return learn.descend(jnp.zeros((features_NF.shape[1], 3)), loss,
                       optax.adamw(rate, weight_decay=0.01), steps=200)


def arms():
  fit_all = jax.jit(jax.vmap(fit))
  def trained(merge):
    def arm(seeds, rates):
      x_INF, kind_IN = (np.stack(x) for x in zip(*(drawn(seed)[0] for seed in seeds)))
      weights_IFC = np.asarray(fit_all(x_INF, merge(kind_IN), rates))
      return np.array([accuracy(*drawn(seed)[1], w_FC) for seed, w_FC in zip(seeds, weights_IFC)])
    return arm

  def accuracy(x_NF, kind_N, weights_FC):
    if not np.isfinite(weights_FC).all(): return np.nan
    is_good_N = (np.argmax(x_NF @ weights_FC, axis=1) == RIGHT) == (kind_N == RIGHT)
    return np.mean([is_good_N[kind_N == kind].mean() for kind in range(3)])

  return {"three verdicts": trained(lambda kind_IN: kind_IN),
          "two": trained(lambda kind_IN: np.where(kind_IN == NONE, WRONG, kind_IN))}
