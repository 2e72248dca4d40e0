"""Repair an expression, given what its tests print (rlx/environments/zoo/debug.py).

  rlx sft environments/debug:sft workdir=runs/debug_start
  rlx train environments/debug workdir=runs/debug model.path=runs/debug_start/model
  rlx train environments/debug:outcome workdir=runs/debug_outcome model.path=runs/debug_start/model

The first command trains the initial model, the second is PRIME, the third has the outcome alone.
configs/environments/__init__.py has what all environments share.
"""
from rlx.configs import environments
from rlx.environments.zoo import debug


def get_config(arg=""):
  c = environments.get_config(
      arg, "debug", alphabet=debug.ALPHABET, wrong_rate=0.7,
      # One of the two operations is wrong, so three lines can be the right one and three attempts
      # are enough for a policy that repeats none of them. The expert repeats lines at random.
      environment=dict(name="zoo.debug.Debug", attempts=3), options=dict(broken=True, places="13"),
      turns=3, prompt_tokens=28, turn_tokens=8, observation_tokens=28, total_tokens=80,
      per_step=32, lr=3e-4)
  # An attempt in another form than that of the questions starts a sandbox, which takes about 0.1 s.
  c.episodes.timeout_s = 30.0
  return c
