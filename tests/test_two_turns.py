"""Rewards and advantages of episodes of several turns, worked out by hand in fractions.

One prompt, two episodes. A token is an action's (a0, a1), was read (o), or is padding (.):

  column   0    1    2    3    4    5    6
  first    a0   a0   o    o    a1   a1   .
  second   a0   a0   a0   .    .    .    .

The second ends in its first turn. All columns hold NaN on o and padding, and other garbage
where they are no floats. Methods are called by their names in a config and the batch's fields.
"""
import jax
import numpy as np
import pytest

from rlx.advantages import combine
from rlx.core import records, resolve
from tests import whole

nan = np.nan


@pytest.fixture(autouse=True)
def _float64():
  with jax.enable_x64(True): yield


ACTION = np.array([[1, 1, 0, 0, 1, 1, 0], [1, 1, 1, 0, 0, 0, 0]], bool)


def on_actions(first, second, fill=nan):
  """[2, 7] from what is on the four tokens of actions of the first row and three of the second."""
  x_BT = np.full(ACTION.shape, fill, float)
  x_BT[ACTION] = [*first, *second]
  return x_BT


def batch(**columns):
  """Log-ratios are 1, 2 | 3, -1 and 2, 0, -4; the rewards 1/4 | 3/4 and 1/2."""
  columns = dict(
      action_BT=ACTION,
      outcome_B=np.array([1., .5]),
      turn_BT=on_actions([0, 0, 1, 1], [0, 0, 0], fill=5).astype(np.int32),
      turn_ends_BT=on_actions([0, 1, 0, 1], [0, 0, 1], fill=1).astype(bool),
      turn_prefix_BT=on_actions([7, 7, 4, 4], [7, 7, 7], fill=7).astype(np.int32),
      turn_rewards_BT=on_actions([nan, 1/4, nan, 3/4], [nan, nan, 1/2]),
      prm_logps_BT=on_actions([-1, -1, -1, -2], [-1, -1, -5]),
      prm_ref_logps_BT=on_actions([-2, -3, -4, -1], [-3, -1, -1]),
      values_BT=on_actions([1/2, 1/4, 1/2, 1/4], [1/2, 1/2, 1/4]),
      prm_beta_B=np.full(2, .5)) | columns
  return records.Batch(group=2, **columns)


compute = whole.jit(lambda method, scored: resolve.split_metrics(method(scored))[0],
                    static_argnums=0)


def reward(scored, name, **options):
  return np.asarray(compute(resolve.resolve("rewards", dict(options, name=name)), scored))


estimate = whole.jit(combine.estimate, static_argnums=3)


def advantage(scored, rewards, name, **options):
  fn = resolve.resolve("advantages", dict(options, name=name))
  return np.asarray(estimate(rewards, scored, 1.0, fn)[0])


def same(got_BT, first, second):
  np.testing.assert_allclose(got_BT, on_actions(first, second, fill=0), rtol=1e-5, atol=1e-12)


# Rewards.


@pytest.mark.parametrize("granularity, first, second", [
    # beta = 1/2 times the log-ratios 1, 2 | 3, -1 and 2, 0, -4.
    ("token", [1/2, 1, 3/2, -1/2], [1, 0, -2]),
    # 1/2 + 1 and 3/2 - 1/2; 1 + 0 - 2.
    ("turn", [0, 3/2, 0, 1], [0, 0, -1]),
    # 3/2 + 1: the whole episode.
    ("completion", [0, 0, 0, 5/2], [0, 0, -1])])
def test_implicit_rewards(granularity, first, second):
  raw = reward(batch(), "implicit.process", granularity=granularity, norm="none")
  same(raw, first, second)
  # The largest return is 5/2, of the first token in all three: tokens give 5/2, 2, 1, -1/2 and
  # -1, -2, -2; turns 5/2, 5/2, 1, 1 and -1; the episode 5/2 and -1.
  scaled = reward(batch(), "implicit.process", granularity=granularity)
  same(scaled, *(np.divide(x, 5/2) for x in (first, second)))


