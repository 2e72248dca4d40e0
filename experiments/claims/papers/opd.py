"""Distillation from a teacher against RL on verdicts, with rare right answers (`steps.SPARED`).

One completion in 32 of the initial policy is right, and 0.9 of the teacher's, which has 0.98 of its
probability on the right steps of every prefix. The claim is about cost: compared is the number of
training steps until an arm first has the accuracy that both reach, of which distillation should
need less than a tenth.
"""
import jax.numpy as jnp

from configs import quickstart
from configs.papers import opd
from experiments.claims.environments import steps, tabular

MEASURE = ("share of the steps of RL that distillation saves to the accuracy both reach, less nine "
           "tenths")
MARGIN, RATE = 0.05, 10.0
FIRST = ("opposite", None)
TREE = steps.SPARED


def environment(key):
  """The environment of `steps`, with the log-probs of a teacher."""
  ok_PNV = steps.right_steps(key, TREE, 2)
  teacher_PNV = jnp.log(jnp.where(ok_PNV, 0.49, 0.01))

  def verify(batch, **_):
    return dict(outcome_B=steps.verdict_B(ok_PNV, batch),
                teacher_logps_BT=tabular.logps(teacher_PNV, batch)[0])

  return tabular.Environment(verify, TREE.means(accuracy=steps.right_leaves(TREE, ok_PNV)))


def compare(distilled, learned):
  return steps.saved(distilled, learned) - 0.9


def arms():
  measure = lambda curves: (curves["accuracy"], curves["accuracy"].mean(axis=1))
  return tabular.arms({"distillation": opd.get_config(), "RL": quickstart.grpo()}, TREE,
                      environment, measure, steps=240)
