import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records, resolve
from rlx.losses import diagnostics, divergence, policy, prm
from tests import whole

divergence, policy, prm = map(whole.compile_module, (divergence, policy, prm))

nan = np.nan


def test_ratio_stays_finite():
  args = np.array([[0.]]), np.array([[-1e4]]), np.array([[-1.]]), np.ones((1, 1), bool)
  for fn in (policy.ppo_clip, policy.cispo, policy.sapo, policy.dppo_tv, policy.dro):
    loss_of = lambda x: resolve.split_metrics(fn(x, *args[1:]))[0]
    assert np.isfinite(loss_of(args[0])).all()
    assert np.isfinite(jax.grad(lambda x: jnp.sum(loss_of(x)))(args[0])).all()


def test_without_tokens_to_hold_back_kl_cov_is_the_plain_loss():
  logps_BT, a_BT = np.array([[-1., -3.]]), np.array([[3., -1.]])
  got = policy.kl_cov(logps_BT, logps_BT - .1, a_BT, np.ones((1, 2), bool), fraction=0.0)
  np.testing.assert_allclose(got, [[-3 * np.exp(.1), np.exp(.1)]], rtol=1e-6)


def test_divergence_is_flat_where_nothing_differs():
  x = np.array([[-1.0]])
  for kind in ("abs", "k2", "k3", "k1+"):
    np.testing.assert_array_equal(
        jax.grad(lambda a: jnp.sum(divergence.estimate(a, x, kind=kind)))(x), 0)


# ------------------------------------------------------------------------- PRM

ONE = np.ones((4, 1), bool)
Z = np.array([[2.], [-1.], [.5], [nan]])     # Log-ratios; the last verdict is unknown.
soft = lambda x: np.log1p(np.exp(x))


def test_fractional_verdicts_pair_by_order():
  outcome_PG, z_B1 = np.array([[.2, .6]]), np.array([[1.], [3.]])
  got = prm.dpo(z_B1, np.zeros_like(z_B1), ONE[:2], outcome_PG, np.ones((1, 2), bool), prm_beta=1.0)
  np.testing.assert_allclose(got.total, soft(-2), rtol=1e-6)


def test_no_pairs_no_loss():
  for fn in (prm.dpo, prm.nca, prm.kto_even):
    got = fn(Z[:2], np.zeros((2, 1)), ONE[:2], np.ones((1, 2)), np.ones((1, 2), bool), .05)
    assert got.total == 0 and got.weight == 0 and got.mean() == 0


def test_padding_of_kto_even_is_inert_where_there_are_as_many_tokens_as_statistics():
  """Two: the statistics of a row then have the shape of its mask."""
  outcome_PG, learn_PG = np.array([[1., 0.]]), np.ones((1, 2), bool)
  def slopes(width):
    mask_BT = np.arange(width)[None] < np.ones((2, 1))
    logps_BT = jnp.where(mask_BT, Z[:2], nan)
    return jax.grad(lambda x_BT: prm.kto_even(x_BT, np.zeros((2, width)), mask_BT, outcome_PG,
                                              learn_PG, 1.0).total)(logps_BT)[:, :1]
  np.testing.assert_allclose(slopes(2), slopes(3), rtol=1e-6)


def test_kto_baseline_is_clamped_and_detached():
  sigmoid = lambda x: 1 / (1 + np.exp(-x))
  def loss(ratio):
    return prm.kto(Z[:2], np.zeros((2, 1)), ONE[:2], np.array([1., 0.]), np.ones(2, bool),
                   jnp.array([ratio, nan]), prm_beta=1.0, weight_wrong=2.0)
  np.testing.assert_allclose(loss(-9.).total, 1 - sigmoid(2.) + 2 * (1 - sigmoid(1.)), rtol=1e-5)
  np.testing.assert_allclose(loss(.5).total, 1 - sigmoid(1.5) + 2 * (1 - sigmoid(1.5)), rtol=1e-5)
  assert jax.grad(lambda r: loss(r).total)(0.5) == 0


@pytest.mark.parametrize("options", [
    dict(), dict(balanced=False), dict(adaptive=False, margin=.5)], ids=str)
