"""Half of the prompts have rare right completions of 64, the others one that is hardly
ever drawn, but shown. Both arms have the same loss and estimator and eight completions,
of which the last is a demonstration, or sampled as the others.

A token of probability p is learned from at a rate near p: at 1e-3 a demonstration
teaches nothing in 300 steps, so the hidden tokens have 1e-2 at the start."""
import functools

import jax
import jax.numpy as jnp

from configs.papers import rl_plus
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "pass@8 with a demonstration in the group less that without, 300 steps"
MARGIN, RATE = 0.05, 20.0
FIRST = ("not recorded", "neither arm learned")
ILLUSTRATION = ("Half of the prompts have one right completion, which is hardly ever sampled and "
                "is the one demonstrated.")
TREE = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key, *, demonstrated):
  keys = jax.random.split(key, 3)
  is_lucky_PL = verdicts.drawn(keys[0], TREE, 0.1)
  is_hard_P1 = jnp.arange(8)[:, None] % 2 == 1
  right_PL = jnp.where(is_hard_P1, jnp.arange(64) == 0, is_lucky_PL)
  demo_P = jnp.argmax(right_PL, axis=1)
  # Token 0 of hard prompts has a probability near 1e-2, twice.
  rare_P1 = tabular.around(keys[1], jnp.full((8, 1), -2.5)) * is_hard_P1

  def measure(logits_PNV):
    pass_P = TREE.expected_P(logits_PNV, right_PL)
    return dict(pass_at_8=(1 - (1 - pass_P) ** 8).mean())

  return tabular.Environment(
      verdicts.verifier(TREE, right_PL), measure,
      start=TREE.start(keys[2], 1.0).at[..., 0].add(rare_P1),
      demo_PT=jnp.stack([demo_P // 8, demo_P % 8], axis=1) if demonstrated else None)


def arms():
  c = tabular.changed(rl_plus.get_config(), rollouts__max_tokens=2)
  def arm(demonstrated):
    return tabular.arm(c, TREE, functools.partial(environment, demonstrated=demonstrated),
                       "pass_at_8", steps=300)
  return {"demonstration": arm(True), "none": arm(False)}
