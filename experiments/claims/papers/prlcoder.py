"""A program has four lines of four choices each, and one program of 256 is right. To train the PRM,
one line of each of 200 right programs of other prompts is changed, and by chance, one time in five,
into another right line; running the program says which. What the PRM reads of a line are eight
noisy signs of whether it is right.

PPO then has the rewards of the config's variant :rl, the score of each line and the verdict, or the
verdict alone. The signs that the PRM reads of a line of a prompt are drawn once, so that it is
always wrong about the same lines. The accuracy is measured.
"""
import jax
import jax.numpy as jnp
import optax

from configs.papers import prlcoder
from experiments.claims.environments import learn, steps, tabular
from rlx.losses import reward_model

MEASURE = "accuracy after 150 steps of PPO with rewards of lines and verdicts minus verdicts alone"
MARGIN, RATE = 0.05, 10.0
VARIANT = "rl"
FIRST = ("opposite", None)
TREE = tabular.Tree(prompts=8, vocab=4, length=4)
PROGRAMS = 200


def signs(key, is_right_BJ, sign):
  """Returns what the PRM reads of lines, [B, J, D], without their prompt and place."""
  none_B1 = jnp.zeros((len(is_right_BJ), 1))
  return steps.signs(key, is_right_BJ, none_B1, sign)[..., :9].at[..., 8].set(1.0)


def fit(key, sign, equal):
  """Returns the weights of a PRM that learns lines of right programs, one of each changed."""
  keys = jax.random.split(key, 3)
  changed_B1 = jax.random.randint(keys[0], (PROGRAMS, 1), 0, TREE.length)
  place_1J = jnp.arange(TREE.length)[None]
  passes_B1 = jax.random.bernoulli(keys[1], equal, (PROGRAMS, 1))
  is_right_BJ = (place_1J != changed_B1) | passes_B1
  x_BJD = signs(keys[2], is_right_BJ, sign)
  balanced = prlcoder.get_config().train_scorer.balanced
  def loss(weights_D, _):  # The copy ends with the changed line.
    return reward_model.bce((x_BJD @ weights_D).ravel(), 1.0 * is_right_BJ.ravel(),
                            (place_1J <= changed_B1).ravel(), balanced=balanced)
  return learn.descend(jnp.zeros(x_BJD.shape[2]), loss, optax.sgd(1.0), steps=300)


def environment(key):
  keys = jax.random.split(key, 4)
  sign, equal = tabular.around(keys[0], (0.5, 0.2))
  ok_PNV = steps.right_steps(keys[1], TREE, 1)
  weights_D = fit(keys[2], sign, equal)
  odds_BJ = signs(keys[3], ok_PNV.reshape(-1, TREE.vocab), sign) @ weights_D
  score_PNV = jax.nn.sigmoid(odds_BJ).reshape(ok_PNV.shape)

  def verify(batch, **_):
    return dict(outcome_B=steps.verdict_B(ok_PNV, batch), step_ends_BT=batch.mask_BT,
                step_scores_BT=score_PNV[
                    batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT])

  return tabular.Environment(verify, TREE.means(accuracy=steps.right_leaves(TREE, ok_PNV)))


def arms():
  c = prlcoder.get_config("rl")
  return tabular.arms({"lines": c, "verdicts": tabular.changed(
      c, rewards__process__coef=0.0)}, TREE, environment, "accuracy", steps=150)
