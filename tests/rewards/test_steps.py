import numpy as np
import pytest

from rlx.core import masked
from rlx.rewards import steps
from tests import whole

steps = whole.compile_module(steps)

nan = np.nan


def batch(*rows, outcome=None):
  """Rows of step scores -> fields of Batch: steps of two tokens, then EOS and padding."""
  k = max(map(len, rows))
  scores_BT = np.full((len(rows), 2 * k + 2), nan)
  ends_BT = np.zeros(scores_BT.shape, bool)
  mask_BT = np.zeros(scores_BT.shape, bool)
  for i, row in enumerate(rows):
    columns = 1 + 2 * np.arange(len(row))
    scores_BT[i, columns], ends_BT[i, columns] = row, True
    mask_BT[i, :2 * len(row) + 1] = True
  ends_BT[:, -1] = True  # On padding: no step.
  outcome = np.ones(len(rows)) if outcome is None else np.array(outcome)
  return dict(step_scores_BT=np.array(scores_BT, np.float32), step_ends_BT=np.array(ends_BT),
              learn_BT=np.array(mask_BT & ~np.isnan(outcome)[:, None]),
              outcome_B=np.array(outcome, np.float32),
              learn_B=np.array(~np.isnan(outcome)))


def refine(*rows, **options):
  """Rewards of the steps, [row][step]; the other tokens must have none."""
  b = batch(*rows)
  del b["outcome_B"]
  return at_ends(steps.refine(**b, **options))


def at_ends(rewards_BT):
  rewards_BT = np.array(rewards_BT)
  at_BK = rewards_BT[:, 1:-1:2].copy()
  rewards_BT[:, 1:-1:2] = 0
  assert not rewards_BT.any()
  return at_BK


@pytest.mark.parametrize("options, scores, expected", [
    (dict(kind="raw"), [.6, -.2, .3], [.6, -.2, .3]),
    # exp(-6), exp(2), exp(-3) over their sum are .00033, .99298, .00669.
    (dict(kind="softmin"), [.6, -.2, .3], [.00020, -.19860, .00201]),
    (dict(kind="softmin", temperature=1e-3), [.6, -.2, .3], [0, -.2, 0]),  # The minimum.
    (dict(kind="softmin", signed=True), [.8, .4, .65], [.00020, -.19860, .00201]),
    (dict(kind="clip", eta=.3), [.6, -.2, .3], [0, -.5, 0]),
    (dict(kind="delta"), [.6, -.2, .3], [.8, -.5, .3]),
    (dict(kind="clip_delta", eta=.3), [.6, -.2, .3], [.5, -.5, 0]),
    (dict(kind="clip_delta", eta=.4), [.6, -.2, .3], [.6, -.5, -.1]),
    (dict(kind="advantage"), [.6, -.2, .3], [.6, -.8, .5]),
    (dict(kind="advantage", start=.5), [.6, -.2, .3], [.1, -.8, .5]),
    # Gains 0, 0, .5, -.25, 0: the first two see the third, .7 for every step.
    (dict(kind="lookahead", start=.25), [.25, .25, .75, .5, .5], [.245, .35, .5, -.25, 0]),
    (dict(kind="lookahead", start=.25, window=1), [.25, .25, .75, .5, .5], [0, .35, .5, -.25, 0]),
    (dict(kind="lookahead", start=.25, eps=.3), [.25, .25, .75, .5, .5], [.245, .35, .5, 0, 0]),
], ids=str)
def test_refine(options, scores, expected):
  # The second row has a step that could not be told between the first and the rest.
  got_BK = refine([*scores], [scores[0], nan, *scores[1:]], **options)
  np.testing.assert_allclose(got_BK[0, :len(scores)], expected, atol=5e-6)
  np.testing.assert_allclose(got_BK[1, :1], expected[:1], atol=5e-6)
  assert got_BK[1, 1] == 0
  np.testing.assert_allclose(got_BK[1, 2:], expected[1:], atol=5e-6)


@pytest.mark.parametrize("options, expected", [
    (dict(kind="gate"), [[.9, .2, .5], [0, 0, 0], [0, 0, 0], [0, 0, 0]]),
    (dict(kind="gate", theta=.25), [[.9, .2, .5], [0, 0, 0], [0, 0, 0], [.5, .7, 0]]),
    # The last step of each has the outcome alone; one step is the last.
    (dict(kind="renorm"), [[.9, .2, 0], [0, 0, 0], [0, 0, 0], [-.25, 0, 0]]),
    (dict(kind="renorm", mu=.5), [[1.4, .7, 0], [0, 0, 0], [0, 0, 0], [.25, 0, 0]]),
], ids=str)
def test_mix(options, expected):
  b = batch([.9, .2, .5], [.4], [.7, .7], [.5, .7], outcome=[1, 0, nan, .25])
  np.testing.assert_allclose(at_ends(steps.mix(**b, **options)), expected, atol=1e-6)


