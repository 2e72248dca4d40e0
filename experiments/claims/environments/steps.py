"""Trees in which a completion is right if each of its tokens is a right step."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.claims.environments import learn, tabular, turns
from rlx.build import methods as build_methods


def right_steps(key, tree, count):
  """Returns ok_PNV: `count` random tokens at every node are right steps."""
  draw_PNV = jax.random.uniform(key, (tree.prompts, tree.nodes, tree.vocab))
  return draw_PNV <= jnp.sort(draw_PNV)[..., count - 1:count]


def right_leaves(tree, ok_PNV):
  """Returns right_PL, whether every step of a completion is right."""
  tokens_LT, mask_LT = map(jnp.asarray, tree.leaves)
  nodes_LT = tree.batch(jnp.zeros(len(tokens_LT), int), tokens_LT, mask_LT).nodes_BT
  return jnp.all(ok_PNV[:, nodes_LT, tokens_LT] | ~mask_LT[None], axis=2)


def verdict_B(ok_PNV, batch):
  """Returns 1 for completions of a batch whose steps are all right, else 0."""
  ok_BT = ok_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
  return 1.0 * jnp.all(ok_BT | ~batch.mask_BT, axis=1)


def signs(key, is_right_BJ, difficulty_B1, sign):
  """Returns features_BJD of steps, of which a linear PRM learns.

  They are eight noisy signs of whether a step is right, the difficulty of its prompt, and its
  position.
  """
  noisy_BJD = (jnp.where(is_right_BJ, sign, -sign)[:, :, None]
               + jax.random.normal(key, (*is_right_BJ.shape, 8)))
  known_BJ1 = jnp.broadcast_to(difficulty_B1, is_right_BJ.shape)[:, :, None]
  place_JJ = jnp.eye(is_right_BJ.shape[1])
  return jnp.concatenate([noisy_BJD, known_BJ1, jnp.broadcast_to(
      place_JJ, (*is_right_BJ.shape, len(place_JJ)))], axis=2)


def environment_with_judge(key, tree, name_fields):
  """An environment whose judge of steps is wrong about one in ten of them, drawn anew each time.

  Two of the tokens at every node are right steps.

  Args:
    name_fields: (scores_BT, batch) -> the fields in which rewards read the judge's verdicts.
  """
  keys = jax.random.split(key)
  ok_PNV = right_steps(keys[0], tree, 2)
  mistakes = tabular.around(keys[1], 0.1)

  def verify(batch, key, **_):
    ok_BT = ok_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
    mistaken_BT = jax.random.bernoulli(key, mistakes, ok_BT.shape)
    return dict(outcome_B=verdict_B(ok_PNV, batch),
                **name_fields(1.0 * (ok_BT ^ mistaken_BT), batch))

  return tabular.Environment(verify, tree.means(accuracy=right_leaves(tree, ok_PNV)))


def learn_prm(c, ok_PNV, policy, batch, group, rate):
  """Returns the parameters of an implicit PRM that starts as the policy, after 200 steps of Adam.

  It learns from the verdicts of a batch with the loss of a config.
  """
  loss = build_methods.resolve_methods(c).prm
  scored = tabular.record(
      batch.mask_BT, verdict_B(ok_PNV, batch), group=group,
      prm_ref_logps_BT=tabular.logps(policy, batch)[0],
      prm_beta_B=jnp.full(len(batch.mask_BT), c.prm.beta))
  return learn.descend(policy, lambda x, _: loss(scored.replace(
      prm_logps_BT=tabular.logps(x, batch)[0])), optax.adam(rate), steps=200)


def saved(accuracy_IS, other_IS):
  """Returns the share of the other arm's steps that an arm saves until an accuracy both reach.

  The share is 0 where both start at that accuracy.

  Args:
    accuracy_IS, other_IS: accuracy of every seed before each step and at the end.
  """
  level_I1 = np.minimum(accuracy_IS[:, -1:], other_IS[:, -1:])
  first_I, other_I = (np.argmax(x_IS >= level_I1, axis=1) for x_IS in (accuracy_IS, other_IS))
  return np.where(other_I > 0, 1 - first_I / np.maximum(other_I, 1), 0)


SPARED = tabular.Tree(prompts=16, vocab=4, length=5)


def environment(key, tree=SPARED):
  """One completion of SPARED in 32 is right: it has five steps, and all of them must be right.

  A step is a token and, for methods of episodes, a turn.
  """
  ok_PNV = right_steps(key, tree, 2)
  right_PL = right_leaves(tree, ok_PNV)

  def verify(batch, **_):
    return dict(outcome_B=verdict_B(ok_PNV, batch), **turns.columns(batch))

  return tabular.Environment(verify, tree.means(accuracy=right_PL))


def curve(c, *, steps=240, tree=SPARED):
  """Returns an arm: a function from (seeds, rates) to (accuracy_IS in `environment`, its mean).

  The learning rate of the PRM is twice the policy's at a beta of 1/2, and changes with beta so
  that small updates move its log-odds equally far.
  """
  def arm(seeds, rates):
    metrics, _ = tabular.train(c, tree, lambda key: environment(key, tree), seeds=seeds, lr=rates,
                               prm_lr=rates / 2 / c.prm.beta**2, steps=steps)
    return metrics["accuracy"], metrics["accuracy"].mean(axis=1)
  return arm


def outcomes_alone(c):
  """Returns a config without its process rewards."""
  return tabular.changed(
      c, rewards=dict(outcome=c.rewards.outcome),
      advantages=dict(outcome=c.advantages.outcome, whiten=c.advantages.whiten))
