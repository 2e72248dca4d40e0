"""Resets of the KL's reference against a fixed reference, with a KL that holds the policy back.

Each prompt has 64 possible completions, of which few are right. Both arms have the same KL in
the loss. In one the reference, together with the optimizer's state, is reset every 25 of 200
steps. The optimizer is Adam, because SGD has no state. The accuracy is measured.
"""
import optax

from configs.papers import prorl
from experiments.claims.environments import tabular, verdicts

MEASURE = "accuracy after 200 steps with resets of the reference minus that without them"
MARGIN, RATE = 0.05, 0.02
FIRST = ("confirmed", "it was taken to follow from the formula until rates were tuned")
DIFFERS = {
    "kl.coef": "the claim is about a KL that dominates, and 1e-4 has no effect on a table in a few "
               "hundred steps"}


def arms():
  tree, c = tabular.Tree(prompts=8, vocab=8, length=2), tabular.changed(
      prorl.get_config(), kl__coef=0.3)
  environment = verdicts.environment(tree, 0.1, spread=1.0)
  return tabular.arms(
      {"resets": c, "no resets": tabular.changed(c, kl__sync_every=0, kl__reset_optimizer=False)},
      tree, environment, "accuracy", steps=200, optimizer=optax.adam)
