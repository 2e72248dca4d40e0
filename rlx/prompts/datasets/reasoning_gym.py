"""Reasoning Gym tasks and mixtures of them (Stojanovski et al. 2025, arXiv:2505.24760)."""
from rlx.core import records

SOURCE = "gym:chain_sum,gsm_symbolic"  # Any tasks, in turn.


def prompts(rows, split, *, verifier="gym_task.answer"):
  """Rows -> Prompts; `meta` has the entry, which the task's scorer asks for.

  Args:
    verifier: answer, boxed or last_line of gym_task: where the answer stands.
  """
  for row in rows:
    answer = row["entry"]["answer"]  # None where any answer that fits is right.
    yield records.Prompt(
        id=f"gym/{split}/{row['task']}/{row['seed']}/{row['index']}",
        text=row["entry"]["question"], answer="" if answer is None else str(answer),
        verifier=verifier,
        meta=dict(task=row["task"], config=row["config"], entry=row["entry"]))
