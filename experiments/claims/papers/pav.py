"""Three rewards of steps on chains (environments/chains.py): the progress of a
step, the value after it, and none.

The value of every prefix is exact. Its prover is the best of 128 completions of the current
policy, which solves nearly every prompt. All arms have the verdict's reward, too; with
progress this is the paper's gradient, Q + alpha A. The mean accuracy is measured.
"""
import jax
import jax.numpy as jnp

from configs.papers import pav
from experiments.claims.environments import chains, tabular

MEASURE = "mean accuracy over 150 steps with rewards for progress minus that of the rival"
MARGIN, RATE = 0.05, 10.0
FIRST = ("opposite",
         "rewards were summed to the end, as in the config of that time, so that progress was the "
         "outcome minus a baseline for any prover; a second version had a value of start that is "
         "not the config's")
TREE = chains.TREE


def environment(key):
  keys = jax.random.split(key)
  env = chains.environment(keys[0])
  # All strings of five tokens, also those that go on after an end token, because these are
  # numbered as nodes, too.
  whole = tabular.Tree(TREE.prompts, TREE.vocab, TREE.length)
  tokens_LT = jnp.asarray(whole.leaves[0])
  before_LT = jnp.cumsum(tokens_LT == 0, axis=1) - (tokens_LT == 0)
  right_PL = 1.0 * chains.over_prompts(tokens_LT, before_LT == 0)

  def verify(batch, logits_PNV, **_):
    prover_PN = 1 - (1 - TREE.values(logits_PNV, right_PL)) ** 128
    after_BT = batch.nodes_BT * TREE.vocab + batch.tokens_BT + 1
    return env.verify(batch) | dict(step_scores_BT=prover_PN[batch.prompt_B[:, None], after_BT])

  return env._replace(verify=verify, start=TREE.start(keys[1], 0.5))


def arms():
  def config(**process):
    return tabular.changed(pav.get_config(), **{
        f"rewards__process__{k}": v for k, v in process.items()})
  return chains.arms({
      "progress": config(), "value": config(kind="raw"), "outcomes alone": config(coef=0.0)},
      tabular.mean("accuracy"), environment=environment, steps=150)
