"""Questions about SQLite databases whose schema is hidden (rlx/environments/zoo/sql.py).

  rlx sft environments/sql:sft workdir=runs/sql_start
  rlx train environments/sql workdir=runs/sql model.path=runs/sql_start/model
  rlx train environments/sql:outcome workdir=runs/sql_outcome model.path=runs/sql_start/model

The first command trains the initial model, the second is PRIME, the third has the outcome alone.
configs/environments/__init__.py has what all environments share.
"""
from rlx.configs import environments
from rlx.environments.zoo import sql


def get_config(arg=""):
  return environments.get_config(
      arg, "sql", alphabet=sql.ALPHABET, wrong_rate=0.2,
      environment=dict(name="zoo.sql.Sql", queries=3), options=dict(tables=3),
      turns=4, prompt_tokens=20, turn_tokens=40, observation_tokens=32, total_tokens=224)
