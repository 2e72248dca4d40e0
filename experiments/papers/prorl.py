"""Rare right completions of 64 and a KL strong enough to hold the policy back.

Both arms have the same KL in the loss; one resets its reference (and the optimizer's
state) every 50 of 400 steps. Adam, as SGD has no state. The coefficient is not the
paper's 1e-4, with which a few hundred steps of a table see no KL at all.
"""
import optax

from configs.papers import prorl
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "accuracy with resets of the reference less that without, 400 steps"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  right_PL = verdicts.drawn(world, 0.1)

  def accuracy(every):
    c = tabular.changed(
        prorl.get_config(), rollouts__per_prompt=8, kl__coef=0.3, kl__sync_every=every,
        kl__reset_optimizer=every > 0, rollouts__keep=dict(name="keep.everything"))
    found, _ = tabular.train(
        c, world, verdicts.judge(world, right_PL), verdicts.accuracy(world, right_PL),
        seeds=seeds, steps=400, lr=0.02, optimizer=optax.adam,
        start=lambda key: world.start(key, 1.0))
    return found["accuracy"][:, -1]

  return accuracy(50) - accuracy(0)
