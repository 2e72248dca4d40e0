"""Rewards become advantages: coefficients, value targets."""
import types

import numpy as np
import pytest

from configs import base
from rlx.build import methods as build_methods, updates, validation
from rlx.core import masked, records, schedule

P, G, T = 3, 4, 5
GAE = dict(name="temporal.gae", gamma=0.9, lam=0.8)


def config(rewards, advantages, **sections):
  c = base.get_config()
  c.rewards, c.advantages = rewards, dict(advantages, whiten=False)
  for section, keys in sections.items(): c[section].update(keys)
  return c


def batch():
  draw = np.random.default_rng(0)
  f32 = lambda *shape: draw.normal(size=shape).astype(np.float32)
  lengths_B1 = draw.integers(1, T + 1, (P * G, 1))
  mask_BT = np.arange(T)[None] < lengths_B1
  return records.Batch(
      action_BT=mask_BT, outcome_B=draw.integers(0, 2, P * G).astype(np.float32),
      prm_logps_BT=f32(P * G, T), prm_old_logps_BT=f32(P * G, T),
      prm_ref_logps_BT=f32(P * G, T), old_logps_BT=f32(P * G, T), ref_logps_BT=f32(P * G, T),
      values_BT=f32(P * G, T), prm_beta_B=np.full(P * G, 0.05), group=G)


def scored_by(c, kl_coef=0.0, step=0, **changes):
  """Batch with advantages, and metrics."""
  state = types.SimpleNamespace(kl_coef=np.float32(kl_coef), step=step)
  stage = updates.rewards_advantages_of(c, build_methods.resolve_methods(c))
  return stage.compute_from_batch(state, batch().replace(**changes))


def advantages(c, kl_coef=0.0, step=0):
  return np.asarray(scored_by(c, kl_coef, step)[0].advantages_BT)


OUTCOME = dict(name="outcome.verdict", coef=1.0)
BOTH = {"rloo": dict(outcome=dict(name="group.rloo"), process=dict(name="process.rloo")),
        "grpo": dict(outcome=dict(name="group.grpo"), process=dict(name="process.grpo"))}


@pytest.mark.parametrize("name", BOTH)
def test_coef_multiplies_the_advantages_of_its_term(name):
  """Linear in coef, for an estimator that divides by a spread too."""
  def with_coef(coef):
    return advantages(config(dict(outcome=OUTCOME, process=dict(
        name="implicit.process", coef=coef, norm="none")), BOTH[name]))
  alone, once = with_coef(0.0), with_coef(1.0) - with_coef(0.0)
  assert np.abs(once).max() > 0.1
  np.testing.assert_allclose(with_coef(0.01) - alone, 0.01 * once, atol=1e-6)


def test_kl_coef_multiplies_the_advantages_of_the_kl_reward():
  c = config(dict(outcome=OUTCOME), dict(outcome=dict(name="group.grpo"),
                                         kl=dict(name="group.grpo")),
             kl=dict(coef=1.0, place="reward"))
  alone, once = advantages(c, 0.0), advantages(c, 1.0) - advantages(c, 0.0)
  assert np.abs(once).max() > 0.1
  np.testing.assert_allclose(advantages(c, 0.001) - alone, 0.001 * once, atol=1e-6)


def test_kl_in_the_reward_lowers_the_advantage_where_the_policy_left_its_start():
  c = config(dict(outcome=OUTCOME), dict(total=dict(name="temporal.return_to_go")),
             kl=dict(coef=0.5, kind="k1", place="reward"))
  with_kl, metrics = scored_by(c, 0.5)
  kl_BT = np.where(with_kl.action_BT, with_kl.old_logps_BT - with_kl.ref_logps_BT, 0)
  togo_BT = np.cumsum(kl_BT[:, ::-1], axis=1)[:, ::-1]
  np.testing.assert_allclose(advantages(c) - with_kl.advantages_BT,
                             np.where(with_kl.action_BT, 0.5 * togo_BT, 0), atol=1e-5)
  assert "rewards/kl" in metrics


def test_total_adds_rewards_times_coef_before_its_estimator():
  def with_coefs(outcome, process):
    return advantages(config(
        dict(outcome=dict(OUTCOME, coef=outcome),
             process=dict(name="implicit.process", coef=process, norm="none")),
        dict(total=dict(name="group.grpo"))))
  # The estimator divides by the scale.
  np.testing.assert_allclose(with_coefs(2.0, 1.0), with_coefs(1.0, 0.5), atol=1e-4)
  assert np.abs(with_coefs(2.0, 1.0) - with_coefs(1.0, 2.0)).max() > 0.1


