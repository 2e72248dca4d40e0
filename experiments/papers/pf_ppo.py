"""Completions of a hidden quality, right above 0.7 or so, and a reward model whose error is
largest in the middle: standard deviation q (1 - q). Of 8 completions the best
and one other learn, against all; PPO with the same rewards."""
import jax

from configs.papers import pf_ppo
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "accuracy, mean over 150 steps, of filtered completions less that of all"
MARGIN, RATE = 0.05, 4.0
FIRST = ("confirmed", None)
WORLD = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key):
  keys = jax.random.split(key, 3)
  quality_PL = jax.random.uniform(keys[0], (8, 64))
  right_PL = quality_PL > tabular.around(keys[1], 0.7)
  error_PL = quality_PL * (1 - quality_PL) * jax.random.normal(keys[2], (8, 64))
  verdict = verdicts.judge(WORLD, right_PL)

  def judge(key, logits_PNV, batch):
    score_B = (quality_PL + error_PL)[batch.prompt_B, WORLD.leaf_B(batch)]
    return dict(verdict(key, logits_PNV, batch), scores_BE=score_B[:, None])

  return tabular.Environment(judge, verdicts.accuracy(WORLD, right_PL))


def arms():
  def accuracy(c):
    return lambda seeds, rates: tabular.train(
        c, WORLD, environment, seeds=seeds, lr=rates, steps=150)[0]["accuracy"].mean(axis=1)
  c = pf_ppo.get_config()
  return {"filtered": accuracy(c),
          "all": accuracy(tabular.changed(c, rollouts__select_completions=dict(
              name="select_completions.everything")))}
