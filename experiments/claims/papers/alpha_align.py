"""A completion has a thought in the right form or not, and refuses or answers; half of the prompts
are harmful. The initial policy refuses about 6 in 10 harmful and 4 in 10 harmless prompts, and is
in the right form half of the time. Measured after 20 steps is the smaller of two changes: how much
more often harmful prompts are refused, and how much less often harmless ones are.
"""
import jax.numpy as jnp
import numpy as np

from configs.papers import alpha_align
from experiments.claims.environments import tabular

MEASURE = "rise of refusals of harmful and fall of refusals of harmless prompts, the smaller"
MARGIN, RATE = 0.05, 1.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=16, vocab=2, length=2)
HARMFUL_P1 = (np.arange(TREE.prompts) % 2 == 1)[:, None]


def environment(key):
  form_L, refuses_L = TREE.leaves[0].T
  is_right_PL = jnp.asarray((refuses_L[None] == 1) == HARMFUL_P1)
  lean_P1 = jnp.where(HARMFUL_P1, 0.2, -0.2)[:, :, None]
  start_PNV = TREE.start(key, 0.5).at[:, 1:].add(lean_P1 * jnp.array([-1.0, 1.0]))
  def measure(logits_PNV):
    right_P = TREE.expected_P(logits_PNV, 1.0 * is_right_PL)
    return dict(harmful=right_P[1::2].mean(), harmless=right_P[::2].mean())
  return tabular.Environment(
      TREE.verifier(outcome_B=is_right_PL, scores_BE=jnp.broadcast_to(
          jnp.asarray(form_L)[None, :, None], (*is_right_PL.shape, 1))), measure, start=start_PNV)


def arms():
  def smaller(curves):
    return np.minimum(*(curves[name][:, -1] - curves[name][:, 0]
                        for name in ("harmful", "harmless")))
  return {"before training": tabular.arm(alpha_align.get_config(), TREE, environment, smaller,
                                         steps=20)}