def test_implicit_rewards_of_turns_with_the_outcome_as_their_sum():
  # Tokens but the last: 1/2 + 1 + 3/2 = 3, so the last is 1 - 3 = -2; 1 + 0, so 1/2 - 1.
  got = reward(batch(), "implicit.process", granularity="turn", norm="none", use_outcome=True)
  same(got, [0, 3/2, 0, -1/2], [0, 0, 1/2])


def test_implicit_rewards_of_turns_with_lambda():
  # What was read is no time. lam = 1/2 from the end: -1/2, 3/2 - 1/4 = 5/4, 1 + 5/8 = 13/8,
  # 1/2 + 13/16 = 21/16; sums 21/16 + 26/16 and 5/4 - 2/4.
  # -2, 0 - 1, 1 - 1/2; their sum is -5/2.
  got = reward(batch(), "implicit.process", granularity="turn", norm="none", lam=.5)
  same(got, [0, 47/16, 0, 3/4], [0, 0, -5/2])


def test_rewards_of_the_environment():
  same(reward(batch(), "turns.environment"), [0, 1/4, 0, 3/4], [0, 0, 1/2])
  same(reward(batch(turn_rewards_BT=on_actions([nan] * 4, [nan, nan, 1/2])),
              "turns.environment"), [0] * 4, [0, 0, 1/2])


@pytest.mark.parametrize("options, first, second", [
    # The outcomes are 1 and 1/2: with a threshold of 3/4 the second episode's turns do not count.
    (dict(thresholds=(3/4,)), [0, 1/4, 0, 3/4], [0, 0, 0]),
    (dict(thresholds=(1/2,)), [0, 1/4, 0, 3/4], [0, 0, 1/2]),
    # The last turns' rewards 3/4 and 1/2 are the outcomes, and count always.
    (dict(thresholds=(3/4,), top="last"), [0, 1/4, 0, 3/4], [0, 0, 1/2]),
    (dict(thresholds=(4/5,), top="last"), [0, 0, 0, 3/4], [0, 0, 1/2])], ids=str)
def test_gated_rewards(options, first, second):
  same(reward(batch(), "turns.gate", **options), first, second)


@pytest.mark.parametrize("thresholds, first, second", [
    # Scores 2, 3 and 4, 1. All are met in the first episode: the scores' sum is on the last token.
    ((3/4, 2, 3), [0, 1/4, 0, 5 + 3/4], [0, 0, 0]),
    # The second score is 3 < 7/2: it counts, the turns do not.
    ((3/4, 2, 7/2), [0, 0, 0, 5], [0, 0, 0]),
    # The first is 2 < 3: neither the second nor the turns count. The second episode passes
    # 1/2 and 4; its 1 is not 7/2.
    ((1/2, 3, 7/2), [0, 0, 0, 2], [0, 0, 5])], ids=str)
def test_gated_rewards_with_levels_in_between(thresholds, first, second):
  scored = batch(scores_BE=np.array([[2., 3.], [4., 1.]]))
  same(reward(scored, "turns.gate", thresholds=thresholds), first, second)


@pytest.mark.parametrize("options, first, second", [
    # 1/4 + 1 - 1; the last turn of each, which for the second is its only one, has nothing.
    (dict(), [0, 1/4, 0, 0], [0, 0, 0]),
    (dict(mu=1/2), [0, 3/4, 0, 0], [0, 0, 0]),
    # 1/4 + 3/4 - 1/2, and the outcomes themselves.
    (dict(mu=1/2, top="last"), [0, 1/2, 0, 3/4], [0, 0, 1/2])], ids=str)
def test_renormed_rewards(options, first, second):
  same(reward(batch(), "turns.renorm", **options), first, second)


def test_information_gain_of_turns():
  """likelihood.turn_gain takes turns for steps: p = 1/8, 3/8 before and after the first turn."""
  logps_BJM = np.log(np.array([[[1/8], [3/8], [1.]], [[1/8], [nan], [nan]]]))
  scored = batch(step_answer_logps_BJM=logps_BJM, answer_mask_BM=np.ones((2, 1), bool),
                 step_ends_BT=batch().turn_ends_BT)
  # The last turn of each has the outcome.
  same(reward(scored, "likelihood.turn_gain"), [0, 1/4, 0, 0], [0, 0, 0])


# Advantages. The rewards are the environment's 1/4 | 3/4 and 1/2, unless others are named.


