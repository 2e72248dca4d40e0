"""An energy network on the features of a frozen reward model, which corrects its scores.

  f(e, r) of features e and a score r is high where r suits e: p(r | e) ~ exp f(e, r)
  corrected score = argmax_r f(e, r), by ascent from the reward model's own score

`losses.reward_model.energy_nce` trains it. EBRM, Lochab and Zhang 2025, arXiv:2504.13134, as in its
released code (AnamikaLochab/EBRM). Differs from the code: no dropout.
"""
import functools
import math

import jax
import jax.numpy as jnp

SCORE_WIDTHS, WIDTHS = (16, 32, 64), (1024, 512, 1)  # Of the layers; those of the code.


def init(key, features, score_widths=SCORE_WIDTHS, widths=WIDTHS):
  """Parameters {"score": [(w, b)], "joint": [(w, b)]} for so many features."""
  def layers(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (a, b)) / a**0.5, jnp.zeros(b))
            for k, a, b in zip(keys, sizes, sizes[1:])]
  one, two = jax.random.split(key)
  return dict(score=layers(one, (1, *score_widths)),
              joint=layers(two, (features + score_widths[-1], *widths)))


def compute(params, features_ND, scores_N):
  """f_N. Layers of tanh, the last one linear; the score has layers of its own first."""
  x = scores_N[:, None]
  for w, b in params["score"]: x = jnp.tanh(x @ w + b[None])
  x = jnp.concatenate([features_ND, x], axis=1)
  *hidden, (w, b) = params["joint"]
  for u, c in hidden: x = jnp.tanh(x @ u + c[None])
  return (x @ w + b[None])[:, 0]


def draw_noise(key, scores_N, count, *, stds=(3.5,), beta=0.1):
  """What `energy_nce` tells apart: near scores, and noise about them.

    positive = r + nu,  nu ~ 1/K sum_k N(0, (beta sigma_k)^2)
    negative_m ~ q = 1/K sum_k N(r, sigma_k^2),   m = 1, ..., count

  Returns:
    (positive_N, negative_NM, log q of both: log_noise_N, log_noise_NM).
  """
  n, keys = len(scores_N), jax.random.split(key, 4)
  def draw(key, which, shape):
    return jax.random.normal(key, shape) * jnp.asarray(stds)[
        jax.random.randint(which, shape, 0, len(stds))]
  positive_N = scores_N + beta * draw(keys[0], keys[1], (n,))
  negative_NM = scores_N[:, None] + draw(keys[2], keys[3], (n, count))
  def log_noise(x, centre):
    parts = [-((x - centre) / std)**2 / 2 - math.log(std * math.sqrt(2 * math.pi))
             for std in stds]
    return jax.nn.logsumexp(jnp.stack(parts, axis=-1), axis=-1) - math.log(len(stds))
  return (positive_N, negative_NM, log_noise(positive_N, scores_N),
          log_noise(negative_NM, scores_N[:, None]))


@functools.partial(jax.jit, static_argnums=(0,), static_argnames=("steps",))
def refine(energy_of, scores_N, *args, steps=100, rate=0.01, shrink=0.5):
  """The corrected scores: ascent on the energy, whose step shrinks where it does not rise.

    r <- r + rate df/dr if f rises by it, else rate <- shrink rate

  Args:
    energy_of: (scores_N, *args) -> f_N; hashable, such as a function of a module.
    scores_N: where it starts, the reward model's own.
  Returns:
    scores_N.
  Example:
    >>> refine(lambda r_N: -(r_N - 1)**2, jnp.zeros(2), rate=0.3).round(2)
    Array([1., 1.], dtype=float32)
  """
  def climb(_, at):
    r_N, rate_N = at
    f_N, back = jax.vjp(lambda r_N: energy_of(r_N, *args), r_N)
    moved_N = r_N + rate_N * back(jnp.ones_like(f_N))[0]
    rises_N = energy_of(moved_N, *args) > f_N
    return jnp.where(rises_N, moved_N, r_N), jnp.where(rises_N, rate_N, shrink * rate_N)
  return jax.lax.fori_loop(0, steps, climb, (scores_N, jnp.full_like(scores_N, rate)))[0]
