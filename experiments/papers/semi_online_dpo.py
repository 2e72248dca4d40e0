"""One right completion in ten of 512, policies that start unevenly: DPO on pairs from a
sampler that is synced every 10 of 400 steps, or never. Every pair is fresh: offline
here is the start's distribution, not a small data set."""
from configs.papers import semi_online_dpo
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "accuracy of DPO with s = 10 less that of offline DPO, 400 steps"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=3)
  right_PL = verdicts.drawn(world, 0.1)

  def accuracy(every):
    c = tabular.changed(semi_online_dpo.get_config(), rollouts__per_prompt=8,
                        rollouts__sync_every=every,
                        rollouts__keep=dict(name="keep.everything"))
    found, _ = tabular.train(
        c, world, verdicts.judge(world, right_PL), verdicts.accuracy(world, right_PL),
        seeds=seeds, steps=400, lr=50.0, start=lambda key: world.start(key, 1.0))
    return found["accuracy"][:, -1]

  return accuracy(10) - accuracy(400)
