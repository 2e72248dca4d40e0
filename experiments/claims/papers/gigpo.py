"""Simulates episodes of four turns, in each of which two of four actions are right; the outcome
is 1 if all are. Turns of a prompt that follow the same turns are in the same state.

The check measures the accuracy over training: GiGPO less GRPO, on the same outcomes.
"""
from configs.papers import gigpo
from experiments.claims.environments import steps, tabular, turns

MEASURE = "mean accuracy over 60 steps of GiGPO minus that of GRPO"
MARGIN, RATE = 0.05, 10.0
FIRST = ("opposite", None)
TREE = tabular.Tree(prompts=4, vocab=4, length=4)


def environment(key):
  ok_PNV = steps.right_steps(key, TREE, 2)

  def verify(batch, **_):
    outcome_B = steps.verdict_B(ok_PNV, batch)
    return dict(outcome_B=outcome_B, **turns.columns(batch), turn_rewards_BT=turns.with_outcome(
        0.0 * batch.mask_BT, outcome_B, batch.mask_BT))

  return tabular.Environment(verify, TREE.means(accuracy=steps.right_leaves(TREE, ok_PNV)))


def arms():
  c = gigpo.get_config()
  return tabular.arms({"GiGPO": c, "GRPO": tabular.grpo(c)},
                      TREE, environment, tabular.mean("accuracy"), steps=60)
