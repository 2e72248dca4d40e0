"""Some rare first tokens are worth learning but have low rewards at first.

Tokens 0 to 3 are common and right by chance, half of the time. Tokens 4 and 5 are rare (3% each)
and right only if they are followed by one of eight second tokens, which can be learned. Tokens
6 and 7 are noise (0.2%) and wrong. Each batch is used for eight steps, as in the paper's
off-policy runs: on-policy the proxy is the policy except for the noise, 0.3% in this tree.
Lp-Reg is compared with the same loss without the divergence (kl_coef = 0).
"""
import jax
import jax.numpy as jnp

from configs.papers import lp_reg
from experiments.claims.environments import tabular

MEASURE = "accuracy after 300 steps with the divergence minus that without it"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded", "the baseline did not learn")
TREE = tabular.Tree(prompts=8, vocab=8, length=2)
START_V = (0, 0, 0, 0, -2, -2, -5, -5)


def environment(key):
  keys = jax.random.split(key, 3)
  luck, start_V = tabular.around(keys[0], 0.5), tabular.around(keys[1], START_V)
  asked_P = jax.random.randint(keys[2], (8,), 0, 8)

  def chance(prompt, first, second):
    """Returns the probability of being right."""
    return jnp.where(first < 4, luck, (first < 6) & (second == asked_P[prompt]))

  def verify(batch, key, **_):
    drawn_B = jax.random.uniform(key, batch.prompt_B.shape)
    return dict(outcome_B=1.0 * (drawn_B < chance(batch.prompt_B, *batch.tokens_BT.T)))

  chance_PL = chance(jnp.arange(8)[:, None], *jnp.asarray(TREE.leaves[0]).T[:, None])
  return tabular.Environment(verify, TREE.means(accuracy=chance_PL),
                             start=TREE.start().at[:, 0].set(start_V))


def arms():
  c = tabular.changed(lp_reg.get_config("off"), rollouts__per_prompt=16, learner__epochs=8)
  without = tabular.changed(c, learner__loss__kl_coef=0.0)
  return tabular.arms({"Lp-Reg": c, "no divergence": without},
                      TREE, environment, "accuracy", steps=300)
