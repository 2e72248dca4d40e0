import numpy as np
import pytest

from rlx.advantages import batch, process
from tests import whole

batch, process = map(whole.compile_module, (batch, process))

nan = np.nan


@pytest.mark.parametrize("unit, expected", [
    # b = .4/4 and 1.5/3. First step: (1 - 2 b) + (.5 - b); (.4 - 2 b) + (0 - b).
    ("token", [[1.2, 1.2, .4, 0], [-1.1, -1.1, -.5, 0]]),
    # b = .4/2 and 1.5/2, once per step.
    ("step", [[1.1, 1.1, .3, 0], [-1.1, -1.1, -.75, 0]]),
])
def test_rloo_steps(unit, expected):
  """Two steps each, of two tokens and one; the second completion ends with EOS."""
  rewards_BT = np.array([[0, 1., .5, nan], [0, .4, 0, 0], [nan] * 4])
  ends_BT = np.array([[0, 1, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]], bool)
  mask_BT = np.array([[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]], bool)
  got_BT = process.rloo_steps(rewards_BT, ends_BT, mask_BT,
                              np.array([[True, True, False]]), unit=unit)
  np.testing.assert_allclose(got_BT, [*expected, [0] * 4], atol=1e-6)
  # Alone there is no rival.
  alone_BT = process.rloo_steps(rewards_BT, ends_BT, mask_BT & [[True], [False], [True]],
                                np.array([[True, False, False]]), unit=unit)
  assert not np.asarray(alone_BT).any()


def test_grpo_tokens():
  # Four tokens of 2, 2, 1, 1 and two of 0, -1: mean 5/6, variance 41/30. Tied; alone.
  rewards_BT = np.array([[2., 2, 1, 1], [0, -1, nan, nan], [.9] * 4, [.9] * 4,
                          [1, 2, 3, 4.], [nan] * 4])
  mask_BT = np.array([[1] * 4, [1, 1, 0, 0], [1] * 4, [1, 1, 1, 0], [1] * 4, [1] * 4], bool)
  learn_PG = np.array([[1, 1], [1, 1], [1, 0]], bool)
  got_BT = process.grpo_tokens(rewards_BT, mask_BT, learn_PG)
  z = (np.array([2, 1, 0, -1]) - 5 / 6) / np.sqrt(41 / 30)
  np.testing.assert_allclose(got_BT[:2], [[z[0], z[0], z[1], z[1]], [z[2], z[3], 0, 0]], rtol=1e-5)
  np.testing.assert_array_equal(got_BT[2:], 0)


def test_whitened_returns_of_centred_rewards():
  """Rewards -1, 0 and 1 after the mean of 2 is subtracted; returns -1, 0 and 1 with variance 1."""
  mask_BT = np.array([[1, 1], [1, 0]], bool)
  got_BT = batch.reinforce_pp(np.array([[1., 2.], [3., nan]]), mask_BT, np.ones(2, bool),
                              centre=True)
  np.testing.assert_allclose(got_BT, [[-1, 0], [1, 0]], atol=1e-6)


def test_masked_steps():
  """Sums 1, 3, 0 and 4, 5: means 2.5, 4, 0; a token that no other has; a row that is not valid."""
  rewards_BT = np.array([[1., 2., -3.], [4., 1., nan], [9.] * 3, [1.] * 3])
  mask_BT = np.array([[1, 1, 1], [1, 1, 0], [1] * 3, [1] * 3], bool)
  got_BT = process.masked_steps(rewards_BT, mask_BT, np.array([[1, 1], [0, 1]], bool))
  np.testing.assert_allclose(got_BT, [[-1.5, -1, 0], [1.5, 1, 0], [0] * 3, [0] * 3])


