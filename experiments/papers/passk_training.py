"""Rare right completions of 64, policies that start unevenly: GRPO on the best of 4
against GRPO on each, after equal steps."""
import jax

from configs.papers import passk_training
from experiments import tabular

CLAIM = 0
MEASURE = "pass@4 trained with k = 4 less that with k = 1, 200 steps"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  right_PL = jax.random.uniform(jax.random.key(0), (8, 64)) < 0.1

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    leaf_B = batch.tokens_BT[:, 0] * 8 + batch.tokens_BT[:, 1]
    return dict(outcome_B=right_PL[batch.prompt_B, leaf_B] * 1.0)

  def measure(logits_PNV):
    pass_P = world.expected_P(logits_PNV, right_PL)
    return dict(pass_at_4=(1 - (1 - pass_P) ** 4).mean())

  def pass_at_4(k):
    c = tabular.changed(passk_training.get_config(), rollouts__per_prompt=8,
                        advantages__outcome__k=k)
    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=200, lr=10.0,
                             start=lambda key: world.start(key, 2.0))
    return found["pass_at_4"][:, -1]

  return pass_at_4(4) - pass_at_4(1)
