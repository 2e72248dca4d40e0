"""Completions have four tokens of four; at each position of a prompt two of the tokens are right.
An editor replaces the wrong tokens of 100 completions of the initial policy by right ones, and is
wrong about one token in ten. From these edits a reward model of tokens learns what was taken away
and what was added, with the labels of the config. The reward model of the whole learns from twice
as many pairs of completions, of which the one with more right tokens is preferred, and one
preference in ten is the wrong one; its score is a sum over the same table of tokens.

The check measures the share of right tokens at the end of PPO with the rewards of tokens, less
that of PPO with the score of the whole at the last token.
"""
import jax
import jax.numpy as jnp
import optax

from configs.papers import edit_rewards
from experiments.claims.environments import learn, tabular
from rlx.losses import reward_model

MEASURE = ("share of right tokens after 150 steps of PPO with rewards of tokens minus that with "
           "one reward of the whole")
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=4, length=4)
EDITS, PAIRS, PLACES_1T = 100, 200, jnp.arange(TREE.length)[None]


def drawn(key, shape):
  """Returns (prompts, tokens [..., T]) of the initial policy, which is uniform."""
  keys = jax.random.split(key)
  return (jax.random.randint(keys[0], shape[:1], 0, TREE.prompts),
          jax.random.randint(keys[1], (*shape, TREE.length), 0, TREE.vocab))


def fit(loss_of):
  """Returns the table [P, T, V] that a reward model learns."""
  return learn.descend(jnp.zeros((TREE.prompts, TREE.length, TREE.vocab)),
                       lambda table_PTV, _: loss_of(table_PTV), optax.adam(0.05), steps=200)


def of_tokens(key, ok_PTV, mistakes):
  """Returns the log-odds [P, T, V] that tokens are good, learned from edits."""
  keys = jax.random.split(key, 3)
  prompt_N, before_NT = drawn(keys[0], (EDITS,))
  ok_NTV = ok_PTV[prompt_N]
  is_ok_NT = jnp.take_along_axis(ok_NTV, before_NT[..., None], axis=2)[..., 0]
  edits_NT = ~is_ok_NT ^ jax.random.bernoulli(keys[1], mistakes, is_ok_NT.shape)
  others_NTV = ~jax.nn.one_hot(before_NT, TREE.vocab, dtype=bool)
  # Where the editor mistakes a right token for a wrong one, the replacement is the wrong kind.
  good_NTV = others_NTV & (ok_NTV ^ is_ok_NT[..., None])
  after_NT = jax.random.categorical(keys[2], jnp.where(good_NTV, 0.0, -jnp.inf))
  tokens_2NT = jnp.stack([before_NT, jnp.where(edits_NT, after_NT, before_NT)])
  labels_2NT = jnp.stack([jnp.where(edits_NT, 0.0, 0.5), jnp.where(edits_NT, 1.0, 0.5)])
  return fit(lambda table_PTV: reward_model.bce(
      table_PTV[prompt_N[None, :, None], PLACES_1T[None], tokens_2NT].ravel(), labels_2NT.ravel(),
      jnp.ones(labels_2NT.size, bool)))


def of_whole(key, ok_PTV, mistakes):
  """Returns the table [P, T, V] whose sum over a completion is its score, learned from pairs."""
  keys = jax.random.split(key)
  prompt_N, tokens_N2T = drawn(keys[0], (PAIRS, 2))
  read = lambda table_PTV: table_PTV[
      prompt_N[:, None, None], PLACES_1T[None], tokens_N2T].sum(axis=2)
  right_N2 = read(1.0 * ok_PTV)
  valid_N = right_N2[:, 0] != right_N2[:, 1]
  best_N = (right_N2[:, 1] > right_N2[:, 0]) ^ jax.random.bernoulli(keys[1], mistakes, (PAIRS,))
  sign_N = jnp.where(best_N, -1, 1)
  return fit(lambda table_PTV: reward_model.bradley_terry(
      *(sign_N[None] * read(table_PTV).T), valid_N))


def environment(key):
  keys = jax.random.split(key, 4)
  draw_PTV = jax.random.uniform(keys[0], (TREE.prompts, TREE.length, TREE.vocab))
  ok_PTV = draw_PTV <= jnp.sort(draw_PTV)[..., 1:2]
  mistakes_2 = tabular.around(keys[1], (0.1, 0.1))
  odds_PTV = of_tokens(keys[2], ok_PTV, mistakes_2[0])
  whole_PTV = of_whole(keys[3], ok_PTV, mistakes_2[1])

  def verify(batch, **_):
    read = lambda table_PTV: table_PTV[batch.prompt_B[:, None], PLACES_1T, batch.tokens_BT]
    return dict(outcome_B=jnp.zeros(len(batch.prompt_B)), reward_B=read(whole_PTV).sum(axis=1),
                span_scores_BT=jax.nn.sigmoid(read(odds_PTV)))

  right_PL = ok_PTV[:, PLACES_1T, TREE.leaves[0]].mean(axis=2)
  return tabular.Environment(verify, TREE.means(right=right_PL))


def arms():
  c = edit_rewards.get_config()
  whole = tabular.changed(c, rewards=dict(whole=dict(name="outcome.reward", coef=1.0)))
  return tabular.arms({"tokens": c, "the whole": whole}, TREE, environment, "right", steps=150)
