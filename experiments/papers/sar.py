"""End (0), fill (1) that suits any prompt, and a step of work (2 to 7) for each of six
prompts. Right: ended, the prompt's own work in it, no other. Policies start with fill
and the own work likelier; without a prompt one speaks as all of them on average.
"""
import jax
import jax.numpy as jnp

from configs.papers import sar
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("right answers per token learned with the self-aligned term less those "
           "with verdicts alone")
OWN_P = jnp.arange(6) + 2


def is_right(prompt_B, tokens_BT, mask_BT):
  own_BT = tokens_BT == OWN_P[prompt_B][:, None]
  return (jnp.any((tokens_BT == 0) & mask_BT, axis=1) & jnp.any(own_BT, axis=1)
          & ~jnp.any((tokens_BT > 1) & ~own_BT, axis=1))


def without_prompt(logits_PNV, batch):
  """logps_BT of tokens given those before, the prompt being any."""
  so_far_PBT = jax.vmap(lambda prompt: jnp.cumsum(tabular.logps(
      logits_PNV, batch._replace(prompt_B=jnp.full_like(batch.prompt_B, prompt)))[0],
      axis=1))(jnp.arange(6))
  return jnp.diff(jax.nn.logsumexp(so_far_PBT, axis=0) - jnp.log(6.0), axis=1, prepend=0.0)


def effects(seeds):
  world = tabular.Tree(prompts=6, vocab=8, length=4, eos=True)
  tokens_LT, mask_LT = map(jnp.asarray, world.leaves)
  right_PL = jax.vmap(lambda prompt: is_right(
      jnp.full(len(tokens_LT), prompt), tokens_LT, mask_LT))(jnp.arange(6))
  start_PNV = world.start().at[:, :, 1].set(1.5).at[jnp.arange(6), :, OWN_P].set(1.5)

  def judge(key, logits_PNV, batch):
    del key
    return dict(outcome_B=1.0 * is_right(batch.prompt_B, batch.tokens_BT, batch.mask_BT),
                noprompt_logps_BT=without_prompt(logits_PNV, batch))

  def measure(logits_PNV):
    mean = lambda values_PL: world.expected_P(logits_PNV, values_PL).mean()
    return dict(accuracy=mean(right_PL), length=mean(mask_LT.sum(axis=1)))

  def per_token(coef):
    c = tabular.changed(sar.get_config(), rewards__aligned__coef=coef)
    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=200, lr=100.0,
                             start=lambda key: start_PNV)
    return found["accuracy"][:, -1] / found["length"][:, -1]

  return per_token(0.2) - per_token(0.0)
