"""DPO on pairs from a reference that prefers some tokens by nats, for reasons that have
nothing to do with the quality of a completion: a sum over its tokens. Pairs of the
benchmark are of any completions, scored with the reference and without. Its subsets
and sections are left out."""
import jax
import jax.numpy as jnp
import numpy as np

from experiments.worlds import tabular
from experiments.worlds import verdicts
from rlx.evals import reward_model
from rlx.losses import prm

PAPER = dict(
    title="RewardBench: Evaluating Reward Models for Language Modeling",
    arxiv="2403.13787",
    claims=("models trained by DPO rank completions worse without their reference",),
    confidence="high")
CLAIM = 0
MEASURE = "accuracy on pairs of log pi / pi_ref less that of log pi alone"
REVISED = ("not seen with 200 steps at a larger "
           "rate, after which DPO is far from its reference")
GROUP, BETA = 8, 0.1


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=3)
  worth_PNV = jax.random.normal(jax.random.key(0), world.start().shape)
  worth = lambda batch: worth_PNV[
      batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT].sum(axis=1)
  worth_PL = np.asarray(verdicts.of_leaves(world, worth))

  def trained(seed):
    start_key, key = jax.random.split(jax.random.key(seed))
    reference = world.start(start_key, 2.0)
    def step(logits_PNV, key):
      batch = world.sample(key, reference, GROUP)
      worth_PG = worth(batch).reshape(-1, GROUP)
      def loss(x):
        return prm.dpo(tabular.logps(x, batch)[0], tabular.logps(reference, batch)[0],
                       batch.mask_BT, worth_PG, jnp.ones_like(worth_PG, bool),
                       prm_beta=BETA).mean()
      return logits_PNV - 20 * jax.grad(loss)(logits_PNV), None
    logits_PNV, _ = jax.lax.scan(step, reference, jax.random.split(key, 50))
    return world.leaf_logps(logits_PNV), world.leaf_logps(reference)

  found = []
  for seed, own_PL, ref_PL in zip(seeds, *map(np.asarray, jax.jit(jax.vmap(trained))(
      jnp.asarray(seeds)))):
    rng = np.random.default_rng(seed)
    first_P500, second_P500 = rng.integers(worth_PL.shape[1], size=(2, 8, 500))
    better = lambda pick: np.where(
        np.take_along_axis(worth_PL, first_P500, 1)
        > np.take_along_axis(worth_PL, second_P500, 1), *pick)
    chosen = better((first_P500, second_P500))
    rejected = better((second_P500, first_P500))
    pairs_P500 = chosen != rejected
    def accuracy(score_PL):
      at = lambda leaf: np.take_along_axis(score_PL, leaf, 1)[pairs_P500]
      return reward_model.pair_accuracy(at(chosen), at(rejected))
    found.append(accuracy(BETA * (own_PL - ref_PL)) - accuracy(own_PL))
  return found
