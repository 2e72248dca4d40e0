"""Computations with a Python interpreter in a sandbox (rlx/environments/zoo/python.py).

  rlx sft environments/python:sft workdir=runs/python_start
  rlx train environments/python workdir=runs/python model.path=runs/python_start/model
  rlx train environments/python:outcome workdir=runs/python_outcome model.path=runs/python_start/model

The first command trains the initial model, the second is PRIME, the third has the outcome alone.
configs/environments/__init__.py has what all environments share.
"""
from rlx.configs import environments
from rlx.environments.zoo import python


def get_config(arg=""):
  c = environments.get_config(
      arg, "python", alphabet=python.ALPHABET, wrong_rate=0.3,
      environment=dict(name="zoo.python.Python", calls=2), options=dict(kinds="SCDP"),
      turns=3, prompt_tokens=16, turn_tokens=44, observation_tokens=24, total_tokens=128)
  # A call of the tool starts a sandbox, which takes about 0.1 s.
  c.prompts.per_step, c.episodes.timeout_s = min(c.prompts.per_step, 8), 30.0
  c.prompts.options.size = min(c.prompts.options.size, 2048)  # The expert plays each of them.
  c.eval.prompts = c.eval.batch = min(c.eval.prompts, 64)
  c.eval.final_samples = 1
  return c
