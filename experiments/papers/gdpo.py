"""Two rewards that do not know each other: a tenth of 64 completions is right, and
three tokens of ten are good steps. Each normalised in its group and added, against
added and then normalised; both whitened."""
import jax
import numpy as np

from configs.papers import gdpo
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 1
MEASURE = ("the reward that gains least, mean over 150 steps: normalised before the "
           "sum less after it")


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  right_PL = verdicts.drawn(world, 0.1)
  good_PNV = jax.random.uniform(jax.random.key(1), world.start().shape) < 0.3
  good = lambda batch: 1.0 * good_PNV[
      batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
  steps_PL = verdicts.of_leaves(world, lambda batch: good(batch).mean(axis=1))
  verdict = verdicts.judge(world, right_PL)

  def judge(key, logits_PNV, batch):
    return dict(verdict(key, logits_PNV, batch), step_scores_BT=good(batch),
                step_ends_BT=batch.mask_BT)

  def measure(logits_PNV):
    return dict(verdicts.accuracy(world, right_PL)(logits_PNV),
                steps=world.expected_P(logits_PNV, steps_PL).mean())

  def learned(**changes):
    c = tabular.changed(gdpo.get_config(), **changes)
    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=150, lr=4.0)
    return found["accuracy"].mean(axis=1), found["steps"].mean(axis=1)

  after = dict(total=dict(name="group.grpo"), whiten=True)
  return np.min(np.subtract(learned(), learned(advantages=after)), axis=0)
