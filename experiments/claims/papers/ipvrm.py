"""Two implicit PRMs, tables with an entry for every prefix, rank the steps after a prefix.

A completion has four steps, and any wrong step makes it wrong: one completion in 16 is right. Both
PRMs learn from the verdicts of the same 16 completions of every prompt, with the config's beta and
margins (prefixes, without weights and adaptive margins, as in the paper's offline training), or as
in the paper on implicit PRMs (whole completions). Measured is the share of pairs of a right and a
wrong step after a right prefix of which the right one has the higher log-ratio; ties count one
half. Prefixes that were not sampled are left out.
"""
import jax
import jax.numpy as jnp

from configs.papers import implicit_prm, ipvrm
from experiments.claims.environments import learn, steps, tabular

MEASURE = ("share of pairs of steps ranked right by a PRM of prefixes minus that by a PRM of whole "
           "completions")
MARGIN, RATE = 0.02, 0.05
FIRST = ("not seen", None)
DIFFERS = {"prm.loss.balanced": "offline training, as the paper's comparison of PRMs",
           "prm.loss.adaptive": "offline training, as the paper's comparison of PRMs"}
TREE, GROUP = tabular.Tree(prompts=16, vocab=4, length=4), 16


def share_ranked(gain_PNV, counts_PN, ok_PNV):
  """Share of the pairs (right, wrong) of steps of the nodes that count, right ones above."""
  gap_PNVV = gain_PNV[..., :, None] - gain_PNV[..., None, :]
  pair_PNVV = ok_PNV[..., :, None] & ~ok_PNV[..., None, :] & counts_PN[..., None, None]
  higher_PNVV = 1.0 * (gap_PNVV > 1e-6) + 0.5 * (jnp.abs(gap_PNVV) <= 1e-6)
  return jnp.sum(higher_PNVV * pair_PNVV) / jnp.maximum(jnp.sum(pair_PNVV), 1)


def prm(c):
  """Returns an arm that trains the PRM of a config."""
  def run(seed, rate):
    keys = jax.random.split(jax.random.key(seed), 3)
    ok_PNV, policy = steps.right_steps(keys[0], TREE, 2), TREE.start(keys[1], 1.0)
    batch = TREE.sample(keys[2], policy, GROUP)
    ok_BT = ok_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
    learned = steps.learn_prm(c, ok_PNV, policy, batch, GROUP, rate)
    # Nodes that a completion reached by right steps.
    before_BT = jnp.pad(jnp.cumprod(ok_BT, axis=1)[:, :-1], ((0, 0), (1, 0)), constant_values=1)
    counts_PN = jnp.zeros(ok_PNV.shape[:2]).at[
        batch.prompt_B[:, None], batch.nodes_BT].max(1.0 * before_BT) > 0
    gain_PNV = jax.nn.log_softmax(learned) - jax.nn.log_softmax(policy)
    return share_ranked(gain_PNV, counts_PN, ok_PNV)
  return learn.arm(run)


def arms():
  prefixes = tabular.changed(ipvrm.get_config(), prm__loss=dict(
      name="prm.prefix_ce", margin=5.0, balanced=False, adaptive=False))
  return {"prefixes": prm(prefixes), "whole completions": prm(implicit_prm.get_config())}
