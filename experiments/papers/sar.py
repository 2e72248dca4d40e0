"""End (0), fill (1) that suits any prompt, and a step of work (2 to 5) for each of four
prompts. Right: ended, the prompt's own work in it, no other. Policies start with fill
and the own work likelier; without a prompt one speaks as all of them on average. At the
rate of the best accuracy.
"""
import jax
import jax.numpy as jnp

from configs.papers import sar
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = ("right answers per token learned with the self-aligned term less those "
           "with verdicts alone")
MARGIN, RATE = 0.02, 100.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=4, vocab=6, length=4, eos=True)
OWN_P = jnp.arange(4) + 2


def is_right(batch):
  own_BT = batch.tokens_BT == OWN_P[batch.prompt_B][:, None]
  return (jnp.any((batch.tokens_BT == 0) & batch.mask_BT, axis=1) & jnp.any(own_BT, axis=1)
          & ~jnp.any((batch.tokens_BT > 1) & ~own_BT, axis=1))


def without_prompt(logits_PNV, batch):
  """logps_BT of tokens given those before, the prompt being any."""
  so_far_PBT = jax.vmap(lambda prompt: jnp.cumsum(tabular.logps(
      logits_PNV, batch._replace(prompt_B=jnp.full_like(batch.prompt_B, prompt)))[0],
      axis=1))(jnp.arange(4))
  return jnp.diff(jax.nn.logsumexp(so_far_PBT, axis=0) - jnp.log(4.0), axis=1, prepend=0.0)


def verify(batch, logits_PNV, **_):
  return dict(outcome_B=1.0 * is_right(batch), noprompt_logps_BT=without_prompt(logits_PNV, batch))


def environment(key):
  fill_PN, own_PN = tabular.around(key, jnp.full((2, 4, TREE.nodes), 1.5))
  right_PL = verdicts.of_leaves(TREE, is_right)
  length_L = jnp.asarray(TREE.leaves[1].sum(axis=1))
  def measure(logits_PNV):
    mean = lambda values_PL: TREE.expected_P(logits_PNV, values_PL).mean()
    return dict(accuracy=mean(right_PL), length=mean(length_L))
  return tabular.Environment(verify, measure, start=TREE.start().at[:, :, 1].set(
      fill_PN).at[jnp.arange(4), :, OWN_P].set(own_PN))


def arms():
  c = sar.get_config()
  def per_token(curves):
    return curves["accuracy"][:, -1] / curves["length"][:, -1], curves["accuracy"][:, -1]
  return tabular.arms({
      "self-aligned": c,
      "verdicts alone": tabular.changed(c, rewards__aligned__coef=0.0),
  }, TREE, environment, per_token, steps=150)
