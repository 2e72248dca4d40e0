"""Reasoning-SQL: Reinforcement Learning with SQL Tailored Partial Rewards for
Reasoning-Enhanced Text-to-SQL (arXiv:2503.23157).

The reward of a query is a weighted sum of parts: its result, whether it runs, the names of
tables and columns, pairs of adjacent tokens, the form.

  rlx train papers/reasoning_sql workdir=DIR model.path=MODEL
  rlx train papers/reasoning_sql:smoke workdir=DIR model.path=MODEL

Letters beside the values: P stated in the paper (the parts), O our choice (the weights, of
which the abstract says nothing; the data). Differences from the paper: no model judges queries
with another result; the questions are made, on tables of the environment sql.
rlx/verifiers/sql_query.py says what else differs.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "partial rewards do better than the result alone",
    "a 14B model is above larger proprietary models on BIRD",
)


def get_config(arg=""):
  return domains.grpo(
      arg, "rlx.environments.zoo.sql:visible_prompts", "Think in <think></think>, then reply with "
      "one block of code, ```sql ... ```.", verifier="sql_query.score",
      kinds=("one", "join", "order"))                                                         # O
