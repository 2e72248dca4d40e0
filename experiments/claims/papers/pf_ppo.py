"""PPO on filtered completions against PPO on all completions, with the same rewards.

Each completion has a hidden quality q and is right if q is above about 0.7. The error of the
reward model is the largest for medium qualities: its standard deviation is q (1 - q). The
filter keeps the best of 8 completions and one other. The accuracy is measured.
"""
import jax

from configs.papers import pf_ppo
from experiments.claims.environments import tabular

MEASURE = "mean accuracy over 150 steps with filtered completions minus that with all"
MARGIN, RATE = 0.05, 4.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key):
  keys = jax.random.split(key, 3)
  quality_PL = jax.random.uniform(keys[0], (8, 64))
  right_PL = quality_PL > tabular.around(keys[1], 0.7)
  error_PL = quality_PL * (1 - quality_PL) * jax.random.normal(keys[2], (8, 64))
  return tabular.Environment(
      TREE.verifier(outcome_B=right_PL, scores_BE=(quality_PL + error_PL)[..., None]),
      TREE.means(accuracy=right_PL))


def arms():
  c = pf_ppo.get_config()
  every = dict(name="select_completions.everything")
  return tabular.arms(
      {"filtered": c, "all": tabular.changed(c, rollouts__select_completions=every)},
      TREE, environment, tabular.mean("accuracy"), steps=150)
