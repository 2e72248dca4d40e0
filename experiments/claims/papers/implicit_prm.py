"""Two PRMs, tables with an entry for every prefix, select the best of 16 completions.

A completion has four steps, and any wrong step makes it wrong: one completion in 16 is right.
Both PRMs learn from the same 16 completions of every prompt. The implicit PRM learns from their
verdicts; the other PRM learns by cross-entropy from hard labels, for which 8 rollouts are
sampled after each step, 33 times as many completions. Both score a completion by its lowest
step.
"""
import jax
import jax.numpy as jnp
import optax

from configs.papers import implicit_prm
from experiments.claims.environments import learn, steps, tabular
from rlx.evals import best_of_n
from rlx.losses import reward_model
from rlx.rewards import step_labels

MEASURE = "best-of-16 accuracy of an implicit PRM minus that of a PRM with Monte Carlo labels"
MARGIN, RATE = 0.05, 0.05
FIRST = ("opposite", None)
TREE = tabular.Tree(prompts=16, vocab=4, length=4)
GROUP, ROLLOUTS, TESTS = 16, 8, 4


def prefixes(batch):
  return batch.prompt_B[:, None], batch.nodes_BT * TREE.vocab + batch.tokens_BT + 1


def implicit(key, ok_PNV, policy, batch, rate):
  """Returns a function from a batch to steps_BT, with rewards learned from verdicts."""
  del key
  learned = steps.learn_prm(implicit_prm.get_config(), ok_PNV, policy, batch, GROUP, rate)
  return lambda batch: tabular.logps(learned, batch)[0] - tabular.logps(policy, batch)[0]


def labelled(key, ok_PNV, policy, batch, rate):
  """Returns a function from a batch to steps_BT, learned from rollouts after every step."""
  values_PM = TREE.values(policy, 1.0 * steps.right_leaves(TREE, ok_PNV))
  wins_RBT = (jax.random.uniform(key, (ROLLOUTS, *batch.mask_BT.shape))
              < values_PM[prefixes(batch)])
  labels_BT = step_labels.from_values(wins_RBT.mean(axis=0), batch.mask_BT, kind="hard")
  learned_PM = learn.descend(jnp.zeros_like(values_PM), lambda x_PM, _: reward_model.bce(
      *map(jnp.ravel, (x_PM[prefixes(batch)], labels_BT, batch.mask_BT))),
                             optax.adam(rate), steps=200)
  return lambda batch: jax.nn.sigmoid(learned_PM[prefixes(batch)])


def arms():
  def best(prm):
    def run(seed, rate):
      keys = jax.random.split(jax.random.key(seed), 5)
      ok_PNV, policy = steps.right_steps(keys[0], TREE, 2), TREE.start(keys[1], 1.0)
      steps_of = prm(keys[2], ok_PNV, policy, TREE.sample(keys[3], policy, GROUP), rate)
      test = TREE.sample(keys[4], policy, TESTS * GROUP)
      return steps_of(test), steps.verdict_B(ok_PNV, test)

    return learn.arm(run, lambda steps_BT, outcome_B: best_of_n.best_of_n(
        best_of_n.score(steps_BT).reshape(-1, GROUP), outcome_B.reshape(-1, GROUP)))
  return {"implicit PRM": best(implicit), "Monte Carlo labels": best(labelled)}
