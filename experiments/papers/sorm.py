"""GLoRe: When, Where, and How to Improve LLM Reasoning via Global and Local Refinements
(arXiv:2402.10963).

Completions are trees of four steps, of which one in 20 is right. A step is wrong if no right
completion continues from it.

A logit is learned for every prefix from the labels of 32 sampled completions per prompt. A
stepwise outcome model (SORM) labels a step with whether any of 8 rollouts from it, or from a
later step, is right. An outcome model (ORM) labels all steps with the completion's own
outcome. Both losses balance the classes. A real model would also generalise from one prefix to
others, which is not simulated.

Confidence in the formula: medium.
"""
import functools

import jax
import jax.numpy as jnp
import optax

from experiments.environments import learn
from experiments.environments import tabular
from rlx.losses import reward_model
from rlx.rewards import step_labels

CLAIMS = (
    "stepwise outcome models find wrong steps better than outcome models",
    "outcome models rerank final answers better",
)
CLAIM = 0
MEASURE = "balanced accuracy on steps with the labels of SORM minus with those of ORM"
MARGIN, RATE = 0.05, 100.0
FIRST = ("confirmed", None)
ILLUSTRATION = ("The labels of SORM are what is measured, except for what eight rollouts miss, and "
                "they need eight times as many completions.")
TREE = tabular.Tree(prompts=8, vocab=4, length=4)


def after(batch):
  """Returns the index of the prefix after each step of a completion, [B, T], leaves included."""
  return batch.nodes_BT * 4 + batch.tokens_BT + 1


def accuracy(seed, rate, *, stepwise):
  """Balanced accuracy on the steps that the policy takes; a logit of 0 counts as half right."""
  keys = jax.random.split(jax.random.key(seed), 5)
  right_PL = jax.random.bernoulli(keys[0], 0.05, (8, 256))
  logits_PNV = TREE.start(keys[1], 1.0)
  chance_PL = jnp.exp(TREE.leaf_logps(logits_PNV))
  tokens_LT, mask_LT = map(jnp.asarray, TREE.leaves)
  after_LT = after(TREE.batch(jnp.zeros(256, int), tokens_LT, mask_LT))

  def below(x_PL):
    """Returns the sum over the completions that start with each prefix, [P, prefixes]."""
    return jnp.zeros((8, TREE.nodes + 256)).at[:, after_LT].add(x_PL[:, :, None])

  visits_PN, open_PN = below(chance_PL), below(1.0 * right_PL) > 0
  values_PN = below(chance_PL * right_PL) / jnp.where(visits_PN > 0, visits_PN, 1)
  batch = TREE.sample(keys[2], logits_PNV, 32)
  at = batch.prompt_B[:, None], after(batch)
  reached_BJ = jax.random.binomial(keys[3], 8, values_PN[at]) / 8
  if stepwise:
    labels_BJ = step_labels.from_values(reached_BJ, batch.mask_BT, kind="monotone")
  else:
    labels_BJ = jnp.broadcast_to(values_PN[at][:, -1:], reached_BJ.shape)  # The last is the leaf's.

  def loss(scores_PN, _):
    return reward_model.bce(scores_PN[at].ravel(), labels_BJ.ravel(), batch.mask_BT.ravel(),
                            balanced=True)

  scores_PN = learn.descend(jnp.zeros(visits_PN.shape), loss, optax.sgd(rate), steps=300)
  said_PN = (1 + jnp.sign(scores_PN)) / 2
  def recall(said_PN, is_PN):
    return jnp.sum(visits_PN * said_PN * is_PN) / jnp.sum(visits_PN * is_PN)
  return (recall(said_PN, open_PN) + recall(1 - said_PN, ~open_PN)) / 2


def arms():
  def arm(stepwise):
    return jax.jit(jax.vmap(functools.partial(accuracy, stepwise=stepwise)))
  return {"SORM": arm(True), "ORM": arm(False)}
