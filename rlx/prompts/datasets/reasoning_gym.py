"""Reasoning Gym tasks and mixtures of them (Stojanovski et al. 2025, arXiv:2505.24760).

`gym:chain_sum,gsm_symbolic` names any tasks, which take turns.
"""
from rlx.core import records


def prompts(rows, split, *, verifier="gym_task.answer"):
  """Rows -> Prompts; `meta` has the entry, which the task's scorer reads.

  Args:
    verifier: answer, boxed or last_line of gym_task, depending on where the answer is.
  """
  for row in rows:
    answer = row["entry"]["answer"]  # None if several answers are right.
    yield records.Prompt(
        id=f"gym/{split}/{row['task']}/{row['seed']}/{row['index']}",
        text=row["entry"]["question"], answer="" if answer is None else str(answer),
        verifier=verifier, meta=dict(task=row["task"], config=row["config"], entry=row["entry"]))
