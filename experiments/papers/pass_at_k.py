"""Training on the best of a group of 4 completions against training on their mean.

Each prompt stands for one of four questions, which the policy cannot distinguish. Their
probabilities are near 0.4, 0.3, 0.2 and 0.1, and each has one right completion of 16. In one
arm only the best completion of a group has an advantage; in the other the advantage of every
completion is its reward less the group's mean. pass@4 is measured; the cost in pass@1 is not.
"""
from configs.papers import pass_at_k
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "pass@4 after training on the best of 4 minus that after training on the mean of 4"
MARGIN, RATE = 0.05, 20.0
FIRST = ("confirmed", None)
ILLUSTRATION = ("The measure is the objective of the arm with the best of 4, and the mean of 4 is "
                "highest for a policy that gives only one answer of four.")


def arms():
  tree = tabular.Tree(prompts=8, vocab=4, length=2)

  c = tabular.changed(pass_at_k.get_config(), rollouts__per_prompt=4)
  return tabular.arms({
      "best of 4": c,
      "mean of 4": tabular.changed(c, advantages__outcome=dict(name="group.mean_baseline")),
  }, tree, lambda key: verdicts.blind(key, tree), "pass_at_4", steps=300)
