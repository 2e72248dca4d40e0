import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.losses import reward_model
from rlx.rewards import outcome
from tests import whole

fit_linear, fit_network = reward_model.fit_linear, reward_model.fit_network
reward_model = whole.compile_module(reward_model)

nan = np.nan
VALID = np.array([True, True, False])
PAIR = np.array([2., 0., nan]), np.array([1., 2., nan])    # D = 1, -2.
ROWS = np.array([2., -1., nan]), np.array([1., .25, nan])  # Scores, labels.


def soft(x): return np.log1p(np.exp(x))
def sigmoid(x): return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("name, extra, options, expected", [
    ("bradley_terry", (), {}, soft(-1) + soft(2)),
    ("bradley_terry", ([.5, 1., nan],), {}, soft(-.5) + soft(3)),
    ("bradley_terry", (), dict(smoothing=.1),
     .9 * soft(-1) + .1 * soft(1) + .9 * soft(2) + .1 * soft(-2)),
])
def test_pairs(name, extra, options, expected):
  got = getattr(reward_model, name)(*PAIR, VALID, *map(jnp.array, extra), **options)
  np.testing.assert_allclose([got.total, got.weight], [expected, 2], rtol=1e-6)


def test_focal_hinge_and_squared_margin():
  gaps = PAIR[0] - PAIR[1]
  weight = lambda gap: (1 - 2 * max(0, sigmoid(gap) - .5))**2
  for got, each in ((reward_model.focal(*PAIR, VALID), lambda gap: weight(gap) * soft(-gap)),
                    (reward_model.hinge(*PAIR, VALID, margin=1.5), lambda gap: max(0, 1.5 - gap)),
                    (reward_model.squared_margin(*PAIR, VALID, margin=3.), lambda gap: (gap - 3)**2)
                    ):
    np.testing.assert_allclose(got.total, sum(map(each, gaps[VALID])), rtol=1e-6)
  got = reward_model.squared_margin(*PAIR, VALID, np.array([.5, 1., nan]))
  np.testing.assert_allclose([got.total, got.weight], [.5**2 + 3**2, 2], rtol=1e-6)


def test_strong_preferences_count_more():
  got = reward_model.scaled_bradley_terry(*PAIR, np.array([3., 1., nan]), VALID)
  np.testing.assert_allclose([got.total, got.weight], [3 * soft(-1) + soft(2), 2], rtol=1e-6)


def test_soft_labels():
  """Strengths 0 (half and half) and -log 3, which is a label that is right once in four times."""
  got = reward_model.soft_bradley_terry(*PAIR, np.array([0., -np.log(3), nan]), VALID)
  want = (soft(-1) + soft(1)) / 2 + (soft(2) + 3 * soft(-2)) / 4
  np.testing.assert_allclose([got.total, got.weight], [want, 2], rtol=1e-6)


def test_the_order_of_lists():
  scores_PG = np.array([[2., 1., 0.], [1., nan, 3.]])
  labels_PG = np.array([[1., .5, 0.], [.5, nan, .5]])
  got = reward_model.plackett_luce(scores_PG, labels_PG, ~np.isnan(scores_PG))
  want = np.log(1 + np.exp(-1) + np.exp(-2)) + np.log(1 + np.exp(-1))
  np.testing.assert_allclose([got.total, got.weight], [want, 1], rtol=1e-6)  # Ties are no order.
  tied = reward_model.plackett_luce(scores_PG[:1], np.array([[1., 1., 0.]]), np.ones((1, 3), bool))
  np.testing.assert_allclose(tied.total, soft(-2) + soft(-1), rtol=1e-6)


def test_means_with_spreads_and_mixtures():
  spread_N = np.array([2., .5, nan])
  got = reward_model.gaussian(ROWS[0], spread_N, ROWS[1], VALID)
  np.testing.assert_allclose(got.total, .5**2 / 2 + np.log(2) + 2.5**2 / 2 + np.log(.5), rtol=1e-6)
  got = reward_model.uncertain_bradley_terry(*PAIR, spread_N, spread_N, VALID)
  scale = lambda sigma: np.sqrt(1 + np.pi / 8 * 2 * sigma**2)
  np.testing.assert_allclose(got.total, soft(-1 / scale(2)) + soft(2 / scale(.5)), rtol=1e-6)
  pi_NK = np.array([[.25, .75], [1., 0.], [nan, nan]])
  heads = (np.stack([x, 2 * x], axis=1) for x in PAIR)
  got = reward_model.mixture(*heads, pi_NK, VALID)
  want = -np.log(.25 * sigmoid(1) + .75 * sigmoid(2)) - np.log(sigmoid(-2))
  np.testing.assert_allclose([got.total, got.weight], [want, 2], rtol=1e-6)


