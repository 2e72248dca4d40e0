"""Completions of a hidden quality, right above 0.7, and a reward model whose error is
largest in the middle: standard deviation q (1 - q). Of 8 completions the best
and one other learn, against all; PPO with the same rewards."""
import jax

from configs.papers import pf_ppo
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "accuracy, mean over 150 steps, of filtered completions less that of all"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  keys = jax.random.split(jax.random.key(0))
  quality_PL = jax.random.uniform(keys[0], (8, 64))
  right_PL = quality_PL > 0.7
  error_PL = quality_PL * (1 - quality_PL) * jax.random.normal(keys[1], (8, 64))
  score_PL = quality_PL + error_PL
  verdict = verdicts.judge(world, right_PL)

  def judge(key, logits_PNV, batch):
    score_B = score_PL[batch.prompt_B, world.leaf_B(batch)]
    return dict(verdict(key, logits_PNV, batch), scores_BE=score_B[:, None])

  def accuracy(**thin):
    c = tabular.changed(pf_ppo.get_config(), rollouts__thin=thin)
    found, _ = tabular.train(c, world, judge, verdicts.accuracy(world, right_PL),
                             seeds=seeds, steps=150, lr=4.0)
    return found["accuracy"].mean(axis=1)

  return (accuracy(name="thin.extremes", kind="best_random")
          - accuracy(name="thin.nothing"))
