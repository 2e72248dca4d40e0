"""PROF's filter by step scores against adding the mean score of the steps to the verdict.

One in 25 of 256 possible completions is right. The step verifier gives one token, filler, the
highest score whatever follows from it. Its scores of other steps are noisy, and higher in
right completions.

Both arms sample eight completions for each prompt, of which PROF is trained on four. Neither
leaves out prompts by their accuracy: groups without a right completion teach the blend what the
step verifier likes, and PROF nothing. The accuracy is measured.
"""
import jax
import jax.numpy as jnp

from configs.papers import prof
from experiments.claims.environments import tabular, verdicts

MEASURE = "accuracy with step scores as a filter minus that with them added to the verdict"
MARGIN, RATE = 0.05, 20.0
FIRST = ("not seen", "the environment was one; a later version, also not seen, left out prompts by "
         "their accuracy, as the config did until it was compared with the released code")
TREE = tabular.Tree(prompts=8, vocab=4, length=4)


def environment(key):
  keys = jax.random.split(key, 3)
  right_PL = verdicts.drawn(keys[0], TREE, 0.04)
  base, gain, liked = tabular.around(keys[1], (0.4, 0.2, 0.9), 0.1)
  steps_PLT = (base + gain * right_PL[..., None]
               + 0.15 * jax.random.normal(keys[2], (*right_PL.shape, 4)))
  filler_LT = jnp.asarray(TREE.leaves[0]) == 1
  score_PL = jnp.mean(jnp.where(filler_LT, liked, steps_PLT), axis=2)
  return tabular.Environment(TREE.verifier(outcome_B=right_PL, scores_BE=score_PL[..., None]),
                             TREE.means(accuracy=right_PL))


def arms():
  c = prof.get_config()
  blend = tabular.changed(
      c, rollouts__select_completions=dict(name="select_completions.everything"),
      rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0),
                   score=dict(name="shaping.plain", coef=1.0)),
      advantages=dict(total=dict(name="group.grpo"), whiten=False))
  return tabular.arms({"filter": c, "blend": blend}, TREE, environment, "accuracy", steps=150)
