"""Likelihood rewards against numbers worked by hand, in terms of probabilities."""
import numpy as np
import pytest

from rlx.rewards import likelihood
from tests import whole

likelihood = whole.compile_module(likelihood)

nan = np.nan
# Two prompts of three completions. Probabilities of the reference answer's tokens: two
# tokens in the first prompt, one in the second, whose last verdict is unknown.
P_BM = np.array([[.5, .5], [.8, .2], [.25, 1.], [.3, nan], [.6, nan], [nan, nan]])
BASE_BM = np.array([[.4, .1]] * 3 + [[.5, nan]] * 3)
MASK_BM = np.array([[True, True]] * 3 + [[True, False]] * 3)
VALID_PG = np.array([[True] * 3, [True, True, False]])
LENGTHS_B = np.array([10, 1, 100, 10, 10, 0])
OUTCOME_B = np.array([1., 0., 1., 1., 1., nan])


def log(x): return np.log(np.array(x, np.float32))


def rewards(p=P_BM, base=BASE_BM, mask=MASK_BM, valid=VALID_PG, **options):
  return np.asarray(likelihood.reference(
      log(p), mask, valid, LENGTHS_B, OUTCOME_B, None if base is None else log(base),
      **options))


@pytest.mark.parametrize("options, expected", [
    (dict(agg="sum_lp"), np.log([.25, .16, .25, .3, .6])),
    (dict(agg="mean_lp"), np.log([.5, .4, .5, .3, .6])),
    (dict(agg="prod_p"), [.25, .16, .25, .3, .6]),
    (dict(agg="mean_p"), [.5, .5, .625, .3, .6]),
    (dict(agg="geo_p"), [.5, .4, .5, .3, .6]),
    (dict(agg="ppl"), [-2, -2.5, -2, -1/.3, -1/.6]),
    # The base: mean_p .25 and .5, ppl 5 and 2.
    (dict(agg="mean_p", baseline="diff"), [.25, .25, .375, -.2, .1]),
    (dict(agg="ppl", baseline="diff"), [3, 2.5, 3, 2 - 1/.3, 2 - 1/.6]),
    (dict(agg="ppl", baseline="rel_ppl"), [60, 50, 60, -200/3, 50/3]),
    # RLPR.
    (dict(agg="mean_p", baseline="diff", post="clip01"), [.25, .25, .375, 0, .1]),
    # VR-CLI: 60 % is above every threshold, a worse perplexity below all.
    (dict(agg="ppl", baseline="rel_ppl", post="thresholds"), [1, 1, 1, 0, 1]),
    (dict(agg="ppl", baseline="rel_ppl", post="thresholds",
          thresholds=((55, .9), (20, .5), (0, .1))), [.9, .5, .9, 0, .1]),
    # N = 2, 1, 3, 2, 2: log-probs are divided by it, so .25 becomes .5 and so on.
    (dict(agg="sum_lp", len_norm="log10"),
     np.log([.25, .16, .25, .3, .6]) / [2, 1, 3, 2, 2]),
    # NOVER before the gate: perplexities .5^-1/2, .4^-1, .5^-1/3; .3^-1/2, .6^-1/2.
    (dict(agg="ppl", len_norm="log10", post="rank"), [2/3, 1/3, 1, 1/2, 1]),
    # The second completion is not of the right form: two of the first prompt are left.
    (dict(agg="ppl", len_norm="log10", post="rank", use_gate=True), [1/2, 0, 1, 1/2, 1]),
    (dict(agg="prod_p", use_gate=True), [.25, 0, .25, .3, .6]),
    # A tie shares the better rank.
    (dict(agg="sum_lp", post="rank"), [1, 1/3, 1, 1/2, 1]),
], ids=lambda x: "-".join(map(str, x.values())) if isinstance(x, dict) else "")
def test_reference(options, expected):
  np.testing.assert_allclose(rewards(**options), [*expected, 0], rtol=2e-5, atol=2e-6)


def test_jepo_credits_what_a_completion_adds_to_the_bound():
  # P = .25, .16, .25 with mean .22; without the first .205. In the second prompt
  # mean .45, and the other alone is left.
  expected = np.log([.22/.205, .22/.25, .22/.205, .45/.6, .45/.3])
  np.testing.assert_allclose(rewards(agg="log_mean_exp"), [*expected, 0], rtol=2e-5)
  # Alone there is no rival.
  assert rewards(agg="log_mean_exp", use_gate=True)[1] == 0
  lone = np.array([[True, False, False], [False, False, False]])
  np.testing.assert_array_equal(rewards(agg="log_mean_exp", valid=lone), np.zeros(6))


def test_group_std_weighs_the_tokens_that_reasoning_changes():
  # Of two tokens only the second differs within the first prompt: weights 0 and 2.
  p = P_BM.copy()
  p[:3] = [[.5, .5], [.5, .25], [.5, 1.]]
  np.testing.assert_allclose(rewards(p, agg="mean_lp", token_weight="group_std")[:3],
                             np.log([.5, .25, 1.]), atol=1e-6)
  # DRO: the base with the same weights.
  np.testing.assert_allclose(
      rewards(p, agg="mean_lp", token_weight="group_std", baseline="diff")[:3],
      np.log([5, 2.5, 10]), rtol=1e-5)
  # By numpy, with a token of lesser spread; and without spread the plain mean.
  logps = np.log(P_BM[:3])
  std = logps.std(axis=0, ddof=1)
  np.testing.assert_allclose(rewards(agg="mean_lp", token_weight="group_std")[:3],
                             (logps * std).sum(1) / std.sum(), rtol=1e-5)
  flat = np.tile([.4, .1], (6, 1))
  np.testing.assert_allclose(rewards(flat, agg="mean_lp", token_weight="group_std")[:3],
                             np.log([.2] * 3), rtol=1e-5)


