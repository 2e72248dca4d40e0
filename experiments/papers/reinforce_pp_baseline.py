"""Right completions are very rare and verdicts have a little noise: where all
completions are wrong, a group's std is that of the noise and z-scores blow it up."""
import jax

from configs.papers import reinforce_pp_baseline
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy with the batch's statistics less that with z-scores of the group"
NOISE = 0.05


def effects(seeds):
  world, c = sparse.rare(share=0.03), reinforce_pp_baseline.get_config()

  def judge(key, logits_PNV, batch):
    right_B = world.judge(None, logits_PNV, batch)["outcome_B"]
    return dict(outcome_B=right_B + NOISE * jax.random.normal(key, right_B.shape))

  def accuracy(c):
    found, _ = tabular.train(c, world.tree, judge, world.measure, seeds=seeds,
                             steps=200, lr=20.0, start=world.start)
    return sparse.late(found)

  return accuracy(c) - accuracy(tabular.changed(
      c, advantages__outcome=dict(name="group.grpo")))