def test_a_coefficient_follows_its_schedule(monkeypatch):
  """Warm-up, peak and decay, of the term's advantages and in the log; traced once."""
  curve = dict(coef=2.0, warmup_steps=4, schedule="linear", total_steps=14, final_fraction=0.5)
  c = config(dict(outcome=dict(OUTCOME, **curve)), dict(outcome=dict(name="group.rloo")))
  stage = updates.rewards_advantages_of(c, build_methods.resolve_methods(c))
  plain_BT = advantages(config(dict(outcome=OUTCOME), dict(outcome=dict(name="group.rloo"))))
  for step, coef in ((0, 0.5), (3, 2.0), (4, 2.0), (9, 1.5), (99, 1.0)):
    state = types.SimpleNamespace(kl_coef=np.float32(0), step=step)
    scored, metrics = stage.compute_from_batch(state, batch())
    np.testing.assert_allclose(scored.advantages_BT, coef * plain_BT, rtol=1e-6)
    assert metrics["rewards/outcome_coef"] == coef
    monkeypatch.setattr(schedule.Schedule, "__call__", None)  # Later steps compile nothing.


def test_rewards_are_logged_before_coef_and_variances_after_it():
  def metrics(coef):
    return scored_by(config(dict(outcome=dict(OUTCOME, coef=coef)),
                            dict(outcome=dict(name="group.rloo"))))[1]
  once, twice = metrics(1.0), metrics(2.0)
  assert once["rewards/outcome"] == twice["rewards/outcome"] > 0
  np.testing.assert_allclose(twice["advantages/variance_outcome"],
                             4 * once["advantages/variance_outcome"], rtol=1e-6)


@pytest.mark.parametrize("coef", [1.0, 0.3])
def test_values_learn_the_returns_of_their_own_term(coef):
  """With another term the target is that of GAE alone, whatever the coefficient."""
  alone = config(dict(outcome=OUTCOME), dict(outcome=GAE))
  together = config(
      dict(outcome=dict(OUTCOME, coef=coef), process=dict(name="implicit.process", coef=1.0)),
      dict(outcome=GAE, process=dict(name="process.rloo")))
  expected = scored_by(alone)[0]
  np.testing.assert_allclose(expected.returns_BT, masked.where_valid(
      expected.advantages_BT + batch().values_BT, batch().action_BT), atol=1e-6)
  np.testing.assert_allclose(scored_by(together)[0].returns_BT, expected.returns_BT, atol=1e-6)


def gains_of_values(values_BT): return np.diff(values_BT, append=0)


@pytest.mark.parametrize("change", [
    dict(process=GAE),
    # A reward that reads values has a target of its own, too.
    dict(process=dict(name="process.reinforce"))], ids=["estimator", "reward"])
def test_values_of_two_terms_are_refused(change):
  reward = ("implicit.process" if change["process"] is GAE else f"{__name__}:gains_of_values")
  c = config(dict(outcome=OUTCOME, process=dict(name=reward, coef=1.0)), dict(outcome=GAE) | change)
  with pytest.raises(ValueError, match=r"^advantages.outcome.name='temporal.gae', "
                     r"advantages.process.name=.*one value model") as e:
    validation.check(c, build_methods.resolve_methods(c))
  assert "\n" not in str(e.value)


def whitened(outcome, estimator):
  """advantages_BT of verdicts of two prompts; the first completion has two tokens, others one."""
  c = base.get_config()
  c.rewards, c.advantages = dict(outcome=OUTCOME), dict(outcome=dict(name=estimator), whiten=True)
  mask_BT = np.array([[True, True]] + [[True, False]] * 7)
  scored = records.Batch(action_BT=mask_BT, outcome_B=np.array(outcome), group=4)
  state = types.SimpleNamespace(kl_coef=np.float32(0), step=0)
  stage = updates.rewards_advantages_of(c, build_methods.resolve_methods(c))
  batch, _ = stage.compute_from_batch(state, scored)
  return np.asarray(batch.advantages_BT)


@pytest.mark.parametrize("verdict", [0.0, 1.0])
def test_groups_without_signal_are_not_whitened(verdict):
  """The first group is whitened as if alone: leave-one-out of 1, 0, 0, unknown."""
  got_BT = whitened([1.0, 0.0, 0.0, np.nan] + [verdict] * 4, "group.rloo")
  tokens = np.array([1, 1, -0.5, -0.5])
  long, _, short, _ = (tokens - tokens.mean()) / tokens.std(ddof=1)
  np.testing.assert_allclose(got_BT[:4], [[long, long], [short, 0], [short, 0], [0, 0]], atol=1e-6)
  np.testing.assert_array_equal(got_BT[4:], 0)


