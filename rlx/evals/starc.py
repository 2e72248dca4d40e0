"""Distance of two reward functions of a small tabular problem. Pure numpy, host side.

Z counts states, A actions. A state without successors (a row of zeros in the
transition) ends the episode: with it gamma = 1 is fine, as on a tree of tokens.

STARC, Skalse et al. 2023, arXiv:2309.15257.
"""
import numpy as np

from rlx.core import axes

FORMS = ("value", "minimal")


def canonical(reward_ZAZ, transition_ZAZ, policy_ZA=None, *, gamma=1.0, form="value"):
  """A reward without what no policy can tell: potentials and the next state's luck.

    value:    c(s, a) = E_s'[R(s, a, s') + gamma V(s')] - V(s),   V of the policy
    minimal:  c(s, a) = E_s'[R(s, a, s') + gamma h(s')] - h(s),   h: least |c|_2

  Two rewards of equal c order policies alike.

  Source: Skalse et al. 2023, arXiv:2309.15257: value-adjusted levelling and the
  minimal canonicalisation. Differs from the paper: c is a table over (s, a), not
  over (s, a, s') as well, and the least norm is taken there.

  Args:
    reward_ZAZ: R(s, a, s'); anything where the transition is 0.
    transition_ZAZ: probabilities of s' that sum to 1, or to 0 where it all ends.
    policy_ZA: of V; None is uniform.
    gamma: discount; < 1 if an episode need not end.
    form: value or minimal.
  Returns:
    c_ZA.
  Raises:
    ValueError: unknown form.
  """
  if form not in FORMS: raise ValueError(f"form={form!r}: one of {FORMS}.")
  reward_ZAZ, transition_ZAZ = np.asarray(reward_ZAZ), np.asarray(transition_ZAZ)
  sizes = axes.dims(reward_ZAZ=reward_ZAZ, transition_ZAZ=transition_ZAZ)
  reward_ZA = np.sum(np.where(transition_ZAZ > 0, transition_ZAZ * reward_ZAZ, 0), axis=2)
  # What a potential of 1 at one state adds to every (s, a).
  shape_ZAZ = gamma * transition_ZAZ - np.eye(sizes["Z"])[:, None]
  if form == "minimal":
    # The least-norm solution: no potential where the episode has ended.
    goes_on_Z = transition_ZAZ.any(axis=(1, 2))
    potential_Z = np.linalg.lstsq((shape_ZAZ * goes_on_Z).reshape(-1, sizes["Z"]),
                                  -reward_ZA.reshape(-1), rcond=None)[0]
  else:
    if policy_ZA is None: policy_ZA = np.full(reward_ZA.shape, 1 / sizes["A"])
    potential_Z = np.linalg.solve(np.einsum("ZA,ZAY->ZY", policy_ZA, shape_ZAZ),
                                  -np.sum(policy_ZA * reward_ZA, axis=1))
  return reward_ZA + shape_ZAZ @ potential_Z


def distance(first_ZAZ, second_ZAZ, transition_ZAZ, policy_ZA=None, *, gamma=1.0,
             form="value"):
  """STARC: 0 if two rewards order all policies alike, 2 if they order them backwards.

    d = | s(R1) - s(R2) |_2,   s(R) = c(R) / |c(R)|_2, or 0 where c(R) = 0

  Source: Skalse et al. 2023, arXiv:2309.15257. Differs from the paper: as
  `canonical`; c counts as 0 below 1e-9 of the reward, which is rounding.

  Args, Raises: as `canonical`.
  Returns:
    float in [0, 2].
  """
  def standard(reward_ZAZ):
    c_ZA = canonical(reward_ZAZ, transition_ZAZ, policy_ZA, gamma=gamma, form=form)
    reachable_ZAZ = np.where(np.asarray(transition_ZAZ) > 0, reward_ZAZ, 0)
    size = np.linalg.norm(c_ZA)
    return c_ZA / size if size > 1e-9 * np.linalg.norm(reachable_ZAZ) else 0 * c_ZA
  return float(np.linalg.norm(standard(first_ZAZ) - standard(second_ZAZ)))
