"""A call is a name, a parameter and a value, each one of six of which one is right: 1 in 216 calls of
the initial policy. A parameter counts only for the right name, and a value only for the right
parameter. Learning from the share that is right is compared with learning from whole calls.
"""
import jax
import jax.numpy as jnp

from configs.papers import toolrl
from experiments.claims.environments import tabular

MEASURE = "mean accuracy over 100 steps with rewards for parts minus that for whole calls"
MARGIN, RATE = 0.05, 5.0
FIRST = ("confirmed", None)
P, V = 8, 6
TREE = tabular.Tree(prompts=P, vocab=V, length=3)


def environment(is_whole):
  def draw(key):
    right_PT = jax.random.randint(key, (P, 3), 0, V)

    def verify(batch, **_):
      right_BT = jnp.cumprod(batch.tokens_BT == right_PT[batch.prompt_B], axis=1)
      share_B = right_BT.sum(axis=1) / 3  # Names, keys and values of one call: s / s_max.
      return dict(outcome_B=jnp.floor(share_B) if is_whole else share_B,
                  scores_BE=jnp.ones((len(share_B), 1)))  # The form is right.

    right_PL = jnp.all(jnp.asarray(TREE.leaves[0])[None] == right_PT[:, None], axis=2)
    return tabular.Environment(verify, TREE.means(accuracy=right_PL))
  return draw


def arms():
  c = toolrl.get_config()
  return {name: tabular.arm(c, TREE, environment(is_whole), tabular.mean("accuracy"), steps=100)
          for name, is_whole in (("parts", False), ("whole calls", True))}
