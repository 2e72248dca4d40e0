import numpy as np
import pytest

from rlx.evals import starc

STATES, ACTIONS, GAMMA = 4, 3, 0.9
RNG = np.random.default_rng(0)
TRANSITION = RNG.dirichlet(np.ones(STATES), (STATES, ACTIONS))
REWARD = RNG.normal(size=(STATES, ACTIONS, STATES))
# A tree: 0 -> 1 or 2, each -> 3 or 4, which end it.
TREE = np.zeros((5, 2, 5))
for state, nexts in enumerate([(1, 2), (3, 4), (3, 4)]):
  TREE[state, [0, 1], nexts] = 1


def shaped(reward_ZAZ, transition_ZAZ, gamma, potential_Z):
  """Positive scale, potential, and noise whose mean over the next state is 0."""
  noise = RNG.normal(size=reward_ZAZ.shape)
  noise -= np.sum(noise * transition_ZAZ, axis=2, keepdims=True)
  return 3 * reward_ZAZ + gamma * potential_Z - potential_Z[:, None, None] + noise


@pytest.mark.parametrize("form", starc.FORMS)
def test_what_no_policy_tells_has_no_distance(form):
  again = shaped(REWARD, TRANSITION, GAMMA, RNG.normal(size=STATES))
  measure = lambda a, b: starc.distance(a, b, TRANSITION, gamma=GAMMA, form=form)
  assert measure(REWARD, again) < 1e-9
  assert measure(REWARD, -again) == pytest.approx(2)
  # Shaping alone is no reward: at distance 0 from none, and 1 from any other.
  nothing = shaped(0 * REWARD, TRANSITION, GAMMA, RNG.normal(size=STATES))
  assert measure(nothing, 0 * REWARD) == 0
  assert measure(nothing, REWARD) == pytest.approx(1)
  other = RNG.normal(size=REWARD.shape)
  assert 0.01 < measure(REWARD, other) == pytest.approx(measure(other, again))


@pytest.mark.parametrize("form", starc.FORMS)
def test_on_a_tree(form):
  reward = np.zeros(TREE.shape)
  reward[1, 0, 3] = 1.0
  potential = np.array([.3, -2., 5., 0., 0.])      # 0 where it ends.
  measure = lambda a, b: starc.distance(a, b, TREE, form=form)
  noisy = np.where(TREE > 0, shaped(reward, TREE, 1.0, potential), np.nan)
  assert measure(reward, noisy) < 1e-9
  # A potential at an end is a reward for ending there.
  assert measure(reward, shaped(reward, TREE, 1.0, potential + np.eye(5)[3])) > 0.1


def test_value_form_of_a_tree_is_the_step_advantage():
  reward = np.zeros(TREE.shape)
  reward[1, 0, 3] = 1.0
  # Half of the ways from 1 are right: V = 1/4, 1/2, 0.
  np.testing.assert_allclose(starc.canonical(reward, TREE), [
      [1/4, -1/4], [1/2, -1/2], [0, 0], [0, 0], [0, 0]], atol=1e-12)
  # A policy that knows the way.
  policy = np.array([[1., 0.]] * 5)
  np.testing.assert_allclose(starc.canonical(reward, TREE, policy), [
      [0, -1], [0, -1], [0, 0], [0, 0], [0, 0]], atol=1e-12)


def test_minimal_form_of_a_tree():
  reward = np.zeros(TREE.shape)
  reward[1, 0, 3] = 1.0
  # Least (h1 - h0)^2 + (h2 - h0)^2 + (1 - h1)^2 + h1^2 + 2 h2^2: h = 1/4, 5/12, 1/12.
  np.testing.assert_allclose(starc.canonical(reward, TREE, form="minimal"), [
      [1/6, -1/6], [7/12, -5/12], [-1/12, -1/12], [0, 0], [0, 0]], atol=1e-12)


def test_minimal_is_least():
  c_ZA = starc.canonical(REWARD, TRANSITION, gamma=GAMMA, form="minimal")
  for _ in range(5):
    h_Z = .1 * RNG.normal(size=STATES)
    moved = c_ZA + GAMMA * TRANSITION @ h_Z - h_Z[:, None]
    assert np.linalg.norm(moved) > np.linalg.norm(c_ZA)
  with pytest.raises(ValueError, match="form='epic': one of"):
    starc.canonical(REWARD, TRANSITION, form="epic")
