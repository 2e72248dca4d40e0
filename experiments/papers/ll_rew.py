"""Answers (experiments/environments/answers.py) of 1 and of 64 tokens. Each token is about
twice as likely after sound reasoning, which is one reasoning in ten. Log-probs of the answer as
rewards are compared with probabilities. The optimizer is Adam, so the size of a reward does not
matter.
"""
import functools

import jax
import jax.numpy as jnp
import optax

from configs.papers import ll_rew
from experiments.environments import answers
from experiments.environments import tabular

CLAIM = 0
MEASURE = "share of sound reasonings, mean of both lengths: from log-probs minus from probabilities"
MARGIN, RATE = 0.05, 0.05
FIRST = ("confirmed", "the measure was the worse of the two lengths of each seed")
ILLUSTRATION = ("The product of 64 probabilities is close to 0 and differs between completions by "
                "orders of magnitude, whatever is learned.")


def drawn(key, tokens):
  keys = jax.random.split(key, 3)
  sound_PL, (good, other) = answers.sound(keys[0]), tabular.around(keys[1], (0.6, 0.3))
  logps_PLM = (jnp.log(jnp.where(sound_PL, good, other))[..., None]
               + 0.2 * jax.random.normal(keys[2], (*sound_PL.shape, 64)))
  return jnp.minimum(logps_PLM, -0.01)[..., :tokens], sound_PL


def arms():
  def share(agg):
    c = {agg: tabular.changed(ll_rew.get_config(), rewards__outcome__agg=agg)}
    of_lengths = [answers.arms(c, functools.partial(drawn, tokens=tokens), "value", steps=100,
                               optimizer=optax.adam)[agg] for tokens in (1, 64)]
    return lambda seeds, rates: sum(arm(seeds, rates) for arm in of_lengths) / 2
  return {"log-probs": share("sum_lp"), "probabilities": share("prod_p")}
