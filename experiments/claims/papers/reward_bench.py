"""RewardBench: Evaluating Reward Models for Language Modeling (arXiv:2403.13787).

DPO is trained on pairs sampled from a reference that prefers some tokens by several nats,
independently of the quality of a completion, which is a sum over its tokens. The benchmark's
pairs are all pairs of two completions. The arms score them with the trained policy's
log-ratio to the reference or with its log-probability alone; the accuracy on pairs is
measured. Both arms have the learning rate of the best policy. The benchmark's subsets and
sections are left out.

Confidence in the formula: high.
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.claims.environments import learn, tabular, verdicts
from rlx.evals import reward_model
from rlx.losses import prm

CLAIMS = ("models trained by DPO rank completions worse without their reference",)
MEASURE = "accuracy on pairs by log pi / pi_ref minus that by log pi alone"
MARGIN, RATE = 0.05, 20.0
FIRST = ("not seen", "DPO was far from its reference after 200 steps at a larger learning rate")
TREE, GROUP, BETA = tabular.Tree(prompts=8, vocab=4, length=3), 8, 0.1


@jax.jit
@jax.vmap
def trained(seed, rate):
  """Returns (log-probs of the policy, log-probs of the reference, quality), all [P, L]."""
  keys = jax.random.split(jax.random.key(seed), 3)
  worth_PNV = jax.random.normal(keys[0], TREE.start().shape)
  reference = TREE.start(keys[1], 2.0)
  def worth(batch):
    return worth_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT].sum(axis=1)
  def loss(logits_PNV, key):
    batch = TREE.sample(key, reference, GROUP)
    worth_PG = worth(batch).reshape(-1, GROUP)
    return prm.dpo(tabular.logps(logits_PNV, batch)[0], tabular.logps(reference, batch)[0],
                   batch.mask_BT, worth_PG, jnp.ones_like(worth_PG, bool), prm_beta=BETA)
  logits_PNV = learn.descend(reference, loss, optax.sgd(rate),
                             batches=jax.random.split(keys[2], 50))
  return (TREE.leaf_logps(logits_PNV), TREE.leaf_logps(reference), verdicts.of_leaves(TREE, worth))


def arms():
  one_X, two_X = np.triu_indices(4 ** 3, 1)
  def accuracy(score_of):
    def arm(seeds, rates):
      own_IPL, ref_IPL, worth_IPL = map(np.asarray, trained(seeds, rates))
      first_IPX = worth_IPL[..., one_X] > worth_IPL[..., two_X]
      chosen_IPX, rejected_IPX = (np.where(first_IPX, *x) for x in ((one_X, two_X), (two_X, one_X)))
      at = lambda leaf_IPX: np.take_along_axis(score_of(own_IPL, ref_IPL), leaf_IPX, 2)
      accuracies = [reward_model.pair_accuracy(*x) for x in zip(at(chosen_IPX), at(rejected_IPX))]
      return accuracies, np.sum(np.exp(own_IPL) * worth_IPL, axis=2).mean(axis=1)
    return arm
  return {"with the reference": accuracy(lambda own, ref: BETA * (own - ref)),
          "without": accuracy(lambda own, ref: own)}
