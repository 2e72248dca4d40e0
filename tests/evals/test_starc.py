import numpy as np
import pytest

from rlx.evals import starc

STATES, ACTIONS, GAMMA = 4, 3, 0.9
RNG = np.random.default_rng(0)
TRANSITION = RNG.dirichlet(np.ones(STATES), (STATES, ACTIONS))
REWARD = RNG.normal(size=(STATES, ACTIONS, STATES))
# A tree: 0 -> 1 or 2, each -> 3 or 4, which end it.
TREE = np.zeros((5, 2, 5))
for state, nexts in enumerate([(1, 2), (3, 4), (3, 4)]): TREE[state, [0, 1], nexts] = 1
PAID = np.zeros(TREE.shape)
PAID[1, 0, 3] = 1.0  # The reward of the step from state 1 to state 3.


def shaped(reward_ZAZ, transition_ZAZ, gamma, potential_Z):
  """Positive scale, potential, and noise whose mean over the next state is 0."""
  noise = RNG.normal(size=reward_ZAZ.shape)
  noise -= np.sum(noise * transition_ZAZ, axis=2, keepdims=True)
  return 3 * reward_ZAZ + gamma * potential_Z - potential_Z[:, None, None] + noise


def test_parts_that_do_not_order_policies_have_no_distance():
  again = shaped(REWARD, TRANSITION, GAMMA, RNG.normal(size=STATES))
  measure = lambda a, b: starc.distance(a, b, TRANSITION, gamma=GAMMA)
  assert measure(REWARD, again) < 1e-9
  assert measure(REWARD, -again) == pytest.approx(2)
  # Shaping alone is at distance 0 from no reward, and 1 from any other.
  nothing = shaped(0 * REWARD, TRANSITION, GAMMA, RNG.normal(size=STATES))
  assert measure(nothing, 0 * REWARD) == 0
  assert measure(nothing, REWARD) == pytest.approx(1)
  other = RNG.normal(size=REWARD.shape)
  assert 0.01 < measure(REWARD, other) == pytest.approx(measure(other, again))


def test_on_a_tree():
  potential = np.array([.3, -2., 5., 0., 0.])  # 0 where episodes end
  noisy = np.where(TREE > 0, shaped(PAID, TREE, 1.0, potential), np.nan)
  assert starc.distance(PAID, noisy, TREE) < 1e-9
  # A potential at an end is a reward for ending there.
  other = shaped(PAID, TREE, 1.0, potential + np.eye(5)[3])
  assert starc.distance(PAID, other, TREE) > 0.1


def test_on_a_tree_it_is_the_advantage_of_each_step():
  # Half of the paths from state 1 are right: V = 1/4, 1/2, 0.
  np.testing.assert_allclose(starc.canonicalize(PAID, TREE), [
      [1/4, -1/4], [1/2, -1/2], [0, 0], [0, 0], [0, 0]], atol=1e-12)
  # The policy that always reaches the reward.
  policy = np.array([[1., 0.]] * 5)
  np.testing.assert_allclose(starc.canonicalize(PAID, TREE, policy), [
      [0, -1], [0, -1], [0, 0], [0, 0], [0, 0]], atol=1e-12)
