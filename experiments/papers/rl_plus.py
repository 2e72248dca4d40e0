"""A group with one demonstration against a group that is sampled only.

Half of the prompts have few right completions of 64. The others have one, which is hardly ever
sampled but is demonstrated. Both arms have the same loss, the same estimator and eight
completions, of which the last is a demonstration or is sampled as the others. pass@8 is
measured.

A token of probability p is learned at a rate near p. At 1e-3 a demonstration would teach
nothing in 300 steps, so the tokens of the demonstrated completions start at 1e-2.
"""
import functools

import jax
import jax.numpy as jnp

from configs.papers import rl_plus
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "pass@8 after 300 steps with a demonstration in the group minus that without one"
MARGIN, RATE = 0.05, 20.0
FIRST = ("not recorded", "neither arm learned")
ILLUSTRATION = ("Half of the prompts have a single right completion, which is hardly ever sampled "
                "and is the demonstrated one.")
TREE = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key, *, demonstrated):
  keys = jax.random.split(key, 3)
  is_lucky_PL = verdicts.drawn(keys[0], TREE, 0.1)
  is_hard_P1 = jnp.arange(8)[:, None] % 2 == 1
  right_PL = jnp.where(is_hard_P1, jnp.arange(64) == 0, is_lucky_PL)
  demo_P = jnp.argmax(right_PL, axis=1)
  # Both tokens of a hard prompt's right completion are 0, with a probability near 1e-2 each.
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