def test_an_unknown_last_step_is_still_the_last():
  got = steps.mix(**batch([.9, nan], [nan, .9], outcome=[0, 0]), kind="renorm")
  np.testing.assert_allclose(at_ends(got), [[-.1, 0], [0, 0]], atol=1e-6)


AGGREGATES = dict(min=.2, max=.8, sum=1.5, mean=.5, last=.2, prod=.08, geo=.08**(1/3),
                  mean_odds=(1 + 4 + .25) / 3, mean_logit=0.)  # log 1, log 4 and log 1/4.


@pytest.mark.parametrize("kind", masked.AGGREGATES)
def test_completion(kind):
  b = batch([.5, .8, .2], [.5, nan, .8, .2], [nan], [.1], outcome=[1, 0, 1, nan])
  del b["outcome_B"]
  expected = [AGGREGATES[kind]] * 2 + [0, 0]
  np.testing.assert_allclose(steps.completion(**b, kind=kind), expected, rtol=1e-5, atol=1e-6)
  exact = batch([1., 0., 1.])
  del exact["outcome_B"]
  assert np.isfinite(steps.completion(**exact, kind=kind)).all()


def test_wrong_step_penalty():
  b = batch([.9, .1, nan, .4, .5], [.9], outcome=[0, 1])
  # Steps of two tokens: right, wrong, unknown, wrong, right, then EOS and padding.
  got_BT = steps.wrong_step_penalty(**b)
  np.testing.assert_array_equal(got_BT, [[0, 0, -1, -1, 0, 0, -1, -1, 0, 0, 0, 0],
                                         [2] * 3 + [0] * 9])
  np.testing.assert_array_equal(
      steps.wrong_step_penalty(**b, threshold=.3, outcome=5., penalty=3.),
      [[0, 0, -3, -3] + [0] * 8, [5] * 3 + [0] * 9])


def test_thoughts():
  b = batch([.9, .8, .1, .2, nan, .3, .7], [.1, .2], [.9, .9], [.1, .9],
            outcome=[1, 0, nan, 1])
  group = dict(outcome_PG=b.pop("outcome_B").reshape(2, 2), learn_PG=b.pop("learn_B").reshape(2, 2))
  # The first prompt is solved by half of its completions, the second by the one that is known.
  expected = np.zeros((4, 7))
  expected[0, [1, 5, 6]] = 1, -.5, 1  # The unknown step is part of the wrong thought.
  expected[1, 1], expected[3, :2] = -.5, (-1, 1)
  np.testing.assert_array_equal(at_ends(steps.thoughts(**b, **group)), expected)
  expected[0, 5] = expected[1, 1] = -1
  np.testing.assert_array_equal(at_ends(steps.thoughts(**b, **group, adaptive=False)), expected)
  expected[:] = 0
  expected[0, [0, 6]], expected[1, 1], expected[3, :2] = (2, -1.5), -1.5, (-3, 2)
  np.testing.assert_array_equal(
      at_ends(steps.thoughts(**b, **group, threshold=.85, right=2., wrong=3.)), expected)


def test_flaw_penalty():
  b = batch([.9, .6], [.9, .1], [.9, nan], [.9, .9], [.1, .1], [.9, .9],
            outcome=[1, 1, 1, 0, 0, nan])
  np.testing.assert_array_equal(steps.flaw_penalty(**b), [1, 0, 1, -1, -1, 0])
  np.testing.assert_array_equal(steps.flaw_penalty(**b, lam=.25), [1, .75, 1, -1, -1, 0])
  np.testing.assert_array_equal(steps.flaw_penalty(**b, threshold=.7), [0, 0, 1, -1, -1, 0])


@pytest.mark.parametrize("beta, expected", [
    # .5 - .25, .1 - .5 and 1 - .1; a score that is not known is left out.
    (1.0, [[.25, -.4, .9, 0], [.25, 0, .5, 0], [.5, 0, 0, 0], [0] * 4]),
    (.5, [[.125, -.2, .45 + .5, 0], [.125, 0, .25 + .5, 0], [.25 + .375, 0, 0, 0], [0] * 4]),
    (0.0, [[0, 0, 1, 0], [0, 0, 1, 0], [.75, 0, 0, 0], [0] * 4])])
def test_redistribute(beta, expected):
  scores_BT = np.array([[.5, .1, 1, nan], [.5, nan, 1, 9], [.75, 9, nan, nan], [.3, .2, .1, .7]])
  ends_BT = np.array([[1, 1, 1, 0], [1, 1, 1, 0], [1, 0, 1, 0], [1, 1, 1, 1]], bool)
  learn_BT = np.array([[1, 1, 1, 0]] * 3 + [[0] * 4], bool)
  got_BT = steps.redistribute(scores_BT, ends_BT, learn_BT, learn_BT.any(axis=1), share=beta,
                              start=.25)
  np.testing.assert_allclose(got_BT, expected, atol=1e-6)
