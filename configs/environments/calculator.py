"""Arithmetic with a calculator tool (rlx/environments/calculator.py); see the package's docstring."""
from rlx.configs import environments
from rlx.environments import calculator


def get_config(arg=""):
  return environments.get_config(
      arg, "calculator", alphabet=calculator.ALPHABET, wrong_rate=0.2,
      environment=dict(name="calculator.Calculator", calls=4),
      options=dict(n_min=2, n_max=3, ops="+-"),
      turns=5, prompt_tokens=16, turn_tokens=12, observation_tokens=12, total_tokens=64)
