"""Completions differ by a normal quality; the gold score is the share of the prompt's completions
that are less good. Both reward models see the quality with the same errors, which have a standard
deviation of 0.5 and belong to the completion.

The config's judge says how likely it prefers a completion to the reference, which is one of the
prompt's completions at random. The score of a Bradley-Terry model has a constant of its own for
every prompt, with a standard deviation of 2: it was learned from pairs of completions of one
prompt, which say nothing about it. PPO and its value model are the same in both arms.
"""
import jax
import jax.numpy as jnp

from configs.papers import pairwise_rl
from experiments.claims.environments import tabular

MEASURE = "gold score over 100 steps with the preference over a reference minus that with scores"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=16, vocab=8, length=2)


def environment(key, *, compares):
  keys = jax.random.split(key, 3)
  quality_PL, error_PL = jax.random.normal(keys[0], (2, TREE.prompts, TREE.vocab**TREE.length))
  seen_PL = quality_PL + 0.5 * error_PL
  reference_P = jax.random.randint(keys[1], (TREE.prompts,), 0, seen_PL.shape[1])
  score_PL = (
      jax.nn.sigmoid(seen_PL - seen_PL[jnp.arange(TREE.prompts), reference_P][:, None])
      if compares else seen_PL + 2 * jax.random.normal(keys[2], (TREE.prompts, 1)))
  gold_PL = jnp.mean(quality_PL[:, :, None] > quality_PL[:, None], axis=2)
  return tabular.Environment(
      TREE.verifier(outcome_B=jnp.zeros_like(score_PL), scores_BE=score_PL[..., None]),
      TREE.means(gold=gold_PL))


def arms():
  c = pairwise_rl.get_config()
  scored = tabular.changed(c, rewards=dict(outcome=dict(name="outcome.score", coef=1.0)))
  return {name: tabular.arm(config, TREE, lambda key, compares=compares: environment(
      key, compares=compares), tabular.mean("gold"), steps=100)
          for name, config, compares in (("reference", c, True), ("Bradley-Terry", scored, False))}
