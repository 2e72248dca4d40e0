"""Rare right completions of 64 and a verifier that calls one wrong answer in ten right
and one right answer in five wrong: the rates of the config.

Plain REINFORCE, since a baseline of the prompt takes the correction off again. Adam,
so that the factor 1 / (1 - fp - fn) alone is no gain, and few enough steps that noise
still costs something. The forward correction has the mean update of noisy verdicts and
is left out.
"""
import optax

from configs.papers import noisy_rlvr
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "accuracy learned from noisy verdicts, corrected backward less uncorrected"
MARGIN, RATE = 0.05, 0.05
FIRST = ("not recorded", "all arms were at 0.97 at the end, and SGD paid for the factor of the "
         "backward correction; then the worse of both corrections of each seed was taken")


def arms():
  tree = tabular.Tree(prompts=8, vocab=8, length=2)

  c = noisy_rlvr.get_config()
  return tabular.arms({
      "backward": c,
      "uncorrected": tabular.changed(c, rewards__outcome__correction="none"),
  }, tree, verdicts.noisy(tree, 0.1), "accuracy", steps=100, optimizer=optax.adam)