def test_a_batch_without_verdicts_is_empty_not_wrong():
  scored, _ = scored_by(base.get_config(), outcome_B=np.full(P * G, np.nan))
  assert not np.asarray(scored.advantages_BT).any()


def test_zeros_are_whitened_where_they_are_a_verdict():
  """By batch.reinforce 0 is what a wrong answer gets: the batch's mean is its baseline."""
  got_BT = whitened([1.0] + [0.0] * 7, "batch.reinforce")
  tokens = np.array([1.0] * 2 + [0.0] * 7)
  np.testing.assert_allclose(
      np.append(got_BT[0, 0], got_BT[:, 0]), (tokens - tokens.mean()) / tokens.std(ddof=1),
      atol=1e-6)


@pytest.mark.parametrize("options", [dict(floor=0.5), dict(granularity="completion")], ids=str)
def test_the_normaliser_logged_is_the_one_that_rewards_were_divided_by(options):
  """Also where a row without a verdict has by far the largest log-ratios."""
  def metrics_with(norm, **changes):
    c = config(dict(outcome=OUTCOME, process=dict(
        name="implicit.process", coef=1.0, norm=norm, **options)), BOTH["rloo"])
    return scored_by(c, **changes)[1]
  metrics, plain = metrics_with("max_return"), metrics_with("none")
  np.testing.assert_allclose(metrics["rewards/process"] * metrics["rewards/process_normaliser"],
                             plain["rewards/process"], rtol=1e-5)
  assert abs(plain["rewards/process"]) > 1e-3
  assert "rewards/process_normaliser" not in plain and "prm/max_return" not in plain
  third_B1 = np.arange(P * G)[:, None] == 2
  first, second = (metrics_with(
      "max_return", outcome_B=np.where(third_B1[:, 0], np.nan, batch().outcome_B),
      prm_logps_BT=batch().prm_logps_BT * np.where(third_B1, factor, 1)) for factor in (1.0, 100.0))
  assert first["rewards/process_normaliser"] == second["rewards/process_normaliser"]


def test_metrics_of_the_prm_are_of_before_its_update():
  """The scoring pass saw completions that the PRM was not trained on."""
  c = config(dict(outcome=OUTCOME, process=dict(name="implicit.process", coef=1.0)), BOTH["rloo"])
  names = ("prm/accuracy", "prm/correlation", "prm/abs_log_ratio")
  before, other = (scored_by(c, prm_logps_BT=x)[1] for x in (
      batch().prm_logps_BT, -batch().prm_logps_BT))
  seen = scored_by(c, prm_old_logps_BT=-batch().prm_old_logps_BT)[1]
  for name in names: assert before[name] == other[name] != seen[name]


def test_a_prompt_is_varied_by_the_verdicts_that_are_trained_on():
  """All equal; one other, which is excluded; two others."""
  outcome_B = np.array([1.] * 4 + [0., 1., 0., 0.] + [0., 0., 1., 1.])
  excluded_B = np.zeros(12, np.int8)
  excluded_B[5] = records.EXCLUDED.index("thinned")
  c = config(dict(process=dict(name="implicit.process", coef=1.0)),
             dict(process=dict(name="process.rloo")))
  metrics = scored_by(c, outcome_B=outcome_B, excluded_B=excluded_B)[1]
  np.testing.assert_allclose(metrics["prm/varied"], 1 / 3)


def test_an_estimators_own_metrics_are_logged():
  c = config(dict(outcome=OUTCOME), dict(outcome=dict(name="group.rloo")))
  resolved = build_methods.resolve_methods(c)
  gamma, rloo = resolved.estimators["outcome"]
  def more(batch): return rloo(batch), dict(size=7.0, right=batch.outcome_B)
  more.fields = rloo.fields
  resolved.estimators["outcome"] = gamma, more
  state = types.SimpleNamespace(kl_coef=np.float32(0), step=0)
  metrics = updates.rewards_advantages_of(c, resolved).compute_from_batch(state, batch())[1]
  assert metrics["advantages/outcome_size"] == 7
  np.testing.assert_allclose(metrics["advantages/outcome_right"], batch().outcome_B.mean())
