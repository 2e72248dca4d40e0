"""Trees of right and wrong steps, and what an arm saves of another's."""
import jax
import numpy as np

from experiments.claims.environments import steps, tabular


def test_saved_by_hand():
  """Of rows: 0.8 after 1 step of 2, the other way round, nothing to save at the start."""
  quick, slow, sinks = [0.1, 0.8, 0.9], [0.1, 0.5, 0.8], [0.1, 0.3, 0.1]
  np.testing.assert_array_equal(
      steps.saved(np.array([quick, slow, sinks]), np.array([slow, quick, sinks])), [0.5, -1, 0])


def test_right_leaves_have_right_steps_alone():
  """Two of four tokens are right at every node: 2^3 of 4^3 leaves, those of verdict 1."""
  tree = tabular.Tree(prompts=3, vocab=4, length=3)

  @jax.jit
  def drawn():
    ok_PNV = steps.right_steps(jax.random.key(0), tree, 2)
    batch = tree.sample(jax.random.key(1), tree.start(), 50)
    return (ok_PNV, steps.right_leaves(tree, ok_PNV), steps.verdict_B(ok_PNV, batch),
            batch.prompt_B, tree.leaf_B(batch))

  ok_PNV, right_PL, verdict_B, prompt_B, leaf_B = jax.device_get(drawn())
  assert (ok_PNV.sum(axis=2) == 2).all() and (right_PL.sum(axis=1) == 8).all()
  np.testing.assert_array_equal(verdict_B, right_PL[prompt_B, leaf_B])
