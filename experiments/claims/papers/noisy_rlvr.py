"""Few of 64 completions are right, and the verifier accepts one wrong answer in ten and rejects
one right answer in five, at the rates of the config. Learning from verdicts with the backward
correction is compared with learning from uncorrected verdicts.

The estimator is plain REINFORCE, because a baseline of the prompt would cancel the correction.
The optimizer is Adam, so the factor 1 / (1 - fp - fn) alone is no advantage, and training is
short enough that noise still reduces the accuracy. The forward correction has the same mean
update as noisy verdicts and is not an arm.
"""
import optax

from configs.papers import noisy_rlvr
from experiments.claims.environments import tabular, verdicts

MEASURE = "accuracy from noisy verdicts with the backward correction minus that without it"
MARGIN, RATE = 0.05, 0.05
FIRST = ("not recorded",
         "all arms ended at 0.97 and, with SGD, the factor of the backward correction was an "
         "advantage; the measure of a second version was the worse of the two corrections of each "
         "seed")


def arms():
  tree = tabular.Tree(prompts=8, vocab=8, length=2)

  c = noisy_rlvr.get_config()
  return tabular.arms(
      {"backward": c, "uncorrected": tabular.changed(c, rewards__outcome__correction="none")},
      tree, verdicts.noisy(tree, 0.1), "accuracy", steps=100, optimizer=optax.adam)