@pytest.mark.parametrize("name, options, first, second", [
    # Per token: 3/4, 3/8, 1/4 + 3/16, 7/32; 1/2, 1/4, 1/8.
    ("temporal.return_to_go", dict(gamma=.5), [7/32, 7/16, 3/8, 3/4], [1/8, 1/4, 1/2]),
    # Per turn: 1/4 + 1/2 3/4.
    ("turns.to_go", dict(gamma=.5), [5/8, 5/8, 3/4, 3/4], [1/2] * 3),
    ("turns.to_go", dict(), [1, 1, 3/4, 3/4], [1/2] * 3),
    # 5/8 - 1/2 in turn 0; nobody else has a turn 1.
    ("turns.loo", dict(gamma=.5), [1/8, 1/8, 0, 0], [-1/8] * 3),
    ("turns.loo", dict(), [1/2, 1/2, 0, 0], [-1/2] * 3),
    ("turns.loo", dict(gamma=0), [-1/4, -1/4, 0, 0], [1/4] * 3),
    # The same: both turns 0 have the prompt as their history.
    ("turns.prefix", dict(gamma=.5), [1/8, 1/8, 0, 0], [-1/8] * 3),
    # The sums of rewards are 1 and 1/2.
    ("turns.prefix", dict(gamma=.5, alone="episode"), [1/8, 1/8, 1/2, 1/2], [-1/8] * 3),
    # Episodes: 1 and 1/2 with mean 3/4. Turns 0: 5/8 and 1/2 with mean 9/16; the turn 1 is alone.
    # 1/4 + 2/16 and 1/4 + 0.
    ("turns.gigpo", dict(gamma=.5, omega=2), [3/8, 3/8, 1/4, 1/4], [-3/8] * 3),
    # Two values have the z-scores +-1/sqrt 2: (1 + 2) / sqrt 2 and 1 / sqrt 2.
    ("turns.gigpo", dict(gamma=.5, omega=2, use_std=True, eps=1e-12),
     np.sqrt([9/2, 9/2, 1/2, 1/2]), -np.sqrt([9/2] * 3)),
    # Turns 1/4, 3/4, 1/2: mean 1/2, variance (1/16 + 1/16 + 0) / 2. z = -1, 1 and 0; -1 + 1/2.
    ("turns.grpo", dict(gamma=.5, eps=1e-12), [-1/2, -1/2, 1, 1], [0] * 3),
    ("turns.grpo", dict(gamma=0, use_std=False), [-1/4, -1/4, 1/4, 1/4], [0] * 3),
    # Last turns 3/4 and 1/2: mean 5/8. 1/4 is the only other turn: 0 + 1/2 1/8.
    ("turns.grpo", dict(gamma=.5, use_std=False, norm="separate"), [1/16, 1/16, 1/8, 1/8],
     [-1/8] * 3),
    # delta from the end: 3/4 - 1/4 = 1/2, 1/4 - 1/2 = -1/4 | 1/4 + 1/2 1/2 - 1/4 = 1/4,
    # 1/4 - 1/2 = -1/4. A: 1/2, 1/4 | 1/4 + 1/2 1/2 1/4 = 5/16, 1/16.
    # 1/2 - 1/4 = 1/4, 1/4 - 1/2 = -1/4, 1/2 - 1/2 = 0.
    ("turns.gae", dict(gamma=.5, lam=.5), [1/16, 5/16, 1/4, 1/2], [0, 0, 1/4]),
    # token_lam = 1/2: 1/2, -1/4 + 1/4 = 0 | 1/4 + 0, -1/4 + 1/8; 1/4, -1/4 + 1/8, 0 - 1/16.
    ("turns.gae", dict(gamma=.5, lam=.5, token_lam=.5), [-1/8, 1/4, 0, 1/2], [-1/16, -1/8, 1/4]),
    # Per token, gamma = 1/2: 1/2, 1/8 - 1/2 = -3/8 | 1/4 + 1/4 - 1/4 = 1/4, 1/8 - 1/2 = -3/8;
    # A: 1/2, -1/8 | 3/16, -9/32. 1/4, 1/8 - 1/2 = -3/8, 1/4 - 1/2 = -1/4; 1/4, -1/4, -3/8.
    ("temporal.gae", dict(gamma=.5), [-9/32, 3/16, -1/8, 1/2], [-3/8, -1/4, 1/4])], ids=str)