def test_differences_of_pairs_are_told_apart():
  """Differences (3, 4), (0, 2) and a pair that does not count; then with dropout by its masks."""
  chosen_ND, rejected_ND = np.array([[4., 4.], [1., 2.], [nan, 1.]]), np.array([[1., 0.], [1., 0.],
                                                                               [0., nan]])
  got = reward_model.contrast_pairs(chosen_ND, rejected_ND, jax.random.key(0), VALID,
                                    temperature=.5, dropout=0.)
  np.testing.assert_allclose([got.total, got.weight], [2 * np.log(1 + np.exp((.8 - 1) / .5)), 2],
                             rtol=1e-5)
  draw, key, valid_N = np.random.default_rng(0), jax.random.key(3), np.ones(4, bool)
  x_ND = draw.normal(size=(4, 8)).astype(np.float32)
  u_ND, v_ND = (np.where(jax.random.bernoulli(k, .5, x_ND.shape), x_ND, 0)
                for k in jax.random.split(key))
  u_ND, v_ND = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (u_ND, v_ND))
  z_NN = np.einsum("ND,MD->NM", u_ND, v_ND) / .05
  got = reward_model.contrast_pairs(x_ND, np.zeros_like(x_ND), key, valid_N, dropout=.5)
  want = np.log(np.exp(z_NN).sum(axis=1)) - np.diag(z_NN)
  np.testing.assert_allclose(got.total, want.sum(), rtol=1e-4)


def test_a_router_is_adapted_to_a_user():
  """pi .5 .25 .25; the last pair does not count."""
  heads = [np.array([[2., 0., 1.], [1., 0., 0.], [nan] * 3]), np.array([[0., 1., 1.], [0.] * 3,
                                                                        [nan] * 3])]
  got = reward_model.adapt_routing(np.array([.5, .25, .25]), *heads, VALID, rate=2.)
  likely = np.array([.5, .25, .25]) * np.exp(-2 * (soft(np.array([-2., 1., 0.]))
                                                   + soft(np.array([-1., 0., 0.]))))
  np.testing.assert_allclose(got, likely / likely.sum(), rtol=1e-5)


def test_the_energy_of_scores_against_noise():
  f_NM = np.array([[1., 0., -1.], [.5, 2., 0.], [nan] * 3])
  q_NM = np.array([[.1, -.2, 0.], [-1., -1., -2.], [nan] * 3])
  got = reward_model.energy_nce(f_NM[:, 0], f_NM[:, 1:], q_NM[:, 0], q_NM[:, 1:], VALID, decay=.5)
  g_NM = (f_NM - q_NM)[:2]
  want = np.log(np.exp(g_NM).sum(axis=1)) - g_NM[:, 0] + .5 * (f_NM[:2]**2).mean(axis=1)
  np.testing.assert_allclose([got.total, got.weight], [want.sum(), 2], rtol=1e-6)


def test_the_evidence_of_a_users_taste():
  gap_NS, mean_ND = np.array([[1., -2.], [0., 3.], [nan] * 2]), np.array([[.5, -1.], [0., 2.],
                                                                         [nan] * 2])
  log_var_ND = np.log(np.array([[1., .25], [4., 1.], [nan] * 2]))
  got = reward_model.latent_user(gap_NS, mean_ND, log_var_ND, np.array([2., 4., nan]), VALID,
                                 coef=.5)
  kl = np.array([.25 + 1 - 1 + 1 + .25 - 1 - np.log(.25), 4 - 1 - np.log(4) + 4]) / 2
  want = [(soft(-1) + soft(2)) / 2 + .25 * kl[0], (soft(0) + soft(-3)) / 2 + .125 * kl[1]]
  np.testing.assert_allclose([got.total, got.weight], [sum(want), 2], rtol=1e-6)


@pytest.mark.parametrize("gap", [100., -100.])
def test_far_pairs_have_finite_slopes(gap):
  loss = lambda x: reward_model.bradley_terry(x, np.zeros(1), np.ones(1, bool)).total
  assert np.isfinite(jax.grad(loss)(np.array([gap]))).all()


def test_rows():
  got = reward_model.bce(*ROWS, VALID)
  np.testing.assert_allclose([got.total, got.weight], [soft(2) - 2 + soft(-1) + .25, 2], rtol=1e-6)
  np.testing.assert_allclose(reward_model.mse(*ROWS, VALID).total, 1 + 1.25**2, rtol=1e-6)


def test_balanced_is_the_mean_of_both_classes():
  scores_N, labels_N = np.array([3., 1., 2., 5., nan]), np.array([1., 0., 0., 0., nan])
  valid_N = np.array([True] * 4 + [False])
  for fn, each in ((reward_model.mse, [4., 1., 4., 25.]),
                   (reward_model.bce, [soft(-3), soft(1), soft(2), soft(5)])):
    got = fn(scores_N, labels_N, valid_N, balanced=True)
    np.testing.assert_allclose(got.mean(), (each[0] + np.mean(each[1:])) / 2, rtol=1e-6)
  # One class alone keeps its half.
  got = reward_model.mse(np.array([3., 2.]), np.ones(2), np.ones(2, bool), balanced=True)
  np.testing.assert_allclose(got.mean(), 2.5 / 2, rtol=1e-6)


