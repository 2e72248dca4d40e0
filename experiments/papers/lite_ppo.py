"""Right completions are rare at every length. The batch's std and the mean over all
tokens against GRPO's std of the group and mean over a completion's tokens; DAPO is
left out: on-policy, its clip and its filter do next to nothing."""
from configs.papers import lite_ppo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy of Lite PPO less that with GRPO's std and mean, 30 steps"
REVISED = "both arms ended near 1 (it was confirmed)"


def effects(seeds):
  world, c = sparse.endings(), lite_ppo.get_config()
  accuracy = lambda c: world.learned(c, seeds, steps=30, lr=30.0)["accuracy"][:, -1]
  return accuracy(c) - accuracy(tabular.changed(
      c, advantages__outcome=dict(name="group.grpo"),
      learner__aggregation="seq-mean-token-mean"))
