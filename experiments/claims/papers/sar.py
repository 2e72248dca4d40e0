"""A completion consists of an end token (0), fill (1), which suits any prompt, and steps of work
(2 to 5), one for each of four prompts. It is right if it ends, contains the work of its own
prompt and contains no other work. The policies start with fill and their own work more likely
than other tokens; the likelihood without a prompt is the average over the four prompts.

The config with the self-aligned term is compared with verdicts alone. Measured is the accuracy
per token, at the learning rate with the best accuracy.
"""
import jax
import jax.numpy as jnp

from configs.papers import sar
from experiments.claims.environments import tabular, verdicts

MEASURE = "right answers per token with the self-aligned term minus those with verdicts alone"
MARGIN, RATE = 0.02, 100.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=4, vocab=6, length=4, eos=True)
OWN_P = jnp.arange(4) + 2


def is_right(batch):
  own_BT = batch.tokens_BT == OWN_P[batch.prompt_B][:, None]
  return (jnp.any((batch.tokens_BT == 0) & batch.mask_BT, axis=1) & jnp.any(own_BT, axis=1)
          & ~jnp.any((batch.tokens_BT > 1) & ~own_BT, axis=1))


def without_prompt(logits_PNV, batch):
  """Returns logps_BT of tokens given the previous ones, under the average over all prompts."""
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
  return tabular.Environment(
      verify, TREE.means(accuracy=right_PL, length=length_L),
      start=TREE.start().at[:, :, 1].set(fill_PN).at[jnp.arange(4), :, OWN_P].set(own_PN))


def arms():
  c = sar.get_config()
  def per_token(curves):
    return curves["accuracy"][:, -1] / curves["length"][:, -1], curves["accuracy"][:, -1]
  return tabular.arms(
      {"self-aligned": c, "verdicts alone": tabular.changed(c, rewards__aligned__coef=0.0)},
      TREE, environment, per_token, steps=150)
