"""Simulates the chains of experiments/environments/chains.py as episodes, whose steps are turns.
The rewards of turns before the last are higher for fill, which is easy, than for work; that of the
last turn is the outcome. In between stands whether the episode ended by itself.

One arm counts the rewards of turns only where the outcome is 1; the other, whose thresholds are 0,
always. The learned accuracies are compared.
"""
from configs.papers import gra
from experiments.environments import chains
from experiments.environments import tabular
from experiments.environments import turns

CLAIM = 0
MEASURE = ("accuracy with rewards of turns added only where the outcome is 1 minus that with them "
           "always added")
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded", "further steps never had a higher reward than a right answer")
REWARDS = (2.5, 1.0, 0.4)  # Of fill, good work and bad work.
ILLUSTRATION = ("Four turns of fill have a higher reward than a right answer without the gate. "
                "With the gate they have no reward.")


def environment(key):
  rewards_3 = tabular.around(key, REWARDS, spread=0.1)

  def verify(batch, **_):
    rewards_BT, right_B = chains.walk(batch.prompt_B, batch.tokens_BT, batch.mask_BT, rewards_3)
    ended_B = ((batch.tokens_BT == 0) & batch.mask_BT).any(axis=1)
    return dict(outcome_B=1.0 * right_B, scores_BE=1.0 * ended_B[:, None], **turns.columns(batch),
                turn_rewards_BT=turns.with_outcome(rewards_BT, 1.0 * right_B, batch.mask_BT))

  return chains.environment(key)._replace(verify=verify)


def arms():
  c = gra.get_config()
  return chains.arms({
      "gated": c, "always": tabular.changed(c, rewards__gated__thresholds=(0.0, 0.0)),
  }, "accuracy", environment=environment)
