"""Eight unit tests, six of them easy and nearly the same: they only look at the first
token. One first token passes all six and no hard test after it; another passes four,
the last token adds two, and the two hard tests look at what is between.

Probability of passing all after 150 steps: VeRPO, tests and verdict, against the
verdict alone and against the plain share of tests, whichever is better.
"""
import jax.numpy as jnp

from configs.papers import verpo
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "share passing all tests with VeRPO less the better of verdict and plain share"


def passed(tokens_XT):
  """scores_XE: what each of eight tests says of completions of four tokens."""
  first_X = tokens_XT[:, 0]
  easy_X6 = (first_X[:, None] == 1) | ((first_X[:, None] == 2) & (jnp.arange(6) < 4))
  easy_X6 |= (first_X[:, None] == 2) & (tokens_XT[:, 3:] == 1)
  hard_X = (first_X == 2) & (tokens_XT[:, 1] == 3)
  hard_X2 = jnp.stack([hard_X, hard_X & (tokens_XT[:, 2] == 0)], axis=1)
  return jnp.concatenate([easy_X6, hard_X2], axis=1) * 1.0


def judge(key, logits_PNV, batch):
  del key, logits_PNV
  scores_BE = passed(batch.tokens_BT)
  return dict(outcome_B=jnp.min(scores_BE, axis=1), scores_BE=scores_BE)


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=4)
  all_L = jnp.min(passed(jnp.asarray(world.leaves[0])), axis=1)
  grpo = dict(name="group.grpo")

  def share(**changes):
    c = tabular.changed(verpo.get_config(), **changes)
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(all=world.expected_P(x, all_L).mean()),
        seeds=seeds, steps=150, lr=10.0)
    return found["all"][:, -1]

  verdict = share(rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)),
                  advantages=dict(outcome=grpo, whiten=False))
  plain = share(rewards=dict(tests=dict(name="shaping.unit_tests", coef=1.0,
                                        weight="uniform")),
                advantages=dict(tests=grpo, whiten=False))
  return share() - jnp.maximum(verdict, plain)