@pytest.mark.parametrize("options, message", [
    (dict(agg="mean_p", baseline="rel_ppl"), "agg='mean_p': ppl with"),
    (dict(agg="log_mean_exp", baseline="diff"), "baseline='diff': none with"),
    (dict(base=None, baseline="diff"), "baseline='diff': needs base_answer_logps_BM"),
])
def test_reference_refuses(options, message):
  with pytest.raises(ValueError, match=message): rewards(**options)


def test_efficiency():
  # Perplexities 2, 2.5, 2; lengths 10, 1, 100. The first beats nobody: the third is
  # longer but as likely. In the second prompt lengths tie.
  def ranked(p, lengths, **options):
    return np.asarray(likelihood.efficiency(
        log(p), MASK_BM, VALID_PG, np.array(lengths), OUTCOME_B,
        **dict(dict(len_norm="none", use_gate=False), **options)))
  np.testing.assert_array_equal(ranked(P_BM, LENGTHS_B), np.zeros(6))
  p = P_BM.copy()
  p[2, 1] = .5
  # Now 2, 2.5, 2.83: the first two beat the third. In the second prompt .6 beats .3.
  np.testing.assert_array_equal(ranked(p, [10, 1, 100, 10, 9, 5]), [.5, .5, 0, 0, 1, 0])
  # Gated, the first has one rival left, and beats it; the second counts no more.
  np.testing.assert_array_equal(ranked(p, [10, 1, 100, 10, 9, 5], use_gate=True),
                                [1, 0, 0, 0, 1, 0])


def test_turn_gain():
  # geo_p of the answer: .1 before, then .4, .2 and .9. The first row has three steps and
  # an EOS, the last step is the outcome's; the second has one; the third does not count.
  p_BJ1 = np.array([[.1, .4, .2, .9], [.3, nan, nan, nan], [nan] * 4])[:, :, None]
  mask_BM = np.ones((3, 2), bool)
  p_BJM = np.concatenate([p_BJ1 / 2, p_BJ1 * 2], axis=2)
  mask_BT = np.arange(6)[None, :] < np.array([[5], [3], [4]])
  ends_BT = np.array([[1, 0, 1, 1, 0, 1], [0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]], bool)
  learn_B = np.array([True, True, False])
  def gains(p_BJM, **options):
    return np.asarray(likelihood.turn_gain(log(p_BJM), mask_BM, mask_BT, learn_B, ends_BT,
                                           **options))
  expected = np.zeros((3, 6))
  expected[0, [0, 2]] = [.3, -.2]
  np.testing.assert_allclose(gains(p_BJM), expected, rtol=1e-5, atol=1e-7)
  # Gains of log-probs add up to that of the whole.
  logs = gains(p_BJM, agg="mean_lp")
  np.testing.assert_allclose(logs.sum(axis=1), [np.log(2), 0, 0], rtol=1e-5, atol=1e-6)
  # Scored after the first step only, later ones get nothing.
  expected[0, 2] = 0
  np.testing.assert_allclose(gains(p_BJM[:, :2]), expected, rtol=1e-5, atol=1e-7)
  with pytest.raises(ValueError, match="agg='log_mean_exp': one of"):
    gains(p_BJM, agg="log_mean_exp")


def test_rewards_of_the_completion_itself():
  p_BT = np.array([[.5, .5, nan], [.9, .4, .1], [1., 1., 1.], [nan] * 3])
  mask_BT = np.array([[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1]], bool)
  learn_B = np.array([1, 1, 1, 0], bool)
  # Perplexities 2, .036^-1/3, 1; without the prompt 4, 1 and 1: 1 - 2/4, below -1, 0.
  without = log([[.25, .25, nan], [1., 1., 1.], [1., 1., 1.], [nan] * 3])
  sar = likelihood.self_aligned(log(p_BT), without, mask_BT, learn_B)
  np.testing.assert_allclose(sar, [.5, -1, 0, 0], atol=1e-6)
  # The second gave an answer of two tokens, the third none.
  span_BT = np.array([[0, 1, 0], [0, 1, 1], [0, 0, 0], [0, 1, 1]], bool)
  crew = lambda **o: likelihood.answer_confidence(log(p_BT), span_BT, learn_B, **o)
  np.testing.assert_allclose(crew(), [.5, .25, 0, 0], rtol=1e-5)
  np.testing.assert_allclose(crew(agg="prod_p"), [.5, .04, 0, 0], rtol=1e-5)


def test_last_token():
  self_logps_B, learn_B = np.array([-20., -25., -3., nan]), np.array([1, 1, 1, 0], bool)
  rewards = lambda **o: likelihood.last_token(self_logps_B, learn_B, c_ref=-23., **o)
  np.testing.assert_allclose(rewards(), [.3, 0, 1, 0], rtol=1e-6)
  np.testing.assert_allclose(rewards(use_clip=False, beta_v=.2), [.6, -.4, 4, 0], rtol=1e-6)