def test_advantages(name, options, first, second):
  scored = batch()
  rewards = reward(scored, "turns.environment")
  same(advantage(scored, rewards, name, **options), first, second)


@pytest.mark.parametrize("granularity, loo, first, second", [
    # Token means 5/2 / 4 = 5/8 and -1 / 3. strict: r + 1/3 and r - 5/8, to go.
    # Turns 3/2 | 1 and -1: 4/3, 5/3 | 19/6 + 1/3, 23/6; -13/8, -18/8, -23/8.
    ("turn", "strict", [23/6, 7/2, 5/3, 4/3], [-23/8, -9/4, -13/8]),
    # code: 2 (r - 7/48), of which each token without a reward has -7/24.
    ("turn", "code", [23/6, 99/24, 34/24, 41/24], [-23/8, -62/24, -55/24]),
    # Tokens 1/2, 1 | 3/2, -1/2 and 1, 0, -2: -1/6, 5/3 | 3, 23/6; -21/8, -26/8, -23/8.
    ("token", "strict", [23/6, 3, 5/3, -1/6], [-23/8, -13/4, -21/8]),
    # 5/2 on the last token: 17/6, 19/6 | 7/2, 23/6. The second is as with turns.
    ("completion", "strict", [23/6, 7/2, 19/6, 17/6], [-23/8, -9/4, -13/8])])
def test_prime_s_advantages(granularity, loo, first, second):
  scored = batch()
  rewards = reward(scored, "implicit.process", granularity=granularity, norm="none")
  same(advantage(scored, rewards, "process.rloo", loo=loo), first, second)


def test_an_outcome_discounted_per_turn_and_per_token():
  scored = batch()
  outcomes = reward(scored, "outcome.verdict")
  np.testing.assert_array_equal(outcomes, [1, 1/2])
  same(advantage(scored, outcomes, "turns.to_go", gamma=.5), [1/2, 1/2, 1, 1], [1/2] * 3)
  # 1 - 1/2 in both episodes.
  same(advantage(scored, outcomes, "turns.loo"), [1/2, 1/2, 0, 0], [-1/2] * 3)
  spread = combine.spread(np.array([[1/2, -1/2]]), scored.learn_BT, gamma=.5)
  same(spread, [1/16, 1/8, 1/4, 1/2], [-1/8, -1/4, -1/2])


def test_turns_after_the_same_history():
  """Both episodes have a second turn, and their first turns and what was read are the same.

    first    a0 a0 o o a1 a1 .     rewards 1/4 | 3/4
    second   a0 a0 o o a1 .  .     rewards 1/4 | 1/4
  """
  action = ACTION.copy()
  action[1] = [1, 1, 0, 0, 1, 0, 0]
  def columns(x, fill):
    x_BT = np.full(action.shape, fill, float)
    x_BT[action] = x
    return x_BT
  scored = batch(
      action_BT=action,
      turn_BT=columns([0, 0, 1, 1, 0, 0, 1], 5).astype(np.int32),
      turn_ends_BT=columns([0, 1, 0, 1, 0, 1, 1], 1).astype(bool),
      turn_prefix_BT=columns([0, 0, 3, 3, 0, 0, 3], 0).astype(np.int32),
      turn_rewards_BT=columns([nan, 1/4, nan, 3/4, nan, 1/4, 1/4], nan))
  rewards = reward(scored, "turns.environment")
  def check(name, options, first, second):
    want = np.zeros(action.shape)
    want[action] = [*first, *second]
    np.testing.assert_allclose(advantage(scored, rewards, name, **options), want, atol=1e-12)
  # Turn 1: 3/4 - 1/4. Turn 0: (1/4 + 3/8) - (1/4 + 1/8).
  for name in ("turns.prefix", "turns.loo"):
    check(name, dict(gamma=.5), [1/4, 1/4, 1/2, 1/2], [-1/4, -1/4, -1/2])
  # A^E = +-1/4; half of the above with weight 2.
  check("turns.gigpo", dict(gamma=.5, omega=2), [1/2, 1/2, 3/4, 3/4], [-1/2, -1/2, -3/4])
