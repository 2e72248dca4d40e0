"""Twenty reward models that differ in the noise of their scores, each on 16 prompts
with a tenth of 64 completions right, for every seed. The best of four of a benchmark
(one right, any completions), best of 16 of an uneven policy, and PPO from that
policy on standardised scores. Models of another lineage than the policy's, which the
paper finds worse for PPO, are left out; so are ties.
"""
import jax.numpy as jnp
import numpy as np
from scipy import stats

from configs.papers import ppo
from experiments.worlds import tabular
from experiments.worlds import verdicts
from rlx.evals import best_of_n
from rlx.evals import reward_model

PAPER = dict(
    title="RewardBench 2: Advancing Reward Model Evaluation",
    arxiv="2506.01937",
    claims=("its score goes with that of best of n, less with that of PPO",),
    confidence="high")
CLAIM = 0
MEASURE = ("rank correlation over reward models of the benchmark with best of 16 "
           "less that with PPO")
REVISED = "not seen with half as many prompts"
MODELS, PROMPTS, SETS = 20, 16, 32


def effects(seeds):
  # All seeds and models in one world: row (i MODELS + m) PROMPTS + p of its prompts.
  world = tabular.Tree(prompts=len(seeds) * MODELS * PROMPTS, vocab=8, length=2)
  def draw(seed):
    rng = np.random.default_rng(seed)
    right_QL = rng.random((PROMPTS, 64)) < 0.1
    right_QL[:, 0] |= ~right_QL.any(axis=1)
    noise_MQL = (np.linspace(0.2, 1.5, MODELS)[:, None, None]
                 * rng.normal(size=(MODELS, PROMPTS, 64)))
    start_QNV = 1.5 * rng.normal(size=(PROMPTS, world.nodes, world.vocab))
    of_models = lambda x: np.broadcast_to(x, (MODELS, *x.shape))
    return of_models(right_QL), right_QL + noise_MQL, of_models(start_QNV)
  right_PL, score_PL, start_PNV = (
      np.reshape(x, (world.prompts, *x[0].shape[2:])) for x in zip(*map(draw, seeds)))
  score_PL = score_PL - score_PL.mean(axis=1, keepdims=True)
  score_PL /= score_PL.std(axis=1, keepdims=True)

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    return dict(outcome_B=jnp.asarray(score_PL)[
        batch.prompt_B, world.leaf_B(batch)])

  _, (logits_PNV,) = tabular.train(
      ppo.get_config(), world, judge, verdicts.accuracy(world, jnp.asarray(right_PL)),
      seeds=(0,), steps=150, lr=0.5 * world.prompts,
      start=lambda key: jnp.asarray(start_PNV))
  ppo_P = np.asarray(world.expected_P(jnp.asarray(logits_PNV), jnp.asarray(right_PL)))
  policy_PL = np.asarray(jnp.exp(world.leaf_logps(jnp.asarray(start_PNV))))

  rng = np.random.default_rng(list(seeds))
  bench_P, best_P = [], []
  for right_L, score_L, policy_L in zip(right_PL, score_PL, policy_PL):
    pick = lambda among_L, n: rng.choice(64, (SETS, n), p=among_L / among_L.sum())
    four_PG = np.concatenate([pick(right_L, 1), pick(~right_L, 3)], axis=1)
    bench_P.append(reward_model.one_to_many(score_L[four_PG], right_L[four_PG])["top"])
    sampled_PG = pick(policy_L.astype(float), 16)
    best_P.append(best_of_n.best_of_n(score_L[sampled_PG], 1.0 * right_L[sampled_PG]))
  bench, best, trained = (np.reshape(x_P, (len(seeds), MODELS, PROMPTS)).mean(axis=2)
                          for x_P in (bench_P, best_P, ppo_P))
  return [stats.spearmanr(b, n).statistic - stats.spearmanr(b, p).statistic
          for b, n, p in zip(bench, best, trained)]
