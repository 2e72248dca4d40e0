"""A coin for a verdict, for policies with a latent skill: at every node they lean to the
right steps, four completions in ten are right before training.

Each batch is learned from eight times, as the paper holds the clipping of stale ratios
responsible. The measure is a before and after, as in its table.
"""
import jax

from configs.papers import spurious_rewards
from experiments.worlds import steps
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy after 200 steps of coin rewards less that before, skilled policies"


def effects(seeds):
  world = tabular.Tree(prompts=32, vocab=4, length=3)
  ok_PNV = steps.right_steps(jax.random.key(0), world, 2)
  right_PL = steps.right_leaves(world, ok_PNV)

  def judge(key, logits_PNV, batch):
    del logits_PNV
    return dict(outcome_B=steps.verdict_B(ok_PNV, batch),
                noise_B=jax.random.uniform(key, batch.prompt_B.shape))

  c = tabular.changed(spurious_rewards.get_config(), rollouts__per_prompt=16,
                      learner__epochs=8)
  found, _ = tabular.train(
      c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_PL).mean()),
      seeds=seeds, steps=200, lr=10.0,
      start=lambda key: world.start(key, 0.5) + ok_PNV)
  return found["accuracy"][:, -1] - found["accuracy"][:, 0]
