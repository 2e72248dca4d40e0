"""STARC: A General Framework For Quantifying Differences Between Reward Functions
(arXiv:2309.15257).

The check draws random decision problems of 8 states and 3 actions, in which most transitions
are unlikely, and pairs of reward functions. The second reward of a pair is the first one mixed
with another, scaled, and shaped by a potential. The regret of a pair is what the best policy
for the second reward loses of the first. The claim is that STARC's distance has a higher rank
correlation with the regret than EPIC's (Gleave et al. 2020, arXiv:2006.13900).

Confidence in the formula: medium.
"""
import numpy as np
from scipy import stats

from rlx.evals import starc

CLAIMS = ("its distance correlates with regret more closely than EPIC's",
          "it does not depend on potentials and scale")
MEASURE = "rank correlation with regret over pairs of rewards: STARC minus EPIC"
MARGIN, FIRST = 0.05, ("confirmed", None)
Z, A, GAMMA, PAIRS = 8, 3, 0.9, 200


def epic(first_ZAZ, second_ZAZ):
  """Returns EPIC's distance, with uniform distributions of states and actions."""
  def centred(reward_ZAZ):
    mean_Z = reward_ZAZ.mean(axis=(1, 2))
    canonical_ZAZ = reward_ZAZ + GAMMA * mean_Z - mean_Z[:, None, None]
    return (canonical_ZAZ - canonical_ZAZ.mean()).ravel()
  first, second = centred(first_ZAZ), centred(second_ZAZ)
  cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
  return np.sqrt(max(1 - cosine, 0) / 2)


def best(reward_ZAZ, transition_ZAZ):
  """Returns the best policy, an action for each state, by policy iteration."""
  action_Z = np.zeros(Z, int)
  while True:
    value_Z = value(action_Z, reward_ZAZ, transition_ZAZ)
    gain_ZA = np.sum(transition_ZAZ * (reward_ZAZ + GAMMA * value_Z), axis=2)
    held_Z = gain_ZA[np.arange(Z), action_Z]
    better_Z = np.where(gain_ZA.max(1) > held_Z + 1e-9, gain_ZA.argmax(1), action_Z)
    if (better_Z == action_Z).all(): return action_Z
    action_Z = better_Z


def value(action_Z, reward_ZAZ, transition_ZAZ):
  to_ZZ = transition_ZAZ[np.arange(Z), action_Z]
  now_Z = np.sum(to_ZZ * reward_ZAZ[np.arange(Z), action_Z], axis=1)
  return np.linalg.solve(np.eye(Z) - GAMMA * to_ZZ, now_Z)


def effect(rng):
  rows = []
  for _ in range(PAIRS):
    transition_ZAZ = rng.dirichlet(np.full(Z, 0.3), size=(Z, A))
    first_ZAZ, other_ZAZ = rng.normal(size=(2, Z, A, Z))
    share, potential_Z = rng.random(), rng.normal(size=Z)
    second_ZAZ = np.exp(rng.normal()) * (
        (1 - share) * first_ZAZ + share * other_ZAZ
        + GAMMA * potential_Z - potential_Z[:, None, None])
    def return_of_best(by_ZAZ):
      return value(best(by_ZAZ, transition_ZAZ), first_ZAZ, transition_ZAZ).mean()
    high, low = return_of_best(first_ZAZ), return_of_best(-first_ZAZ)
    rows.append((starc.distance(first_ZAZ, second_ZAZ, transition_ZAZ, gamma=GAMMA),
                 epic(first_ZAZ, second_ZAZ), (high - return_of_best(second_ZAZ)) / (high - low)))
  starc_N, epic_N, regret_N = zip(*rows)
  return (stats.spearmanr(starc_N, regret_N).statistic
          - stats.spearmanr(epic_N, regret_N).statistic)


def effects(seeds):
  return {"EPIC": [effect(np.random.default_rng(seed)) for seed in seeds]}
