"""Right or wrong, judged with a little noise (sd 0.03), of 64 completions.

GRPO divides by the spread of a group: where all eight are right or all wrong, the noise
is blown up to advantages of 1. The filter leaves such groups out; the other arm learns
from all. Its numbers are RLPR's, the rewards are not likelihoods.
"""
import jax

from configs.papers import ema_std_filter
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy with the filter by spread less that without, 300 steps"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  right_PL = jax.random.uniform(jax.random.key(0), (8, 64)) < 0.1

  def judge(key, logits_PNV, batch):
    del logits_PNV
    leaf_B = world.leaf_B(batch)
    noise_B = 0.03 * jax.random.normal(key, leaf_B.shape)
    return dict(outcome_B=right_PL[batch.prompt_B, leaf_B] + noise_B)

  def accuracy(**changes):
    c = tabular.changed(ema_std_filter.get_config(), rollouts__per_prompt=8,
                        rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)),
                        **changes)
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_PL).mean()),
        seeds=seeds, steps=300, lr=2.0, start=lambda key: world.start(key, 1.0))
    return found["accuracy"][:, -1]

  return accuracy() - accuracy(learner__keep__name=None)
