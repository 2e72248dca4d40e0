"""Arithmetic with a calculator tool (rlx/environments/zoo/calculator.py).

  rlx sft environments/calculator:sft workdir=runs/calculator_start
  rlx train environments/calculator workdir=runs/calculator model.path=runs/calculator_start/model
  rlx train environments/calculator:outcome workdir=runs/calculator_outcome model.path=runs/calculator_start/model

The first command trains the initial model, the second is PRIME, the third has the outcome alone.
configs/environments/__init__.py has what all environments share.
"""
from rlx.configs import environments
from rlx.environments.zoo import calculator


def get_config(arg=""):
  return environments.get_config(
      arg, "calculator", alphabet=calculator.ALPHABET, wrong_rate=0.2,
      environment=dict(name="zoo.calculator.Calculator", calls=4),
      options=dict(n_min=2, n_max=3, ops="+-"),
      turns=5, prompt_tokens=16, turn_tokens=12, observation_tokens=12, total_tokens=64)
