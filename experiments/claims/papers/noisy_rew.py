"""One completion in ten is right; the verdicts of a prompt are inverted together.

The cost of 40% of inverted verdicts counts as small if this arm ends nearer to the arm without
inverted verdicts than to the one with 50%, whose verdicts are random. The rival is therefore
the mean of these two arms.
"""
from configs.papers import noisy_rew
from experiments.claims.environments import tabular, verdicts

MEASURE = "accuracy with 40% of verdicts inverted minus the mean of those with none and with 50%"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)


def arms():
  tree = tabular.Tree(prompts=8, vocab=8, length=2)
  def arm(flips):
    c = tabular.changed(noisy_rew.get_config(), rewards__outcome__false_positive=flips,
                        rewards__outcome__false_negative=flips)
    return tabular.arm(c, tree, verdicts.noisy(tree, 0.1), "accuracy", steps=300)
  none, half = arm(0.0), arm(0.5)
  return {"40% of flips": arm(0.4),
          "middle of none and 50%": lambda *runs: (none(*runs) + half(*runs)) / 2}
