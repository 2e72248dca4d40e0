"""A State-of-the-Art SQL Reasoning Model using RLVR (arXiv:2509.21459).

The reward of a query is 1 if its result is that of the reference query, and 0 otherwise.

  rlx train papers/sql_rlvr workdir=DIR model.path=MODEL
  rlx train papers/sql_rlvr:smoke workdir=DIR model.path=MODEL

Letters beside the values: P stated in the paper (the reward), O our choice. Differences from
the paper: its prompts, its choice of models and its offline warm-up are not here; the
questions are made, on tables of the environment sql.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "73.56% on the private test set of BIRD without self-consistency",
)


def get_config(arg=""):
  return domains.grpo(
      arg, "rlx.environments.zoo.sql:visible_prompts", "Think in <think></think>, then reply with "
      "one block of code, ```sql ... ```.", verifier="sql_query.equal",  # P
      kinds=("one", "join", "order"))                                                         # O
