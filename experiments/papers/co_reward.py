"""Questions of 8 answers in two wordings each, no label. A start leans towards the
right answer, and by more towards another, which differs between the wordings: what
one of them gets wrong the other may get right. Its own majority against the other's;
answers alone, no reasoning before them.
"""
import jax.numpy as jnp

from configs.papers import co_reward
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy learned from majorities of the other wording less from the prompt's own"
PROMPTS, ANSWERS, LEAN = 64, 8, 1.0   # Nats that the right answer has before the noise.


def effects(seeds):
  world = tabular.Tree(prompts=PROMPTS, vocab=ANSWERS, length=1)
  right_P = jnp.repeat(jnp.arange(PROMPTS // 2) % ANSWERS, 2)
  right_PL = jnp.arange(ANSWERS)[None, :] == right_P[:, None]

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    answer_B = batch.tokens_BT[:, 0]
    return dict(outcome_B=1.0 * right_PL[batch.prompt_B, answer_B], answer_B=answer_B,
                pair_B=batch.prompt_B ^ 1)

  def start(key):
    return world.start(key, 1.0) + LEAN * right_PL[:, None, :]

  def accuracy(reward):
    c = tabular.changed(co_reward.get_config(),
                        rewards=dict(outcome=dict(name=reward, coef=1.0)))
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_PL).mean()),
        seeds=seeds, steps=200, lr=20.0, start=start)
    return found["accuracy"][:, -1]

  return accuracy("pseudo.paired") - accuracy("pseudo.majority")
