"""Environments and measures that several checks of claims share."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.claims.environments import tabular, verdicts


def test_a_completion_is_the_leaf_of_its_tokens():
  tree = tabular.Tree(prompts=2, vocab=3, length=2)

  @jax.jit
  def sampled():
    batch = tree.sample(jax.random.key(0), tree.start(), 50)
    return batch, tree.leaf_B(batch), verdicts.of_leaves(tree, lambda b: b.tokens_BT[:, 1] == 2)

  batch, leaf_B, is_right_PL = jax.device_get(sampled())
  np.testing.assert_array_equal(tree.leaves[0][leaf_B], batch.tokens_BT)
  # Read off the tokens or looked up by the leaf: the same completions are right.
  np.testing.assert_array_equal(is_right_PL[batch.prompt_B, leaf_B], batch.tokens_BT[:, 1] == 2)


@jax.jit
def flipped_share(flip):
  tree = tabular.Tree(prompts=4, vocab=4, length=2)
  right_PL = verdicts.drawn(jax.random.key(0), tree, 0.3)
  batch = tree.sample(jax.random.key(1), tree.start(), 1000)
  judged = verdicts.verifier(tree, right_PL, flip)(batch, jax.random.key(2))
  return jnp.mean(judged["outcome_B"] != right_PL[batch.prompt_B, tree.leaf_B(batch)])


@pytest.mark.parametrize("flip, share", [(0.0, 0.0), (0.25, 0.25), (1.0, 1.0)])
def test_verdicts_are_flipped_as_often_as_asked(flip, share):
  flipped = float(flipped_share(flip))
  assert flipped == share if flip in (0, 1) else abs(flipped - share) < 0.03


def test_a_fork_is_the_only_token_to_learn():
  """The start knows four of five tokens; with 4 to choose from it is right in 1 of 4 cases."""
  tree = tabular.Tree(prompts=16, vocab=4, length=5)

  @jax.jit
  def measured(seed):
    env = verdicts.fork(jax.random.key(seed), tree)
    batch = tree.sample(jax.random.key(1), env.start, 8)
    _, entropy_BT = tabular.logps(env.start, batch)
    right_B = env.verify(batch, key=jax.random.key(2))["outcome_B"]
    return entropy_BT.mean(axis=0), env.measure(env.start)["accuracy"], right_B.mean()

  places = set()
  for seed in range(3):
    entropy_T, accuracy, right = jax.device_get(measured(seed))
    places.add(int(entropy_T.argmax()))
    assert sorted(entropy_T)[-2] < 0.1 < 1 < entropy_T.max()
    assert abs(accuracy - 0.25) < 0.08 and 0.1 < right < 0.4
  assert len(places) > 1, "the place is drawn from the seed"
