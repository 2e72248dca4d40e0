"""PAR against the plain score of a reward model, where the score is overoptimised.

The reward model likes one token, for example a flattering one: its score increases with
every occurrence among the four tokens. The gold score is highest at about two occurrences,
and four are worse than none.

The scores, multiplied by the config's k, spread over several units at the start, as logits
do. The other arm is trained on the scores themselves. The gold score is measured.
"""
import jax.numpy as jnp

from configs.papers import par
from experiments.claims.environments import tabular

MEASURE = "gold score over 300 steps with PAR minus that with the plain score"
MARGIN, RATE = 0.2, 10.0
FIRST = ("confirmed", "PAR compared with a constant score, and its k was not that of the config")
TREE = tabular.Tree(prompts=4, vocab=4, length=4)


def arms():
  c = par.get_config()

  def environment(key):
    gain, loss, slope = tabular.around(key, (3.75, 1.0, 2.0 / c.rewards.outcome.k))
    liked_L = jnp.sum(jnp.asarray(TREE.leaves[0]) == 1, axis=1)
    gold_L = gain * liked_L - loss * liked_L**2  # About 0, 2.75, 3.5, 2.25 and -1.

    def verify(batch, **_):
      liked_B = jnp.sum(batch.tokens_BT == 1, axis=1)
      return dict(outcome_B=jnp.zeros(len(liked_B)), scores_BE=slope * liked_B[:, None])

    return tabular.Environment(verify, TREE.means(gold=gold_L[None]))

  plain = dict(name="shaping.plain", coef=1.0, kind="linear")
  return tabular.arms({"PAR": c, "plain score": tabular.changed(c, rewards__outcome=plain)},
                      TREE, environment, tabular.mean("gold"), steps=300)
