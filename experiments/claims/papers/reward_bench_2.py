"""RewardBench 2: Advancing Reward Model Evaluation (arXiv:2506.01937).

Twenty reward models differ in the noise of their scores. Each scores the same 16 prompts, for
which a tenth of 64 possible completions are right. Three results of each reward model are
compared: the benchmark's best of four (one right completion, the candidates are any
completions), best of 16 sampled from an uneven policy, and PPO from that policy on
standardised scores. PPO has the learning rate of the best accuracy, and its advantages are
whitened over all reward models. Left out are ties and reward models of another lineage than
the policy's, which the paper finds worse for PPO.

Confidence in the formula: high.
"""
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from configs.papers import ppo
from experiments.claims.environments import tabular
from rlx.evals import best_of_n, reward_model

CLAIMS = ("its score correlates with the result of best of n, and less with that of PPO",)
MEASURE = ("rank correlation of the benchmark with best of 16, over reward models, minus that with "
           "PPO")
MARGIN, RATE = 0.05, 160.0
FIRST = ("not seen", "there were half as many prompts")
MODELS, PROMPTS, SETS = 20, 16, 32
TREE = tabular.Tree(prompts=MODELS * PROMPTS, vocab=8, length=2)  # Row m PROMPTS + p.


def drawn(key):
  """Returns (right_PL, scores_PL, start_PNV) of all prompts of all models."""
  keys = jax.random.split(key, 4)
  right_QL = jax.random.uniform(keys[0], (PROMPTS, 64)) < 0.1
  right_QL = right_QL.at[:, 0].set(right_QL[:, 0] | ~right_QL.any(axis=1))
  noise_M = tabular.around(keys[1], jnp.linspace(0.2, 1.5, MODELS))
  score_MQL = right_QL + noise_M[:, None, None] * jax.random.normal(keys[2], (MODELS, PROMPTS, 64))
  score_PL = score_MQL.reshape(-1, 64)
  score_PL -= score_PL.mean(axis=1, keepdims=True)
  start_QNV = 1.5 * jax.random.normal(keys[3], (PROMPTS, TREE.nodes, 8))
  return (jnp.tile(right_QL, (MODELS, 1)), score_PL / score_PL.std(axis=1, keepdims=True),
          jnp.tile(start_QNV, (MODELS, 1, 1)))


def environment(key):
  _, score_PL, start_PNV = drawn(key)
  return tabular.Environment(TREE.verifier(outcome_B=score_PL), TREE.means(), start=start_PNV)


def correlations(seed, trained_PNV):
  """Returns (the benchmark's correlation with best of 16 less that with PPO, PPO's accuracy)."""
  right_PL, score_PL, start_PNV = drawn(tabular.environment_key(seed))
  policy_PL = np.asarray(jnp.exp(TREE.leaf_logps(start_PNV)), float)
  ppo_P = TREE.expected_P(trained_PNV, right_PL)
  rng, bench_P, best_P = np.random.default_rng(seed), [], []
  for right_L, score_L, policy_L in zip(np.asarray(right_PL), np.asarray(score_PL), policy_PL):
    pick = lambda among_L, n: rng.choice(64, (SETS, n), p=among_L / among_L.sum())
    four_PG = np.concatenate([pick(right_L, 1), pick(~right_L, 3)], axis=1)
    bench_P.append(reward_model.one_to_many(score_L[four_PG], right_L[four_PG])["top"])
    sampled_PG = pick(policy_L, 16)
    best_P.append(best_of_n.best_of_n(score_L[sampled_PG], 1.0 * right_L[sampled_PG]))
  bench_M, best_M, ppo_M = (np.reshape(x_P, (MODELS, PROMPTS)).mean(axis=1)
                            for x_P in (bench_P, best_P, ppo_P))
  return (stats.spearmanr(bench_M, best_M).statistic
          - stats.spearmanr(bench_M, ppo_M).statistic), ppo_M.mean()


def arms():
  def less_than_best_of_n(seeds, rates):
    _, trained_IPNV = tabular.train(
        ppo.get_config(), TREE, environment, seeds=seeds, lr=rates, steps=100)
    return tuple(zip(*map(correlations, seeds, jnp.asarray(trained_IPNV))))
  return {"PPO": less_than_best_of_n}
