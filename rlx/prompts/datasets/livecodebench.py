"""LiveCodeBench, problems of programming contests with their dates; it has no training split.

Jain et al. 2024, arXiv:2403.07974; the JSONL files of `hf:livecodebench/code_generation_lite`,
whose script the package `datasets` no longer runs (version 4): all together 1,055 problems from May
2023 to April 2025 (4.5 GB); `hf:livecodebench/code_generation_lite/{split}.jsonl` with the splits
test, test2, ... test6 are the problems that each release added. The question is the user's turn of
lcb_runner/prompts/code_generation.py of LiveCodeBench/LiveCodeBench.
"""
import datetime

from rlx.prompts import columns as columns_lib
from rlx.prompts.datasets import _published

SETS = {"livecodebench": ("hf:livecodebench/code_generation_lite/{split}*.jsonl", "", "test")}
_FUNCTION = ("You will use the following starter code to write the solution to the problem and "
             "enclose your code within delimiters.")
_PROGRAM = ("Read the inputs from stdin solve the problem and write the answer to stdout (do not "
            "directly test on the sample inputs). Enclose your code within delimiters as follows.")


def prompts(rows, split, *, verifier="code_tests.passed", start: str | None = None,
            end: str | None = None):
  """Rows with "question_content", "starter_code", "contest_date" and the JSON texts
  "public_test_cases", "private_test_cases" (which may be compressed) and "metadata".

  Args:
    start, end: the first and last day of the contests that are kept, as 2024-08-01.
  Raises:
    ValueError: a day has another form.
  """
  first, last = (_read_day(name, day) for name, day in (("start", start), ("end", end)))
  def read(row, where):
    asked, starter, date, public, private = (columns_lib.find(row, column, where) for column in (
        "question_content", "starter_code", "contest_date", "public_test_cases",
        "private_test_cases"))
    if not (first or "") <= str(date)[:10] <= (last or "9"): return "of contests on other days"
    if columns_lib.is_missing(asked): return "without a question"
    if all(map(columns_lib.is_missing, (public, private))): return "without tests"
    form, code = (_FUNCTION, starter) if starter else (_PROGRAM, "# YOUR CODE HERE")
    return dict(
        id=f"livecodebench/{split}/{row['question_id']}", verifier=verifier,
        text=f"### Question:\n{asked}\n\n### Format: {form}\n```python\n{code}\n```\n\n"
             "### Answer: (use the provided format with backticks)\n\n",
        meta=dict(tests=[t for t in (public, private) if not columns_lib.is_missing(t)],
                  metadata=row.get("metadata"), difficulty=row.get("difficulty"),
                  platform=row.get("platform"), contest_date=str(date)[:10]))
  return _published.make_prompts("livecodebench", rows, split, read)


def _read_day(name, day):
  try:
    return day and datetime.date.fromisoformat(day).isoformat()
  except (TypeError, ValueError):
    raise ValueError(f"prompts.columns.{name}={day!r:.40}: a day such as 2024-08-01.") from None
