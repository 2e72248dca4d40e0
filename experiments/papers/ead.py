"""The first token decides and is rarely right; the others, right at 4/5, only execute.

Eight completions of four tokens, five to choose from. A hot start finds first tokens,
a cool end does not spoil what they lead to. Both arms weight the loss by trainer over
sampler, the other samples at temperature 1. d is 5 tokens, so that the schedule, 1.2
to 0.38, fits into four; no warm-up.
"""
import jax.numpy as jnp
import numpy as np

from configs.papers import ead
from experiments.worlds import tabular
from rlx import methods

CLAIM = 0
MEASURE = "accuracy learned from annealed samples less that from samples at temperature 1"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=5, length=4)
  depth_N = np.repeat(np.arange(4), 5 ** np.arange(4))
  right_L = jnp.all(jnp.asarray(world.leaves[0]) == 0, axis=1)

  def start(key):
    right_N = jnp.where(depth_N == 0, -2.0, 2.7)
    return world.start(key, 0.5).at[..., 0].add(right_N)

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    return dict(outcome_B=1.0 * jnp.all(batch.tokens_BT == 0, axis=1))

  def accuracy(**anneal):
    c = tabular.changed(ead.get_config(), rollouts__per_prompt=8, rollouts__anneal=anneal,
                        rollouts__max_tokens=4, rollouts__keep=dict(name="keep.everything"))
    factor_T = methods.of(c).anneal(0)
    def sampler(key, logits_PNV):
      del key
      return logits_PNV if factor_T is None else logits_PNV / factor_T[depth_N][:, None]
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_L).mean()),
        seeds=seeds, steps=150, lr=2.0, start=start, sampler=sampler)
    return found["accuracy"].mean(axis=1)  # Over the run: both may end at 1.

  return accuracy(name="anneal.ead", rate=5.0, growth=0.0, warmup_steps=0) - accuracy(name=None)
