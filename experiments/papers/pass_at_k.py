"""Four questions behind each prompt, which the policy cannot tell apart, with chances
0.4, 0.3, 0.2 and 0.1 and a right completion of 16 each. The best of a group of 4
learns, against all of them by the group's mean. What pass@1 costs is not measured."""
from configs.papers import pass_at_k
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "pass@4 trained on the best of 4 less that trained on the mean of 4"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=2)
  judge, measure = verdicts.blind(world)

  def pass_at_4(**estimator):
    c = tabular.changed(pass_at_k.get_config(), rollouts__per_prompt=4,
                        advantages__outcome=estimator)
    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=400, lr=20.0)
    return found["pass_at_4"][:, -1]

  return (pass_at_4(name="group.pass_at_k", use_std=False)
          - pass_at_4(name="group.mean_baseline"))
