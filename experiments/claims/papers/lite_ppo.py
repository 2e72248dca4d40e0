"""Right completions are rare at every length. Lite PPO, with the standard deviation of the batch
and the mean over all tokens, is compared with GRPO, which uses the standard deviation of the
group and the mean over each completion's tokens. DAPO is not an arm: on-policy, its clip and
its filter change almost nothing.
"""
from configs.papers import lite_ppo
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy after 30 steps: Lite PPO minus GRPO's standard deviation and mean"
MARGIN, RATE = 0.05, 30.0
FIRST = ("confirmed", "both arms ended with an accuracy near 1")


def arms():
  problem, c = sparse.endings(), lite_ppo.get_config()
  grpo = tabular.changed(c, advantages__outcome=dict(name="group.grpo"),
                         learner__aggregation="seq-mean-token-mean")
  return problem.arms({"Lite PPO": c, "GRPO": grpo}, "accuracy", steps=30)
