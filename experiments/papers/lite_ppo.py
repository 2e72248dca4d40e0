"""Right completions are rare at every length. The batch's std and the mean over all
tokens against GRPO's std of the group and mean over a completion's tokens; DAPO is
left out: on-policy, its clip and its filter do next to nothing."""
from configs.papers import lite_ppo
from experiments.environments import sparse
from experiments.environments import tabular

CLAIM = 0
MEASURE = "accuracy after 30 steps, Lite PPO less GRPO's std and mean"
MARGIN, RATE = 0.05, 30.0
FIRST = ("confirmed", "both arms ended near 1")


def arms():
  problem, c = sparse.endings(), lite_ppo.get_config()
  return problem.arms({
      "Lite PPO": c,
      "GRPO": tabular.changed(c, advantages__outcome=dict(name="group.grpo"),
                              learner__aggregation="seq-mean-token-mean"),
  }, "accuracy", steps=30)
