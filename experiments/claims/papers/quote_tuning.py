"""A completion has four tokens, and three tokens in ten are quotes: the verdict, which DPO reads,
is the share of quotes. Half of the completions are good answers, whatever they quote. The quotes
of the initial policy are compared with those after 100 steps of the config, at the rate of the
best value.

The claim has two parts, which are added: by how much the share of quotes exceeds 1.55 times the
initial one, and the change of the share of good answers.
"""
import jax

from configs.papers import quote_tuning
from experiments.claims.environments import tabular, verdicts

MEASURE = "share of quotes after training minus 1.55 times that before, plus the change of quality"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=16, vocab=4, length=4)


def environment(key):
  keys = jax.random.split(key, 3)
  is_quote_PNV = jax.random.bernoulli(keys[0], 0.3, TREE.start().shape)
  def quotes(batch):
    return is_quote_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT].mean(axis=1)
  return tabular.Environment(
      lambda batch, **_: dict(outcome_B=quotes(batch)),
      TREE.means(quotes=verdicts.of_leaves(TREE, quotes),
                 quality=verdicts.drawn(keys[1], TREE, 0.5)),
      start=TREE.start(keys[2], 1.0))


def arms():
  def rise(curves):
    quotes_IS, quality_IS = curves["quotes"], curves["quality"]
    return quotes_IS[:, -1] - 1.55 * quotes_IS[:, 0] + quality_IS[:, -1] - quality_IS[:, 0]
  return {"before training": tabular.arm(quote_tuning.get_config(), TREE, environment, rise,
                                         steps=100)}