def test_steps():
  """Steps of two tokens, one and one; a token after the last step; not valid."""
  rewards_BT = np.array([[nan, 1., .5, -2.], [3., nan, nan, nan], [1.] * 4])
  ends_BT = np.array([[0, 1, 1, 1], [1, 0, 1, 1], [1] * 4], bool)
  mask_BT = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0] * 4], bool)
  args = rewards_BT, ends_BT, mask_BT, np.array([[True, True, False]])
  np.testing.assert_allclose(process.steps(*args), [[1, 1, .5, -2], [3, 0, 0, 0], [0] * 4])
  # -2; .5 - 2 / 2; 1 - .5 / 2.
  np.testing.assert_allclose(process.steps(*args, gamma=.5),
                             [[.75, .75, -.5, -2], [3, 0, 0, 0], [0] * 4])


def _own_steps(rewards, ends, learn_BT, include_last):
  """By loops: the sums of each row's steps that count, and {token: step} of each row."""
  steps, step_of = [], []
  for b, row in enumerate(learn_BT):
    tokens, k, of = np.flatnonzero(row), 0, {}
    inner = [t for t in tokens if ends[b, t]][:-1]
    for t in tokens:
      of[t] = k
      k += t in inner
    sums = [sum(rewards[b, t] for t in of if of[t] == j) for j in range(k + 1)] if of else []
    steps.append(sums if include_last else sums[:-1])
    step_of.append(of)
  return steps, step_of


def _steps_loo(rewards, ends, learn_BT, learn_PG, include_last, *, clip):
  """`process.steps_loo` by loops."""
  steps, step_of = _own_steps(rewards, ends, learn_BT, include_last)
  group, out = learn_PG.shape[1], np.zeros(learn_BT.shape)
  for b, of in enumerate(step_of):
    rivals = [j for j in range(b // group * group, (b // group + 1) * group)
              if j != b and learn_PG.ravel()[j]]
    for t, k in of.items():
      others = [steps[j][k] for j in rivals if k < len(steps[j])]
      if learn_PG.ravel()[b] and k < len(steps[b]) and others:
        out[b, t] = np.clip(steps[b][k] - np.mean(others), -clip, clip)
  return out


def _bounded(rewards, ends, learn_BT, learn_PG, include_last, *, low, high):
  """`process.bounded_steps` by loops."""
  out = np.zeros(learn_BT.shape)
  for b, (sums, of) in enumerate(zip(*_own_steps(rewards, ends, learn_BT, include_last))):
    for t, k in of.items():
      if learn_PG.ravel()[b] and k < len(sums): out[b, t] = np.clip(sums[k], low, high)
  return out


@pytest.mark.parametrize("include_last", [False, True])
@pytest.mark.parametrize("fn, want, options, bounds", [
    (process.steps_loo, _steps_loo, dict(clip=0.4), (-0.4, 0.4)),
    (process.steps_loo, _steps_loo, dict(clip=100.0), None),
    (process.bounded_steps, _bounded, dict(low=-0.5, high=0.2), (-0.5, 0.2)),
    (process.bounded_steps, _bounded, dict(low=-100.0, high=100.0), None)])
def test_own_rewards_of_steps_by_loops(fn, want, options, bounds, include_last):
  """Completions of any length and steps; some rows are not valid or have no step end."""
  draw = np.random.default_rng(0)
  lengths_B = draw.integers(0, 8, 24)
  learn_PG = (draw.random((6, 4)) < .8) & (lengths_B.reshape(6, 4) > 0)
  learn_BT = (np.arange(8) < lengths_B[:, None]) & learn_PG.reshape(-1, 1)
  ends_BT = draw.random((24, 8)) < .4
  rewards_BT = np.where(learn_BT, draw.normal(size=(24, 8)), nan)
  got_BT = fn(rewards_BT, ends_BT, learn_BT, learn_PG, include_last=include_last, **options)
  want_BT = want(rewards_BT, ends_BT, learn_BT, learn_PG, include_last, **options)
  assert (want_BT.min(), want_BT.max()) == bounds if bounds else np.abs(want_BT).max() > 1
  np.testing.assert_allclose(got_BT, want_BT, atol=1e-5)
