"""SPRO against GRPO on verdicts alone, with rare right answers (`steps.environment`).

One completion in 32 is right. Both arms have the config's other settings. Compared is the number of
training steps until an arm first has the accuracy that both reach: the claimed training efficiency.
"""
from configs.papers import spro
from experiments.claims.environments import steps

MEASURE = "share of the steps of GRPO that SPRO saves to the accuracy both reach"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
compare = steps.saved


def arms():
  c = spro.get_config()
  return {"SPRO": steps.curve(c), "GRPO": steps.curve(steps.outcomes_alone(c))}
