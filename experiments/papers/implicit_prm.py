"""Best of 16 by two PRMs, tables with an entry for every prefix.

Of a completion in four steps any wrong one spoils it: one in 16 is right. Both PRMs
see the same 16 completions of every prompt. The implicit one learns from their
verdicts; the other from hard labels of 8 rollouts after each of their steps, 33 times
as many completions, by cross-entropy. Both rank by the lowest step.
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax

from configs.papers import implicit_prm
from experiments.worlds import steps
from experiments.worlds import tabular
from rlx import methods
from rlx.core import records
from rlx.evals import best_of_n
from rlx.losses import reward_model
from rlx.rewards import step_labels

CLAIM = 0
MEASURE = ("accuracy of the best of 16 by an implicit PRM less that by a PRM of Monte "
           "Carlo labels")
GROUP, ROLLOUTS = 16, 8


def prefix_values(world, logits_PNV, right_PL):
  """values_PM: chance of a right answer from every prefix, whole ones included."""
  value_PN, levels = 1.0 * right_PL, [1.0 * right_PL]
  for t in reversed(range(world.length)):
    first, count = (world.vocab**t - 1) // (world.vocab - 1), world.vocab**t
    probs_PNV = jax.nn.softmax(logits_PNV[:, first:first + count])
    value_PN = jnp.sum(probs_PNV * value_PN.reshape(probs_PNV.shape), axis=2)
    levels.insert(0, value_PN)
  return jnp.concatenate(levels, axis=1)


def fit(loss, start):
  tx = optax.adam(0.05)
  def step(carry, _):
    params, state = carry
    updates, state = tx.update(jax.grad(loss)(params), state)
    return (optax.apply_updates(params, updates), state), None
  return jax.lax.scan(step, (start, tx.init(start)), length=300)[0][0]


def effects(seeds):
  world = tabular.Tree(prompts=64, vocab=4, length=4)
  ok_PNV = steps.right_steps(jax.random.key(0), world, 2)
  right_PL = steps.right_leaves(world, ok_PNV)
  c = implicit_prm.get_config()
  prm_loss = methods.of(c).prm

  def prefixes(batch):
    return batch.prompt_B[:, None], batch.nodes_BT * world.vocab + batch.tokens_BT + 1

  @jax.jit
  @jax.vmap
  def run(seed):
    keys = jax.random.split(jax.random.key(seed), 4)
    policy = world.start(keys[0], 1.0)
    batch, test = (world.sample(key, policy, GROUP) for key in keys[1:3])
    scored = records.Scored(
        mask_BT=batch.mask_BT, outcome_B=steps.verdict_B(ok_PNV, batch), group=GROUP,
        ref_logps_BT=tabular.logps(policy, batch)[0],
        prm_beta_B=jnp.full(len(batch.mask_BT), c.prm.beta))
    implicit = fit(lambda x: prm_loss(scored.replace(
        prm_logps_BT=tabular.logps(x, batch)[0])).mean(), policy)

    values_PM = prefix_values(world, policy, right_PL)
    wins_RBT = (jax.random.uniform(keys[3], (ROLLOUTS, *batch.mask_BT.shape))
                < values_PM[prefixes(batch)])
    labels_BT = step_labels.from_values(wins_RBT.mean(axis=0), batch.mask_BT, kind="hard")
    labelled_PM = fit(lambda x_PM: reward_model.bce(
        *map(jnp.ravel, (x_PM[prefixes(batch)], labels_BT, batch.mask_BT))).mean(),
                      jnp.zeros_like(values_PM))
    ratio_BT = tabular.logps(implicit, test)[0] - tabular.logps(policy, test)[0]
    return (ratio_BT, jax.nn.sigmoid(labelled_PM[prefixes(test)]),
            steps.verdict_B(ok_PNV, test))

  def best(steps_BT, outcome_B):
    return best_of_n.best_of_n(best_of_n.score(steps_BT).reshape(-1, GROUP),
                               outcome_B.reshape(-1, GROUP))

  return [best(ratio_BT, outcome_B) - best(labelled_BT, outcome_B) for
          ratio_BT, labelled_BT, outcome_B in zip(*map(np.asarray, run(jnp.array(seeds))))]
