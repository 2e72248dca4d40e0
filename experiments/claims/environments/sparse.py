"""Environments that several checks share: trees in which few completions are right.

  rare      completions of 3 tokens from a vocabulary of 5
  endings   completions of up to 5 tokens from a vocabulary of 4 that end with token 0; a
            completion without an end is wrong

Every completion of a prompt is right with the same probability, whatever its length.
Which ones are right, and the initial policy, are drawn from the seed.
"""
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims.environments import tabular


def rare(prompts=8, share=0.1, spread=1.5):
  """Returns a problem with 125 completions per prompt, all of the same length."""
  return Problem(tabular.Tree(prompts, vocab=5, length=3), share, spread)


def endings(prompts=8, share=0.1, spread=0.5):
  """Returns a problem with 364 completions per prompt, on average 3 tokens long at the start."""
  return Problem(tabular.Tree(prompts, vocab=4, length=5, eos=True), share, spread)


def with_entropy(curves):
  """Measure of an arm for `matched`: (accuracy and entropy by step, [I, 2, S], late accuracy)."""
  return np.stack([curves["accuracy"], curves["entropy"]], axis=1), late(curves)


def matched(own_I2S, rival_I2S, level=0.7):
  """Returns the entropy less the rival's, each where its accuracy first reaches `level`.

  Values between two steps are interpolated. If one of the two never reaches the level, it is the
  largest accuracy that both reach. The arguments are those that `with_entropy` returns.
  """
  most_I = np.minimum(own_I2S[:, 0].max(axis=1), rival_I2S[:, 0].max(axis=1))
  level_I = np.minimum(most_I, level)
  def entropy(accuracy_IS, entropy_IS):
    rows = np.arange(len(level_I))
    after = np.maximum((accuracy_IS >= level_I[:, None]).argmax(axis=1), 1)
    low, high = accuracy_IS[rows, after - 1], accuracy_IS[rows, after]
    part = np.clip((level_I - low) / np.where(high > low, high - low, 1), 0, 1)
    return (1 - part) * entropy_IS[rows, after - 1] + part * entropy_IS[rows, after]
  return entropy(*own_I2S.swapaxes(0, 1)) - entropy(*rival_I2S.swapaxes(0, 1))


def late(curves):
  """Returns the mean accuracy over the second half of training, for each seed."""
  return curves["accuracy"][:, curves["accuracy"].shape[1] // 2:].mean(axis=1)


def noisy(key, logits_PNV):
  """Adds noise with standard deviation 1, drawn anew at every step, to the logits of the policy."""
  return logits_PNV + jax.random.normal(key, logits_PNV.shape)


@dataclasses.dataclass(frozen=True)
class Problem:
  """A tree, the share of its completions that are right, and the spread of the start."""
  tree: tabular.Tree
  share: float
  spread: float

  def code(self, tokens_BT):
    """Returns a number for each completion, with its tokens as digits."""
    return tokens_BT @ (self.tree.vocab ** jnp.arange(self.tree.length)[::-1])

  def right(self, key):
    """Returns right_PC, which completions are right, indexed by `code`."""
    tree = self.tree
    codes = jnp.arange(tree.vocab ** tree.length)
    digits_CT = codes[:, None] // tree.vocab ** jnp.arange(tree.length)[None] % tree.vocab
    right_PC = jax.random.uniform(key, (tree.prompts, len(codes))) < self.share
    return right_PC & jnp.any(digits_CT == 0, axis=1)[None] if tree.eos else right_PC

  def environment(self, key):
    """Returns a tabular.Environment with verdicts without noise and a random initial policy."""
    keys = jax.random.split(key)
    right_PC = self.right(keys[0])
    def verify(batch, **_):
      return dict(outcome_B=1.0 * right_PC[batch.prompt_B, self.code(batch.tokens_BT)])
    return tabular.Environment(verify, functools.partial(self.measure, right_PC),
                               start=self.tree.start(keys[1], self.spread))

  def measure(self, right_PC, logits_PNV):
    """Returns accuracy, entropy in nats per completion, and mean lengths in tokens."""
    tokens_LT, mask_LT = map(jnp.asarray, self.tree.leaves)
    right_PL = right_PC[:, self.code(tokens_LT)]
    length_1L = mask_LT.sum(axis=1)[None]
    logps_PL = self.tree.leaf_logps(logits_PNV)
    mean_P = lambda x: jnp.sum(jnp.exp(logps_PL) * x, axis=1)
    return dict(
        accuracy=mean_P(right_PL).mean(), entropy=mean_P(-logps_PL).mean(),
        length=mean_P(length_1L).mean(), wrong_length=(
            mean_P(~right_PL * length_1L).sum() / mean_P(~right_PL).sum()))

  def arms(self, configs, measure, *, sampler=None, **options):
    """Returns {name: arm} for {name: config}; `measure` and `options` are those of tabular.arm."""
    environment = lambda key: self.environment(key)._replace(sampler=sampler)
    return tabular.arms(configs, self.tree, environment, measure, **options)
