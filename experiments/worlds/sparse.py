"""Worlds that checks share: trees in which few completions are right.

  rare      completions of 3 of 5 tokens
  endings   completions of up to 5 of 4 tokens that end with token 0; what does not
            end is wrong

Every completion of a prompt is right with the same probability, whatever its length.
Which are is the same for all seeds; where the policy starts is not.
"""
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from experiments.worlds import tabular


def rare(prompts=8, share=0.1, spread=1.5):
  """A World of 125 completions a prompt, without lengths to learn."""
  return _drawn(tabular.Tree(prompts, vocab=5, length=3), share, spread)


def endings(prompts=8, share=0.1, spread=0.5):
  """A World of 364 completions a prompt, 3 tokens long on average at the start."""
  return _drawn(tabular.Tree(prompts, vocab=4, length=5, eos=True), share, spread)


def at_accuracy(found, level, name="entropy"):
  """A measure where the accuracy first reaches this level, between steps; by seed."""
  accuracy, x = found["accuracy"], found[name]
  reached = accuracy >= level
  if reached[:, 0].any() or not reached.any(axis=1).all():
    raise ValueError(f"level={level}: not between {accuracy[:, 0].max()} at the start "
                     f"and {accuracy.max(axis=1).min()}, the most that all seeds have.")
  rows, after = np.arange(len(reached)), reached.argmax(axis=1)
  low, high = accuracy[rows, after - 1], accuracy[rows, after]
  part = (level - low) / (high - low)
  return (1 - part) * x[rows, after - 1] + part * x[rows, after]


def late(found, name="accuracy"):
  """Mean of a measure over the second half of training; by seed."""
  return found[name][:, found[name].shape[1] // 2:].mean(axis=1)


def noisy(key, logits_PNV):
  """A sampler whose logits are the policy's with noise of 1, other at every step."""
  return logits_PNV + jax.random.normal(key, logits_PNV.shape)


@dataclasses.dataclass(frozen=True)
class World:
  """A tree, its right completions by their code, and the spread of the start."""
  tree: tabular.Tree
  right_PC: jax.Array
  spread: float

  def code(self, tokens_BT):
    """Of a completion, a number: its tokens as digits."""
    return tokens_BT @ (self.tree.vocab ** jnp.arange(self.tree.length)[::-1])

  def judge(self, key, logits_PNV, batch):
    del key, logits_PNV
    return dict(outcome_B=1.0 * self.right_PC[
        batch.prompt_B, self.code(batch.tokens_BT)])

  def start(self, key):
    return self.tree.start(key, self.spread)

  def measure(self, logits_PNV):
    """accuracy; entropy, nats a completion; length, wrong_length: mean tokens."""
    tokens_LT, mask_LT = map(jnp.asarray, self.tree.leaves)
    right_PL = self.right_PC[:, self.code(tokens_LT)]
    length_1L = mask_LT.sum(axis=1)[None]
    logps_PL = self.tree.leaf_logps(logits_PNV)
    mean_P = lambda x: jnp.sum(jnp.exp(logps_PL) * x, axis=1)
    return dict(
        accuracy=mean_P(right_PL).mean(), entropy=mean_P(-logps_PL).mean(),
        length=mean_P(length_1L).mean(), wrong_length=(
            mean_P(~right_PL * length_1L).sum() / mean_P(~right_PL).sum()))

  def learned(self, c, seeds, **options):
    """{measure: [seeds, steps + 1]}; options of tabular.train."""
    return tabular.train(c, self.tree, self.judge, self.measure, seeds=seeds,
                         **dict(start=self.start) | options)[0]


def _drawn(tree, share, spread):
  codes = jnp.arange(tree.vocab ** tree.length)
  digits_CT = codes[:, None] // tree.vocab ** jnp.arange(tree.length)[None] % tree.vocab
  right_PC = jax.random.uniform(jax.random.key(0), (tree.prompts, len(codes))) < share
  if tree.eos: right_PC = right_PC & jnp.any(digits_CT == 0, axis=1)[None]
  return World(tree, right_PC, spread)
