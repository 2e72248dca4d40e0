"""Questions of two hops, answered by look-ups in a corpus (rlx/environments/zoo/search.py).

  rlx sft environments/search:sft workdir=runs/search_start
  rlx train environments/search workdir=runs/search model.path=runs/search_start/model
  rlx train environments/search:outcome workdir=runs/search_outcome model.path=runs/search_start/model

The first command trains the initial model, the second is PRIME, the third has the outcome alone.
configs/environments/__init__.py has what all environments share.
"""
from rlx.configs import environments
from rlx.environments.zoo import search


def get_config(arg=""):
  return environments.get_config(
      arg, "search", alphabet=search.ALPHABET, wrong_rate=0.25,
      environment=dict(name="zoo.search.Search", queries=4), options=dict(hops=2),
      turns=5, prompt_tokens=28, turn_tokens=18, observation_tokens=24, total_tokens=128)
