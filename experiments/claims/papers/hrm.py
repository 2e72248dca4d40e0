"""Solutions have six steps. One step in five is wrong, and leaves one chance in twenty of success.
The step behind a wrong one repairs it with a chance of 0.4; what a PRM reads of a step are eight
noisy signs of whether it is wrong, as many of whether it repairs, the means of both over the steps
before, the difficulty of the prompt and the position. Labels are those of eight rollouts after each
step.

Two linear PRMs learn these labels: those of single steps and, as in the config, also those of a
copy in which two steps, drawn at random, are one, whose label is that of the later. The measure is
how often a step that repairs the one before scores above one that does not, of new solutions (AUC).
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import stats

from configs.papers import hrm
from experiments.claims.environments import learn, steps, tabular
from rlx.losses import reward_model
from rlx.rewards import step_labels

CLAIM = 1
MEASURE = ("share of steps that repair a wrong one which score above steps that do not: with pairs "
           "of steps as one minus single steps alone")
MARGIN, RATE = 0.05, 1.0
FIRST = ("not recorded", "this is the first version, which is underpowered")
SOLUTIONS, STEPS, ROLLOUTS = 512, 6, 8


def solutions(key, sign, wrong, repairs, luck, hard):
  """Returns (features_BJD, chance_BJ after each step, whether a step repairs and could, BJ)."""
  keys = jax.random.split(key, 5)
  draw_BJ, again_BJ = jax.random.uniform(keys[0], (2, SOLUTIONS, STEPS))
  def walk(is_broken_B, draws):
    draw_B, again_B = draws
    repairs_B = is_broken_B & (again_B < repairs)
    errs_B = ~is_broken_B & (draw_B < wrong)
    return (is_broken_B & ~repairs_B) | errs_B, (errs_B, repairs_B, is_broken_B)
  last_B, (errs_JB, repairs_JB, was_JB) = jax.lax.scan(
      walk, jnp.zeros(SOLUTIONS, bool), (draw_BJ.T, again_BJ.T))
  is_broken_BJ = jnp.concatenate([was_JB[1:], last_B[None]]).T
  difficulty_B1 = jax.random.uniform(keys[1], (SOLUTIONS, 1))
  left_1J = STEPS - 1 - jnp.arange(STEPS)[None]
  chance_BJ = jnp.where(is_broken_BJ, luck, (1 - hard * difficulty_B1)**left_1J)
  seen_BJD = steps.signs(keys[2], ~errs_JB.T, difficulty_B1, sign)
  own_BJS = jnp.concatenate([seen_BJD[..., :8], steps.signs(
      keys[3], repairs_JB.T, difficulty_B1, sign)[..., :8]], axis=2)
  before_BJS = (jnp.cumsum(own_BJS, axis=1) - own_BJS) / STEPS
  return (jnp.concatenate([own_BJS, before_BJS, seen_BJD[..., 8:]], axis=2), chance_BJ,
          repairs_JB.T, was_JB.T)


def arms():
  kind = hrm.get_config().train_scorer.labels
  def arm(is_merged):
    def run(seed, rate):
      keys = jax.random.split(jax.random.key(seed), 5)
      world = tabular.around(keys[0], (0.5, 0.2, 0.4, 0.05, 0.3))
      x_BJD, chance_BJ, *_ = solutions(keys[1], *world)
      values_BJ = jax.random.binomial(keys[2], ROLLOUTS, chance_BJ) / ROLLOUTS
      left_out_BJ = jnp.arange(STEPS)[None] == jax.random.randint(
          keys[3], (SOLUTIONS, 1), 0, STEPS - 1)
      labels = lambda values_BJ: step_labels.from_values(
          values_BJ, jnp.ones(values_BJ.shape, bool), kind=kind)
      # A step that is one with the next has no label and makes no later one wrong.
      labels_2BJ = jnp.stack([labels(values_BJ), labels(jnp.where(left_out_BJ, 1.0, values_BJ))])
      valid_2BJ = jnp.stack([jnp.ones(left_out_BJ.shape, bool), ~left_out_BJ & is_merged])
      def loss(weights_D, _):
        scores_BJ = x_BJD @ weights_D
        return reward_model.bce(jnp.stack([scores_BJ] * 2).ravel(), labels_2BJ.ravel(),
                                valid_2BJ.ravel())
      weights_D = learn.descend(jnp.zeros(x_BJD.shape[2]), loss, optax.sgd(rate), steps=300)
      new_BJD, _, repairs_BJ, could_BJ = solutions(keys[4], *world)
      return new_BJD @ weights_D, repairs_BJ, could_BJ

    def measure(scores_BJ, repairs_BJ, could_BJ):
      yes_N, no_N = scores_BJ[could_BJ & repairs_BJ], scores_BJ[could_BJ & ~repairs_BJ]
      if not np.isfinite(scores_BJ).all(): return np.nan
      return stats.mannwhitneyu(yes_N, no_N).statistic / (len(yes_N) * len(no_N))
    return learn.arm(run, measure)
  return {"two steps as one": arm(True), "single steps": arm(False)}
