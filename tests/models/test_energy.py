"""The energy of a score: its network and noise by hand, and the ascent to the best score."""
import jax
import jax.numpy as jnp
import numpy as np

from rlx.models import energy


def squared(r_N, best_N): return -(r_N - best_N)**2


def test_the_network_by_hand():
  params = energy.init(jax.random.key(0), 3, (2,), (4, 1))
  features_ND, scores_N = np.arange(6.).reshape(2, 3) / 5, np.array([.5, -1.])
  params = jax.tree.map(lambda x: np.asarray(x) + .1, params)
  (u, a), (v, b), (w, c) = ((x["w_IO"], x["b_O"]) for x in [*params["score"], *params["joint"]])
  x = np.concatenate([features_ND, np.tanh(scores_N[:, None] @ u + a)], axis=1)
  want = (np.tanh(x @ v + b) @ w + c)[:, 0]
  np.testing.assert_allclose(energy.compute(params, features_ND, scores_N), want, rtol=1e-5)


def test_noise_about_scores_and_its_density():
  scores_N, stds = jnp.array([0., 5.]), (1., 2.)
  positive_N, negative_NM, *logs = energy.draw_noise(
      jax.random.key(0), scores_N, 4000, stds=stds, beta=.1)
  assert np.abs(positive_N - scores_N).max() < 1
  gap_NM = np.asarray(negative_NM) - [[0.], [5.]]
  # Standard errors: 0.025 of the mean, 0.07 of the mean square (1 + 4) / 2.
  np.testing.assert_allclose(gap_NM.mean(axis=1), 0, atol=.1)
  np.testing.assert_allclose((gap_NM**2).mean(axis=1), 2.5, atol=.35)
  normal = lambda z, std: np.exp(-(z / std)**2 / 2) / std / np.sqrt(2 * np.pi)
  for x, log_noise in zip((np.asarray(positive_N - scores_N), gap_NM), logs):
    np.testing.assert_allclose(log_noise, np.log((normal(x, 1) + normal(x, 2)) / 2), rtol=1e-3,
                               atol=1e-4)


def test_ascent_ends_at_the_best_score_and_never_beyond_a_worse_one():
  got = energy.refine(squared, jnp.array([0., 4., -1.]), jnp.array([1., 1., -1.]), rate=5.)
  np.testing.assert_allclose(got, [1, 1, -1], atol=1e-3)
  # One step of 0.25 times the slope 2 (best - r); of a step of 1.5 nothing comes.
  np.testing.assert_allclose(energy.refine(squared, jnp.array([0.]), jnp.array([1.]), steps=1,
                                           rate=.25), [.5])
  np.testing.assert_allclose(energy.refine(squared, jnp.array([0.]), jnp.array([1.]), steps=1,
                                           rate=1.5), [0])


def test_a_trained_energy_is_highest_at_the_scores_of_its_features():
  """Scores 2 and -2 of two features, and a start near to them is corrected towards them."""
  features_ND = jnp.repeat(jnp.eye(2), 64, axis=0)
  scores_N = jnp.repeat(jnp.array([2., -2.]), 64)
  params = energy.init(jax.random.key(1), 2, (8,), (16, 1))
  params, losses_S = energy.fit(params, jax.random.key(2), features_ND, scores_N, rate=.02,
                                steps=300, negatives=16, stds=(3.,))
  assert losses_S.shape == (300,) and losses_S[-30:].mean() < losses_S[:3].mean() - .5
  of = lambda r_N: energy.compute(params, jnp.eye(2), r_N)
  grid = jnp.arange(-6., 7)
  f_2R = np.stack([of(jnp.full(2, r)) for r in grid], axis=1)
  assert grid[f_2R.argmax(axis=1)].tolist() == [2, -2]
  # The steps of `correct` are small: towards those scores, and not beyond.
  np.testing.assert_allclose(energy.refine(of, jnp.array([1.5, -2.5]), rate=.05), [2, -2], atol=.3)
  near = energy.correct(params, jnp.eye(2), jnp.array([1.5, -2.5]))
  assert 1.5 < near[0] < 2.3 and -2.5 < near[1] < -1.7
