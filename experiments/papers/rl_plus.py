"""Half of the prompts have rare right completions of 64, the others one that is hardly
ever drawn, but shown. Both arms have the same loss and estimator and eight completions,
of which the last is a demonstration, or sampled as the others.

A token of probability p is learned from at a rate near p: at 1e-3 a demonstration
teaches nothing in 300 steps, so the hidden tokens have 1e-2 at the start."""
import jax
import jax.numpy as jnp

from configs.papers import rl_plus
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "pass@8 with a demonstration in the group less that without, 300 steps"
REVISED = "neither arm learned"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  is_lucky_PL = jax.random.uniform(jax.random.key(0), (8, 64)) < 0.1
  is_hard_P1 = jnp.arange(8)[:, None] % 2 == 1
  right_PL = jnp.where(is_hard_P1, jnp.arange(64) == 0, is_lucky_PL)
  demo_L = jnp.where(is_hard_P1[:, 0], 0, jnp.argmax(is_lucky_PL, axis=1))
  demo_PT = jnp.stack([demo_L // 8, demo_L % 8], axis=1)

  def start(key):  # Token 0 of hard prompts has a probability near 1e-2, twice.
    return world.start(key, 1.0).at[..., 0].add(-2.5 * is_hard_P1)

  def measure(logits_PNV):
    pass_P = world.expected_P(logits_PNV, right_PL)
    return dict(pass_at_8=(1 - (1 - pass_P) ** 8).mean())

  def pass_at_8(demo_PT):
    c = tabular.changed(rl_plus.get_config(), rollouts__per_prompt=8, rollouts__max_tokens=2)
    found, _ = tabular.train(c, world, verdicts.judge(world, right_PL), measure, seeds=seeds, steps=300, lr=20.0,
                             start=start, demo_PT=demo_PT)
    return found["pass_at_8"][:, -1]

  return pass_at_8(demo_PT) - pass_at_8(None)
