"""RED's redistributed score against the same score on the last token.

On the chains of environments/chains.py both arms have the score of a frozen reward model as the
only reward. It counts the steps that stand: about a third for each step that the prompt asks for,
and for the end after both, less a third for other work or an end that comes too early; the
numbers are drawn from the seed. With beta = 1 the score is distributed over the tokens by its
changes; with beta = 0 the last token receives it. The mean accuracy is measured.
"""
import jax
import jax.numpy as jnp

from configs.papers import red
from experiments.claims.environments import chains, tabular

CLAIM = 1
MEASURE = ("mean accuracy over 300 steps with the score of a reward model redistributed minus that "
           "with it on the last token")
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", "a table of values, with which RED is PPO, stood in for the reward model")


def environment(key):
  """The environment of chains.py with prefix_scores_BT, the scores of a frozen reward model."""
  env = chains.environment(key)
  scores_3 = jnp.array([0, 1/3, -1/3]) + jax.random.uniform(key, (3,), minval=-0.05, maxval=0.05)

  def verify(batch, **given):
    scores_BT, _ = chains.walk(batch.prompt_B, batch.tokens_BT, batch.mask_BT, scores_3)
    return env.verify(batch, **given) | dict(
        prefix_scores_BT=jnp.cumsum(scores_BT * batch.mask_BT, axis=1))

  return env._replace(verify=verify)


def arms():
  def config(share):
    return tabular.changed(red.get_config(), rewards__outcome__share=share)
  return chains.arms({"redistributed": config(1.0), "at the end": config(0.0)},
                     tabular.mean("accuracy"), environment=environment)
