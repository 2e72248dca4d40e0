import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records
from rlx.core import resolve
from rlx.losses import aggregate
from rlx.losses import diagnostics
from rlx.losses import divergence
from rlx.losses import entropy
from rlx.losses import policy
from rlx.losses import prm
from rlx.losses import sft
from rlx.losses import value

nan = np.nan
MASK = jnp.array([[True, True, True], [True, False, False], [False] * 3])
LOSS = jnp.array([[1., 2., 6.], [4., nan, nan], [nan] * 3])


@pytest.mark.parametrize("mode, total, weight", [
    ("token-mean", 13, 4), ("token-sum", 13, 0), ("seq-mean-token-sum", 13, 2),
    ("seq-mean-token-mean", 3 + 4, 2), ("seq-mean-token-sum-norm", 13/10, 2)])
def test_aggregate(mode, total, weight):
  got = aggregate.aggregate(LOSS, MASK, mode=mode, length=10)
  np.testing.assert_allclose([got.total, got.weight], [total, weight], rtol=1e-6)
  grad = jax.grad(lambda x: aggregate.aggregate(x, MASK, mode=mode, length=10).total)(LOSS)
  np.testing.assert_array_equal(grad[~MASK], 0)


def test_aggregate_refuses():
  with pytest.raises(ValueError, match="mode='mean': one of"):
    aggregate.aggregate(LOSS, MASK, mode="mean")


@pytest.mark.parametrize("ratio, advantage, options, expected", [
    (1.5, 1., {}, -1.2), (0.5, 1., {}, -0.5),      # Clipped above; free below.
    (1.5, -1., {}, 1.5), (0.5, -1., {}, 0.8),      # Free above; clipped below.
    (1.5, 1., dict(clip_high=0.4), -1.4),
    (5.0, -1., dict(dual_clip=3.0), 3.0), (5.0, 1., dict(dual_clip=3.0), -1.2),
    (5.0, -1., dict(ratio_cap=4.0), 4.0),
])
def test_ppo_clip(ratio, advantage, options, expected):
  got, _ = policy.ppo_clip(jnp.log(jnp.array([[ratio]])), jnp.zeros((1, 1)),
                           jnp.array([[advantage]]), jnp.ones((1, 1), bool), **options)
  np.testing.assert_allclose(got, [[expected]], rtol=1e-6)


def test_ratio_stays_finite():
  args = jnp.array([[0.]]), jnp.array([[-1e4]]), jnp.array([[-1.]]), jnp.ones((1, 1), bool)
  for fn in (policy.ppo_clip, policy.cispo, policy.sapo, policy.dppo_tv, policy.dro):
    loss_of = lambda x: resolve.measured(fn(x, *args[1:]))[0]
    assert np.isfinite(loss_of(args[0])).all()
    assert np.isfinite(jax.grad(lambda x: jnp.sum(loss_of(x)))(args[0])).all()


def test_covariance_tokens():
  # Six tokens; centred A times centred logp is largest on the first, then the last.
  logps_BT = jnp.array([[-1., -3., -2., -2., -2., -2.9]])
  a_BT = jnp.array([[3., -1., -1., 0., 0., -1.]])
  mask_BT = jnp.ones((1, 6), bool)
  old_BT = logps_BT - 0.1
  plain_BT = -a_BT * jnp.exp(jnp.float32(0.1))
  held = policy.kl_cov(logps_BT, old_BT, a_BT, mask_BT, fraction=0.4, kl_coef=2.0) - plain_BT
  np.testing.assert_allclose(held, [[.2, .2, 0, 0, 0, 0]], atol=1e-6)   # floor(6 * .4).
  np.testing.assert_allclose(
      policy.kl_cov(logps_BT, old_BT, a_BT, mask_BT, fraction=0.0), plain_BT, rtol=1e-6)
  cut, removed = policy.clip_cov(logps_BT, old_BT, a_BT, mask_BT, fraction=0.4, cov_low=0.5,
                                 cov_high=9.)
  np.testing.assert_array_equal(removed["clip_cov"], [[True, True] + [False] * 4])
  np.testing.assert_array_equal(np.asarray(cut == 0)[0, :2], [True, True])


@pytest.mark.parametrize("kind, expected", [
    ("k1", .5), ("abs", .5), ("k2", .125), ("k3", np.exp(-.5) + .5 - 1), ("k3+", np.exp(-.5) - .5)])
def test_divergence(kind, expected):
  got = divergence.estimate(jnp.array([[-1., nan]]), jnp.array([[-1.5, nan]]),
                            jnp.array([[True, False]]), kind=kind)
  np.testing.assert_allclose(got, [[expected, 0]], rtol=1e-5)


def test_divergence_is_flat_where_nothing_differs():
  x = jnp.array([[-1.0]])
  for kind in ("abs", "k2", "k3", "k1+"):
    np.testing.assert_array_equal(
        jax.grad(lambda a: jnp.sum(divergence.estimate(a, x, kind=kind)))(x), 0)


