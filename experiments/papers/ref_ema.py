"""Rare right completions of 64 and a KL strong enough to hold the policy back: a
reference mixed with the policy every 20 of 400 steps against one that stays."""
from configs.papers import ref_ema
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "accuracy with a reference that follows the policy less that with a fixed one"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  right_PL = verdicts.drawn(world, 0.1)

  def accuracy(every):
    c = tabular.changed(ref_ema.get_config(), rollouts__per_prompt=8, kl__coef=0.3,
                        kl__sync_every=every,
                        rollouts__keep=dict(name="keep.everything"))
    found, _ = tabular.train(
        c, world, verdicts.judge(world, right_PL), verdicts.accuracy(world, right_PL),
        seeds=seeds, steps=400, lr=2.0, start=lambda key: world.start(key, 1.0))
    return found["accuracy"][:, -1]

  return accuracy(20) - accuracy(0)
