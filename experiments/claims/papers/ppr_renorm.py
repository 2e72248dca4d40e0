"""Scores of turns shifted by the outcome against unshifted ones, for an agent that searches.

An episode has at most four turns: answer (0), search (1) and stray (2). An answer needs a
search before it and no stray turn; each further search makes it wrong with a probability near
0.3. The scores are high for any search. Both arms have rewards for the outcome, on the last
turn, and for the turns before; with the shift no turn of a failed episode has a reward above 0.
The accuracy is measured.
"""
import jax
import jax.numpy as jnp

from configs.papers import ppr_renorm
from experiments.claims.environments import tabular, turns, verdicts

MEASURE = "accuracy learned from shifted scores of turns minus that from scores as they are"
MARGIN, RATE = 0.05, 4.0
FIRST = ("confirmed", "its turns were the steps of a completion")
TREE = tabular.Tree(prompts=4, vocab=3, length=4, eos=True)
SCORES_V = (0.6, 0.8, 0.3)  # of answer, search, stray


def environment(key):
  keys = jax.random.split(key)
  scores_V, misled = tabular.around(keys[0], SCORES_V), tabular.around(keys[1], 0.3)

  def chance(batch):
    """The probability that each completion is right."""
    positions_BT = lambda token: (batch.tokens_BT == token) & batch.mask_BT
    searches_B = positions_BT(1).sum(axis=1)
    can_B = positions_BT(0).any(axis=1) & ~positions_BT(2).any(axis=1) & (searches_B > 0)
    return jnp.where(can_B, (1 - misled) ** (searches_B - 1.0), 0.0)

  def verify(batch, key, **_):
    outcome_B = 1.0 * jax.random.bernoulli(key, chance(batch))
    return dict(outcome_B=outcome_B, **turns.columns(batch), turn_rewards_BT=turns.with_outcome(
        scores_V[batch.tokens_BT], outcome_B, batch.mask_BT))

  return tabular.Environment(verify, TREE.means(accuracy=verdicts.of_leaves(TREE, chance)))


def arms():
  c = ppr_renorm.get_config()
  plain = tabular.changed(c, rewards__turns=dict(name="turns.environment", coef=1.0))
  return tabular.arms({"shifted": c, "as they are": plain},
                      TREE, environment, "accuracy", steps=300)
