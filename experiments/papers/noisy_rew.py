"""One completion in ten is right; the verdicts of a prompt are flipped together.

A cost is little if the arm ends nearer to the one without flips than to the one whose
verdicts are a coin: the rival is the mean of these two.
"""
from configs.papers import noisy_rew
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "accuracy learned under 40% of flips less the middle of those under none and 50%"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)


def arms():
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  environment = verdicts.noisy(world, 0.1)

  def accuracy(flips, seeds, rates):
    c = tabular.changed(noisy_rew.get_config(), rewards__outcome__false_positive=flips,
                        rewards__outcome__false_negative=flips)
    return tabular.train(c, world, environment, seeds=seeds, lr=rates,
                         steps=300)[0]["accuracy"][:, -1]

  return {"40% of flips": lambda *at: accuracy(0.4, *at),
          "middle of none and 50%": lambda *at: (accuracy(0.0, *at) + accuracy(0.5, *at)) / 2}
