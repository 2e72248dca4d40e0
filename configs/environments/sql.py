"""Questions about SQLite databases whose schema is hidden (rlx/environments/sql.py)."""
from rlx.configs import environments
from rlx.environments import sql


def get_config(arg=""):
  return environments.get_config(
      arg, "sql", alphabet=sql.ALPHABET, wrong_rate=0.2,
      environment=dict(name="sql.Sql", queries=3), options=dict(tables=3),
      turns=4, prompt_tokens=20, turn_tokens=40, observation_tokens=32, total_tokens=224)
