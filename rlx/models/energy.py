"""An energy network on the features of a frozen reward model, which corrects its scores.

  f(e, r) of features e and a score r is high where r suits e: p(r | e) ~ exp f(e, r)
  corrected score = argmax_r f(e, r), by ascent from the reward model's own score

`fit` trains it, with `losses.reward_model.energy_nce`.

Source: EBRM, Lochab and Zhang 2025, arXiv:2504.13134, in the form of its released code
(AnamikaLochab/EBRM). Differs from the code: no dropout.
"""
import functools
import math

import jax
import jax.numpy as jnp
import optax

from rlx.losses import reward_model

SCORE_WIDTHS, WIDTHS = (16, 32, 64), (1024, 512, 1)  # Of the layers; those of the code.


def init(key, features, score_widths=SCORE_WIDTHS, widths=WIDTHS):
  """Parameters {"score": layers, "joint": layers} for so many features.

  A layer is {"w_IO", "b_O"}. Their names have no axis by which the mesh would split them.
  """
  def layers(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [dict(w_IO=jax.random.normal(k, (a, b)) / a**0.5, b_O=jnp.zeros(b))
            for k, a, b in zip(keys, sizes, sizes[1:])]
  one, two = jax.random.split(key)
  return dict(score=layers(one, (1, *score_widths)),
              joint=layers(two, (features + score_widths[-1], *widths)))


def compute(params, features_ND, scores_N):
  """f_N. Layers of tanh, the last one linear; the score has layers of its own first."""
  x = scores_N[:, None]
  apply = lambda layer, x: x @ layer["w_IO"] + layer["b_O"][None]
  for layer in params["score"]: x = jnp.tanh(apply(layer, x))
  x = jnp.concatenate([features_ND, x], axis=1)
  *hidden, last = params["joint"]
  for layer in hidden: x = jnp.tanh(apply(layer, x))
  return apply(last, x)[:, 0]


def correct(params, features_ND, scores_N):
  """The scores that `refine` finds from a reward model's own, with its default steps."""
  return refine(_of_scores, scores_N, params, features_ND)


def _of_scores(scores_N, params, features_ND): return compute(params, features_ND, scores_N)


@functools.partial(jax.jit, static_argnames=("batch", "steps", "negatives", "stds"))
def fit(params, key, features_ND, scores_N, *, batch=64, steps=1000, rate=1e-3, negatives=10,
        stds=(3.5,), beta=0.1):
  """Trains an energy by `energy_nce` on features and scores of a reward model, with Adam.

  Each step draws `batch` rows with replacement, and noise of their scores by `draw_noise`.

  Args:
    params: from `init`.
    key: of the draws; equal arguments give equal results on a machine.
    features_ND, scores_N: of completions whose scores are trusted.
    rate: of Adam.
    negatives: M, draws of noise for each row; stds, beta: as `draw_noise`.
  Returns:
    (params, losses_S of all steps, each before its update).
  """
  optimizer = optax.adam(rate)
  def loss_of(params, key):
    of_rows, of_noise = jax.random.split(key)
    rows_B = jax.random.randint(of_rows, (batch,), 0, len(scores_N))
    features_BD = features_ND[rows_B]
    positive_B, negative_BM, *logs = draw_noise(of_noise, scores_N[rows_B], negatives, stds=stds,
                                                beta=beta)
    each_BM = jax.vmap(compute, (None, None, 1), 1)(params, features_BD, negative_BM)
    return reward_model.energy_nce(compute(params, features_BD, positive_B), each_BM, *logs,
                                   jnp.ones(batch, bool)).mean()
  def step(at, key):
    params, moments = at
    loss, slope = jax.value_and_grad(loss_of)(params, key)
    change, moments = optimizer.update(slope, moments)
    return (optax.apply_updates(params, change), moments), loss
  (params, _), losses_S = jax.lax.scan(step, (params, optimizer.init(params)),
                                       jax.random.split(key, steps))
  return params, losses_S


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