def test_adaptive_coef():
  step = lambda kl: divergence.adaptive_coef(0.1, kl, target=0.02, horizon=100, count=10)
  np.testing.assert_allclose([step(0.02), step(1.0), step(0.0), step(0.022)],
                             [.1, .1 * 1.02, .1 * .98, .1 * 1.01], rtol=1e-6)


def test_entropy():
  entropy_BT = jnp.array([[1., 2., 3.], [4., nan, nan], [nan] * 3])
  np.testing.assert_allclose(entropy.bonus(entropy_BT, MASK, coef=0.5),
                             [[-.5, -1, -1.5], [-2, 0, 0], [0] * 3])


def test_value_loss():
  args = jnp.array([[2.]]), jnp.array([[0.]]), jnp.array([[3.]])
  np.testing.assert_allclose(value.clipped(*args), [[.5]])
  np.testing.assert_allclose(value.clipped(*args, clip=0.5), [[.5 * 2.5**2]])   # Pessimistic.


def test_nll():
  np.testing.assert_array_equal(sft.nll(LOSS, MASK), [[-1, -2, -6], [-4, 0, 0], [0] * 3])


# ------------------------------------------------------------------------- PRM

ONE = jnp.ones((4, 1), bool)
Z = jnp.array([[2.], [-1.], [.5], [nan]])     # Log-ratios; the last verdict is unknown.
OUTCOME = jnp.array([[1., 0.], [.25, nan]])
VALID = ~jnp.isnan(OUTCOME)
soft = lambda x: np.log1p(np.exp(x))


def test_ce():
  got = prm.ce(Z, jnp.zeros_like(Z), ONE, OUTCOME.reshape(-1), VALID.reshape(-1), prm_beta=1.0)
  np.testing.assert_allclose(got.total, soft(-2) + soft(-1) + soft(.5) - .25 * .5, rtol=1e-6)
  assert got.weight == 3


def test_pairs():
  # Only the first prompt has a pair: (2, -1). A row without verdict pairs with nobody.
  args = Z, jnp.zeros_like(Z), ONE & VALID.reshape(-1, 1), OUTCOME, VALID
  dpo, nca, even = (fn(*args, prm_beta=1.0) for fn in (prm.dpo, prm.nca, prm.kto_even))
  np.testing.assert_allclose([dpo.total, dpo.weight], [soft(-3), 1], rtol=1e-6)
  np.testing.assert_allclose(nca.total, soft(-2) + soft(2) / 2 + soft(-1) / 2, rtol=1e-6)
  # K_l = max(0, -1) = 0, K_w = 2.
  sigmoid = lambda x: 1 / (1 + np.exp(-x))
  np.testing.assert_allclose(even.total, 1 - sigmoid(2 - 0) + 1 - sigmoid(2 + 1), rtol=1e-5)
  assert even.weight == 2


def test_fractional_verdicts_pair_by_order():
  outcome_PG, z_B1 = jnp.array([[.2, .6]]), jnp.array([[1.], [3.]])
  got = prm.dpo(z_B1, jnp.zeros_like(z_B1), ONE[:2], outcome_PG, jnp.ones((1, 2), bool),
                prm_beta=1.0)
  np.testing.assert_allclose(got.total, soft(-2), rtol=1e-6)


def test_no_pairs_no_loss():
  for fn in (prm.dpo, prm.nca, prm.kto_even):
    got = fn(Z[:2], jnp.zeros((2, 1)), ONE[:2], jnp.ones((1, 2)), jnp.ones((1, 2), bool), .05)
    assert got.total == 0 and got.weight == 0 and got.mean() == 0


def test_kto_baseline_is_clamped_and_detached():
  sigmoid = lambda x: 1 / (1 + np.exp(-x))
  def loss(ratio):
    return prm.kto(Z[:2], jnp.zeros((2, 1)), ONE[:2], jnp.array([1., 0.]), jnp.ones(2, bool),
                   jnp.array([ratio, nan]), prm_beta=1.0, weight_wrong=2.0)
  np.testing.assert_allclose(loss(-9.).total, 1 - sigmoid(2.) + 2 * (1 - sigmoid(1.)), rtol=1e-5)
  np.testing.assert_allclose(loss(.5).total, 1 - sigmoid(1.5) + 2 * (1 - sigmoid(1.5)), rtol=1e-5)
  assert jax.grad(lambda r: loss(r).total)(0.5) == 0


def test_detached_dpo():
  old_B1 = jnp.array([[1.], [4.], [nan], [nan]])
  args = Z, jnp.zeros_like(Z), ONE, OUTCOME, VALID, old_B1
  # Against the other's earlier score; the third row has no opponent.
  want = np.array([soft(-(2 - 4)), soft(-1 - 1), soft(-.5)])
  got = prm.detached_dpo(*args[:5], jnp.where(jnp.isnan(old_B1), 0, old_B1), prm_beta=1.0)
  np.testing.assert_allclose(got.mean(), want.mean(), rtol=1e-6)
  # bon_acc, n (share at or below)^(n-1): 2 * 1, 2 * 1/2; n = 1 gives 1.
  got = prm.detached_dpo(*args[:5], jnp.where(jnp.isnan(old_B1), 0, old_B1), prm_beta=1.0,
                         weighting="bon_acc")
  np.testing.assert_allclose(got.mean(), want @ [2, 1, 1], rtol=1e-6)
  assert got.weight == 0


