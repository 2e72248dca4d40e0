"""An environment for step rewards: end (0), fill (1) and work (2, 3), at most five steps.

An answer is right if it ends after the two steps of work that its prompt asks for, in
their order, without other work. Fill is allowed and has no effect. One answer in 30 is right
under uniform sampling.

The step verifier scores each step alone. It scores fill almost as high as work, and it
recognises work that the prompt did not ask for and an end that comes too early. The more steps
a completion has, the larger is the sum of its scores. The scores are drawn from the seed.
"""
import jax
import jax.numpy as jnp

from experiments.claims.environments import tabular

TREE = tabular.Tree(prompts=4, vocab=4, length=5, eos=True)
WORK_P2 = jnp.array([[2, 2], [2, 3], [3, 2], [3, 3]])
SCORES_3 = jnp.array([0.7, 0.75, 0.3])  # Scores of fill, good steps and bad steps, +- 0.05.


def walk(prompt_B, tokens_BT, mask_BT, scores_3=SCORES_3):
  """Returns (scores_BT of the step verifier, is_right_B)."""
  done_B, ok_B = jnp.zeros_like(prompt_B), jnp.ones_like(prompt_B, bool)
  right_B, scores, (fill, good, bad) = jnp.zeros_like(ok_B), [], scores_3
  for token_B, is_token_B in zip(tokens_BT.T, mask_BT.T):
    ends_B, works_B = is_token_B & (token_B == 0), is_token_B & (token_B > 1)
    fits_B = works_B & (done_B < 2) & (token_B == WORK_P2[prompt_B, jnp.minimum(done_B, 1)])
    right_B = right_B | (ends_B & ok_B & (done_B == 2))
    good_B = fits_B | (ends_B & right_B)
    scores.append(jnp.where(token_B == 1, fill, jnp.where(good_B, good, bad)))
    ok_B, done_B = ok_B & (fits_B | ~works_B), done_B + fits_B
  return jnp.stack(scores, axis=1), right_B


def over_prompts(tokens_LT, mask_LT):
  """Returns right_PL, which of the completions are right for each prompt."""
  tokens_LT, mask_LT = jnp.asarray(tokens_LT), jnp.asarray(mask_LT)
  return jax.vmap(lambda prompt: walk(
      jnp.full(len(tokens_LT), prompt), tokens_LT, mask_LT)[1])(jnp.arange(TREE.prompts))


def environment(key):
  """Returns a tabular.Environment."""
  scores_3 = SCORES_3 + jax.random.uniform(key, (3,), minval=-0.05, maxval=0.05)
  right_PL = over_prompts(*TREE.leaves)

  def verify(batch, **_):
    scores_BT, right_B = walk(batch.prompt_B, batch.tokens_BT, batch.mask_BT, scores_3)
    return dict(outcome_B=1.0 * right_B, step_scores_BT=scores_BT, step_ends_BT=batch.mask_BT)

  return tabular.Environment(verify, TREE.means(accuracy=right_PL))


def arms(configs, measure, *, environment=environment, steps=300):
  """Returns {name: arm} for {name: config}; "accuracy" is the probability of a right answer."""
  return tabular.arms(configs, TREE, environment, measure, steps=steps)
