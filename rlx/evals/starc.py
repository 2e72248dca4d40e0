"""Distance of two reward functions of a small tabular problem. Pure numpy, host side.

Z counts states, A actions. A state without successors (a row of zeros in the transition) ends the
episode; if all episodes end, gamma may be 1, as on a tree of tokens.

STARC, Skalse et al. 2023, arXiv:2309.15257.
"""
import numpy as np

from rlx.core import axes

def canonicalize(reward_ZAZ: np.ndarray, transition_ZAZ: np.ndarray,
                 policy_ZA: np.ndarray | None = None, *, gamma: float = 1.0) -> np.ndarray:
  """A reward without the parts that do not change the order of policies.

    c(s, a) = E_s'[R(s, a, s') + gamma V(s')] - V(s),   V of the policy

  These parts are potentials and the deviation from the mean over next states: two rewards with
  equal c order policies alike.

  Source: Skalse et al. 2023, arXiv:2309.15257, value-adjusted levelling. Differs from
  the paper: c is a table over (s, a), not over (s, a, s').

  Args:
    reward_ZAZ: R(s, a, s'); anything where the transition is 0.
    transition_ZAZ: probabilities of s' that sum to 1, or to 0 where the episode ends.
    policy_ZA: whose values V are; None is uniform.
    gamma: discount; < 1 if an episode need not end.
  Returns:
    c_ZA.
  Example:
    >>> transition_ZAZ = np.array([[[0, 1., 0], [0, 0, 1.]], np.zeros((2, 3)), np.zeros((2, 3))])
    >>> starc.canonicalize(np.array([[[0, 1., 0], [0, 0, 0]]] * 3), transition_ZAZ)
    array([[ 0.5, -0.5],
           [ 0. ,  0. ],
           [ 0. ,  0. ]])
  """
  reward_ZAZ, transition_ZAZ = np.asarray(reward_ZAZ), np.asarray(transition_ZAZ)
  sizes = axes.dims(reward_ZAZ=reward_ZAZ, transition_ZAZ=transition_ZAZ)
  reward_ZA = np.sum(np.where(transition_ZAZ > 0, transition_ZAZ * reward_ZAZ, 0), axis=2)
  # The change of every (s, a) by a potential of 1 at one state.
  shape_ZAZ = gamma * transition_ZAZ - np.eye(sizes["Z"])[:, None]
  if policy_ZA is None: policy_ZA = np.full(reward_ZA.shape, 1 / sizes["A"])
  potential_Z = np.linalg.solve(np.einsum("ZA,ZAY->ZY", policy_ZA, shape_ZAZ),
                                -np.sum(policy_ZA * reward_ZA, axis=1))
  return reward_ZA + shape_ZAZ @ potential_Z


def distance(first_ZAZ: np.ndarray, second_ZAZ: np.ndarray, transition_ZAZ: np.ndarray,
             policy_ZA: np.ndarray | None = None, *, gamma: float = 1.0) -> float:
  """STARC: 0 if two rewards order all policies alike, 2 if in the opposite order.

    d = | s(R1) - s(R2) |_2,   s(R) = c(R) / |c(R)|_2, or 0 where c(R) = 0

  Source: Skalse et al. 2023, arXiv:2309.15257. Differs from the paper: as
  `canonicalize`; c below 1e-9 of the reward counts as 0, because it is rounding.

  Args: as `canonicalize`.
  Returns:
    float in [0, 2].
  """
  def standard(reward_ZAZ):
    c_ZA = canonicalize(reward_ZAZ, transition_ZAZ, policy_ZA, gamma=gamma)
    reachable_ZAZ = np.where(np.asarray(transition_ZAZ) > 0, reward_ZAZ, 0)
    size = np.linalg.norm(c_ZA)
    return c_ZA / size if size > 1e-9 * np.linalg.norm(reachable_ZAZ) else 0 * c_ZA
  return float(np.linalg.norm(standard(first_ZAZ) - standard(second_ZAZ)))