def test_diagnostics():
  logps_BT, old_BT = jnp.array([[0., -1., nan]]), jnp.array([[-.5, -1., nan]])
  scored = records.Batch(
      action_BT=jnp.array([[True, True, False]]), outcome_B=jnp.ones(1), logps_BT=logps_BT,
      old_logps_BT=old_BT, sampler_logps_BT=old_BT + .1)
  got = {k: float(v.mean()) for k, v in diagnostics.policy(scored).items()}
  np.testing.assert_allclose(got["old_kl"], -.25, rtol=1e-6)
  np.testing.assert_allclose(got["ratio_far"], .5)
  np.testing.assert_allclose(got["sampler_gap"], .1, rtol=1e-5)
  assert "entropy" not in got


def test_means_of_what_methods_return():
  """Over valid tokens, over rows that have one, and a number itself, however it is cut."""
  mask_BT = jnp.array([[True, True], [True, False], [False, False]])
  x_BT = jnp.array([[True, False], [True, True], [True, True]])
  got = diagnostics.means(dict(token=x_BT, row=jnp.array([1., 3., nan]), whole=5.), mask_BT)
  assert {k: float(v.mean()) for k, v in got.items()} == dict(
      token=pytest.approx(2/3), row=2, whole=5)
  parts = [diagnostics.means(dict(token=x_BT[i], whole=5.), mask_BT[i])
           for i in (slice(1), slice(1, 3))]
  assert (parts[0]["token"] + parts[1]["token"]).mean() == got["token"].mean()
  assert (parts[0]["whole"] + parts[1]["whole"]).mean() == 5


CLIPPED = [
    ("policy.ppo_clip", {}), ("policy.ppo_clip", dict(dual_clip=1.5)),
    ("policy.ppo_clip", dict(ratio_cap=1.4)),
    ("policy.ppo_clip", dict(ratio_cap=2., dual_clip=1.5)),
    ("policy.clip_cov", dict(fraction=0.2, cov_low=0.1)),
    ("policy.dppo_tv", dict(low=.05, high=.1)),
    ("policy.dppo_kl", {}), ("policy.minirl", {}),
    ("policy.stable_reinforce", dict(ratio_max=1.5, width=.8)),
    ("sequence.gspo", dict(clip_low=.05, clip_high=.1)), ("sequence.luspo", {}),
    ("sequence.gmpo", {}), ("distribution.lp_reg", dict(clip_low=.2, clip_high=.2))]


@pytest.mark.parametrize("name, options", CLIPPED, ids=str)
def test_clip_fractions_are_of_the_tokens_that_have_no_gradient(name, options):
  """Against autodiff, token by token; each side of the clip is met."""
  draw = np.random.default_rng(0)
  shape, mask_BT = (6, 30), np.arange(30) < np.array([[30], [25], [8], [1], [0], [30]])
  old_BT, a_BT = draw.normal(-1.2, .4, shape), draw.normal(size=shape)
  a_BT[draw.uniform(size=shape) < 0.1] = 0
  if name.startswith("sequence"): a_BT = np.sign(a_BT)
  moved_B1 = np.array([[.2], [-.2], [0], [.5], [0], [0]])
  logps_BT = old_BT + draw.normal(scale=.4, size=shape) + moved_B1
  fill = lambda x_BT: jnp.asarray(np.where(mask_BT, x_BT, nan), jnp.float32)
  scored = records.Batch(
      action_BT=jnp.asarray(mask_BT), outcome_B=jnp.ones(6), group=3, old_logps_BT=fill(old_BT),
      sampler_logps_BT=fill(old_BT), old_min_p_logps_BT=fill(old_BT), advantages_BT=fill(a_BT))
  fn = resolve.resolve("losses", dict(options, name=name))
  loss_of = lambda x_BT: fn(scored.replace(logps_BT=x_BT))
  _, removed = loss_of(fill(logps_BT))
  assert set(removed) >= {"clip_low", "clip_high"}
  grad_BT = jax.grad(lambda x_BT: jnp.sum(loss_of(x_BT)[0]))(fill(logps_BT))
  expected_BT = mask_BT & (a_BT != 0) & (np.asarray(grad_BT) == 0)
  sides = np.array([np.asarray(x_BT) for x_BT in removed.values()])
  np.testing.assert_array_equal(sides.any(axis=0), expected_BT)
  assert (sides.sum(axis=0) <= 1).all() and sides.any(axis=(1, 2)).all(), list(removed)
  assert not (removed["clip_low"] & (a_BT > 0)).any()
  assert not (removed["clip_high"] & (a_BT < 0)).any()
