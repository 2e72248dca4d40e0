"""A tenth of 64 completions right, three verdicts of ten wrong, a sampler whose logits
are off by 0.3, eight passes over each batch: MiniRL with its clip against without."""
import jax

from configs.papers import minirl
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 1
MEASURE = "accuracy with the clip less that without, eight passes a batch"
REVISED = "both arms started near 1, then seeds differed more than arms"


def effects(seeds):
  world = tabular.Tree(prompts=32, vocab=4, length=3)
  right_PL = verdicts.drawn(world, 0.1)

  def accuracy(**loss):
    c = tabular.changed(minirl.get_config(), learner__epochs=8,
                        **{f"learner__loss__{k}": v for k, v in loss.items()})
    found, _ = tabular.train(
        c, world, verdicts.judge(world, right_PL, flip=0.3),
        verdicts.accuracy(world, right_PL), seeds=seeds, steps=100, lr=80.0,
        sampler=lambda key, x: x + 0.3 * jax.random.normal(key, x.shape))
    return found["accuracy"][:, -1]

  return accuracy() - accuracy(clip_low=1.0, clip_high=1e6)