def test_prefix_ce(options):
  """By loops: one right of three with one unknown; all right; the only one that is valid."""
  balanced, adaptive, margin = (dict(balanced=True, adaptive=True, margin=5.) | options).values()
  mask_BT = np.arange(3)[None] < np.array([[3], [1], [2], [3]] * 3)
  outcome_PG = np.array([[1., 0., 0., nan], [1., 1., 1., 1.], [nan, 0., nan, nan]])
  ratio_BT = np.where(mask_BT, np.random.default_rng(0).normal(size=(12, 3)), nan)
  learn_PG, losses = ~np.isnan(outcome_PG), []
  for b, verdict in enumerate(outcome_PG.ravel()):
    if np.isnan(verdict): continue
    group = [x for x in outcome_PG[b // 4] if not np.isnan(x)]
    p, sign = np.mean(group), 1 if verdict == 1 else -1
    weights = [1 - p if x == 1 else p for x in group]
    weight = (1 - p if verdict == 1 else p) / np.mean(weights) if balanced and any(weights) else 1
    odds = np.clip(p, 1e-6, 1 - 1e-6)
    m = margin - sign * np.log(odds / (1 - odds)) * adaptive
    prefixes = [np.mean(ratio_BT[b, :t + 1]) for t in range(mask_BT[b].sum())]
    losses.append(weight * np.mean([soft(m - sign * 2.5 * x) for x in prefixes]))
  got = prm.prefix_ce(ratio_BT, np.zeros_like(ratio_BT), mask_BT & learn_PG.reshape(-1, 1),
                      outcome_PG, learn_PG, 2.5, **options)
  np.testing.assert_allclose(got.mean(), np.mean(losses), rtol=1e-5)


def test_diagnostics():
  logps_BT, old_BT = np.array([[0., -1., nan]]), np.array([[-.5, -1., nan]])
  scored = records.Batch(
      action_BT=np.array([[True, True, False]]), outcome_B=np.ones(1), logps_BT=logps_BT,
      old_logps_BT=old_BT, sampler_logps_BT=old_BT + .1)
  got = {k: float(v.mean()) for k, v in diagnostics.policy(scored).items()}
  np.testing.assert_allclose(got["old_kl"], -.25, rtol=1e-6)
  np.testing.assert_allclose(got["ratio_far"], .5)
  np.testing.assert_allclose(got["sampler_gap"], .1, rtol=1e-5)
  assert "entropy" not in got


def test_means_of_what_methods_return():
  """Over valid tokens, over rows that have one, and a number itself, however it is cut."""
  mask_BT = np.array([[True, True], [True, False], [False, False]])
  x_BT = np.array([[True, False], [True, True], [True, True]])
  got = diagnostics.means(dict(token=x_BT, row=np.array([1., 3., nan]), whole=5.), mask_BT)
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
      action_BT=jnp.asarray(mask_BT), outcome_B=np.ones(6), group=3, old_logps_BT=fill(old_BT),
      sampler_logps_BT=fill(old_BT), old_min_p_logps_BT=fill(old_BT), advantages_BT=fill(a_BT))
  fn = resolve.resolve("losses", dict(options, name=name))

  @jax.jit
  def gradient(x_BT):
    def total(x_BT):
      loss_BT, removed = fn(scored.replace(logps_BT=x_BT))
      return jnp.sum(loss_BT), removed
    return jax.grad(total, has_aux=True)(x_BT)

  grad_BT, removed = gradient(fill(logps_BT))
  assert set(removed) >= {"clip_low", "clip_high"}
  expected_BT = mask_BT & (a_BT != 0) & (np.asarray(grad_BT) == 0)
  sides = np.array([np.asarray(x_BT) for x_BT in removed.values()])
  np.testing.assert_array_equal(sides.any(axis=0), expected_BT)
  assert (sides.sum(axis=0) <= 1).all() and sides.any(axis=(1, 2)).all(), list(removed)
  assert not (removed["clip_low"] & (a_BT > 0)).any()
  assert not (removed["clip_high"] & (a_BT < 0)).any()