def test_yes_no():
  yes_N, no_N = np.array([3., 0., nan]), np.array([1., 1., nan])
  got = reward_model.yes_no(yes_N, no_N, ROWS[1], VALID)
  np.testing.assert_allclose(got.total, soft(2) - 2 + soft(-1) + .25, rtol=1e-6)
  # Two rationales; one; none.
  got = reward_model.yes_no_score(
      np.array([[3., 0.], [1., nan], [nan, nan]]),
      np.array([[1., 1.], [1., nan], [nan, 0.]]),
      np.array([[True, True], [True, False], [False, False]]))
  np.testing.assert_allclose(got, [(sigmoid(2) + sigmoid(-1)) / 2, .5, 0], rtol=1e-6)


@pytest.mark.parametrize("name, arrays, options", [
    ("bradley_terry", 2, dict(smoothing=.2)), ("focal", 2, {}), ("hinge", 2, {}),
    ("squared_margin", 2, {}), ("bce", 2, {}), ("bce", 2, dict(balanced=True)),
    ("mse", 2, {}), ("mse", 2, dict(balanced=True)), ("yes_no", 3, {}),
    ("scaled_bradley_terry", 3, {}), ("soft_bradley_terry", 3, {})])
def test_invalid_rows_have_no_gradient(name, arrays, options):
  x = jnp.where(VALID, np.linspace(.1, .9, 3 * arrays).reshape(arrays, 3), nan)
  grad = jax.grad(lambda x: getattr(reward_model, name)(*x, VALID, **options).total)(x)
  assert np.isfinite(grad).all() and np.any(grad != 0)
  np.testing.assert_array_equal(grad[:, ~VALID], 0)


def test_a_linear_score_of_few_pairs():
  """Three pairs of four agree on the first feature: the log-odds are log 3, without a penalty."""
  chosen, rejected = np.array([[1., 5.], [2, 5], [1, 5], [0, 5]]), np.array([[0., 5.], [1, 5],
                                                                        [0, 5], [1, 5]])
  np.testing.assert_allclose(fit_linear(chosen, rejected, decay=1e-9), [np.log(3), 0], atol=1e-6)
  # What is fitted has no slope: 3 sigmoid(-w) - sigmoid(w) = decay w.
  w = fit_linear(chosen, rejected, decay=.5)[0]
  assert w < np.log(3)
  np.testing.assert_allclose(3 * sigmoid(-w) - sigmoid(w), .5 * w, rtol=1e-8)
  # Of large features that separate the pairs, and of the pairs the other way round.
  draw = np.random.default_rng(0).normal(size=(9, 3)) * 100
  w_F = fit_linear(draw, 0 * draw + [0, 0, -500.])
  np.testing.assert_allclose(fit_linear(0 * draw + [0, 0, -500.], draw), -w_F, atol=1e-9)
  gap = draw - [0, 0, -500.]
  np.testing.assert_allclose(gap.T @ sigmoid(-gap @ w_F), .1 * w_F, atol=1e-8)
  for bad, message in (((chosen, rejected[:1]), "must be"),
                       ((chosen * nan, rejected), "holds NaN")):
    with pytest.raises(ValueError, match=message): fit_linear(*bad)
  with pytest.raises(ValueError, match="decay=0"): fit_linear(chosen, rejected, decay=0)


def test_a_network_of_few_pairs():
  """Pairs that no linear score orders: the middle one of three values is better than both."""
  chosen_NF, rejected_NF = np.array([[0.], [0.]]), np.array([[-1.], [1.]])
  assert np.abs(fit_linear(chosen_NF, rejected_NF)).max() < 1e-6
  fit = functools.partial(fit_network, chosen_NF, rejected_NF, hidden=3, decay=.01)
  network_HF = np.asarray(fit(), float)
  score = lambda x: np.tanh(x @ network_HF[:, :-2].T + network_HF[:, -2]) @ network_HF[:, -1]
  low, middle, high = score(np.array([[-1.], [0.], [1.]]))
  assert middle > max(low, high) + 2
  # It is at a minimum: no slope is left of the weights of the units, of which the score is linear.
  hidden = lambda x: np.tanh(x @ network_HF[:, :-2].T + network_HF[:, -2])
  gap_NH = hidden(chosen_NF) - hidden(rejected_NF)
  np.testing.assert_allclose(gap_NH.T @ sigmoid(-(gap_NH @ network_HF[:, -1])),
                             .01 * network_HF[:, -1], atol=1e-5)
  # The reward is the same score, and a call gives the same network again.
  np.testing.assert_allclose(outcome.network(np.array([[-1.], [0.], [1.]], np.float32),
                                             np.ones(3, bool), weights=network_HF.tolist()),
                             [low, middle, high], rtol=1e-4)
  np.testing.assert_array_equal(fit(), network_HF)
  with pytest.raises(ValueError, match="must be"): fit_network(chosen_NF, [[1.]])
