"""Two rewards that do not know each other: a tenth of 64 completions is right, and
about three tokens of ten are good steps. Each normalised in its group and added, against
added and then normalised; both whitened."""
import jax
import numpy as np

from configs.papers import gdpo
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 1
MEASURE = ("gain over 150 steps of the reward that gains least: normalised before the "
           "sum less after it")
MARGIN, RATE = 0.05, 4.0
FIRST = ("not seen", "the least of two differences is below 0 where both arms are equal")
WORLD = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key):
  keys = jax.random.split(key)
  right_PL = verdicts.drawn(keys[0], WORLD, 0.1)
  good_PNV = jax.random.uniform(keys[1], WORLD.start().shape) < 0.3
  good = lambda batch: 1.0 * good_PNV[
      batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
  steps_PL = verdicts.of_leaves(WORLD, lambda batch: good(batch).mean(axis=1))
  verdict, accuracy = verdicts.judge(WORLD, right_PL), verdicts.accuracy(WORLD, right_PL)

  def judge(key, logits_PNV, batch):
    return dict(verdict(key, logits_PNV, batch), step_scores_BT=good(batch),
                step_ends_BT=batch.mask_BT)

  return tabular.Environment(judge, lambda x: dict(
      accuracy(x), steps=WORLD.expected_P(x, steps_PL).mean()))


def arms():
  c = gdpo.get_config()
  def least(c):
    def arm(seeds, rates):
      found, _ = tabular.train(c, WORLD, environment, seeds=seeds, lr=rates, steps=150)
      return np.min([x.mean(axis=1) - x[:, 0] for x in found.values()], axis=0)
    return arm
  after = dict(total=dict(name="group.grpo"), whiten=True)
  return {"before": least(c), "after": least(tabular.changed(c, advantages=after))}
