"""Checks completions of the chain task: "7;2;5#5" for the question "4M7m2M5=".

What stands in a thought (thoughts.py) is left out, except by `steps` and `recoverable`, which judge
every step of a completion.
"""
import itertools
import re
import types
from typing import TYPE_CHECKING, Any, Callable

from rlx.verifiers import thoughts

if TYPE_CHECKING: from rlx.core import records

# The data set has a table of its own, so that the rules are stated twice, independently.
_OPS: dict[str, Callable[[int, int], int]] = {
    "M": max, "m": min, "+": lambda a, b: (a + b) % 10, "-": lambda a, b: (a - b) % 10,
    "*": lambda a, b: (a * b) % 10}
_COMPLETION = re.compile(r"([0-9](?:;[0-9])*)#([0-9])")


def answer(prompt: "records.Prompt", text: str) -> float:
  """Returns 1.0 if the answer is right and the completion is well-formed, else 0.0.

  A well-formed completion has one digit per operation, separated by `;`, then `#` and the
  answer, and nothing else. The steps need not be right.
  """
  return float(form(prompt, text) == 1.0 and text[-1] == prompt.answer)


def form(prompt: "records.Prompt", text: str) -> float:
  """Returns 1.0 if the completion is well-formed (see `answer`), right or wrong."""
  match = _COMPLETION.fullmatch(thoughts.behind(text, prompt))
  n = (len(prompt.text) - 2) // 2
  return float(match is not None and len(match[1]) == 2 * n - 1)


def milestones(prompt: "records.Prompt", text: str) -> float:
  """Returns 1.0 if the `answer` and all steps with indices in `meta["ends"]` are right.

  It checks chains of several questions, of which each answer has to be right.
  """
  if answer(prompt, text) != 1.0: return 0.0
  right, text = _values(int(prompt.text[0]), _operations(prompt)), thoughts.behind(text, prompt)
  return float(all(int(text[2 * j]) == right[j + 1] for j in prompt.meta["ends"]))


def steps(prompt: "records.Prompt", text: str) -> list[bool]:
  """Tells of every stated step whether it follows from the value stated before it.

  A step that is not a digit, the step after it, and steps after the last operation are False.
  The text may be unfinished.
  """
  operations, stated = _operations(prompt), _parse_steps(text)
  return [None not in (before, step) and i < len(operations)
          and step == _values(before, operations[i:i + 1])[-1]
          for i, (before, step) in enumerate(zip([int(prompt.text[0]), *stated], stated))]


def recoverable(prompt: "records.Prompt", text: str) -> list[bool]:
  """Tells of every stated step whether continuing without a mistake reaches the answer.

  This is the value of a step under a prover that makes no mistakes. Steps that are not a digit
  or that come after the last operation are False. The text may be unfinished.
  """
  operations = _operations(prompt)
  return [step is not None and i < len(operations)
          and str(_values(step, operations[i + 1:])[-1]) == prompt.answer
          for i, step in enumerate(_parse_steps(text))]


def checks(prompt: "records.Prompt", text: str) -> list[float]:
  """Returns for each operation whether its result is stated, and whether the answer is right.

  It stands in for the unit tests of a program: how many there are depends on the question.
  """
  _, *right = _values(int(prompt.text[0]), _operations(prompt))
  stated = _parse_steps(thoughts.behind(text, prompt))
  return [*(float(stated[i:i + 1] == [value]) for i, value in enumerate(right)),
          answer(prompt, text)]


def step_share(prompt: "records.Prompt", text: str) -> float:
  """Returns the number of right steps (see `steps`) divided by the number of operations.

  If more steps are stated than there are operations, it is divided by the number of steps. A
  right answer may have wrong steps, and most steps of a wrong answer may be right.
  """
  checks = steps(prompt, thoughts.behind(text, prompt))
  return sum(checks) / max((len(prompt.text) - 2) // 2, len(checks))


def judge(request: str) -> str:
  """The reply of a judge of chains to a request (verifier.judge.function), by the rules above.

  It stands in for a language model where the policy is a toy. An answer is right as `answer` says,
  and the better of two is the one with the larger `step_share`; a claim and a passage are a step.
  """
  nonce = re.findall("carry the code ([0-9a-f]{12})", request)[0]
  block = dict(re.findall(rf"^\[(.+) {nonce}\]\n(.*?)\n\[end of \1 {nonce}\]$", request,
                          re.DOTALL | re.MULTILINE))
  prompt: Any = types.SimpleNamespace(
      text=block["question"], answer=block.get("reference", ""), meta={})
  if "answer B" in block:
    a, b = (step_share(prompt, block[f"answer {x}"]) for x in "AB")
    return f"Verdict {nonce}: {'A' if a > b else 'B' if b > a else 'tie'}"
  if "step 1" in block:
    checks = steps(prompt, "".join(x for name, x in block.items() if name.startswith("step ")))
    return "\n".join(f"Verdict {nonce} {n}: {'yes' if x else 'no'}"
                     for n, x in enumerate(checks, 1))
  checks, stated = steps(prompt, block["answer"]), block["answer"].partition("#")
  if request.endswith(f"Verdict {nonce}: none."):
    passages = [f"{x};" for x in stated[0].split(";")[:-1]] + [block["answer"].split(";")[-1]]
    return "\n".join(f"Verdict {nonce} {'good' if x else 'bad'}: {passage}" for x, passage in zip(
        checks, passages)) or f"Verdict {nonce}: none"
  if f"Claims {nonce}" in request.splitlines()[-1]:
    return f"Claims {nonce}: {sum(checks)} true of {len(checks)}."
  if "criteria" in block:
    values = {"right answer": answer, "right steps": step_share, "form": form}
    met = {n: values[name](prompt, block["answer"]) > 0.5
           for n, name in (line.split(". ") for line in block["criteria"].splitlines())}
    if "Score" in request.splitlines()[-1]:
      return f"Score {nonce}: {round(10 * sum(met.values()) / len(met))}"
    return "\n".join(f"Verdict {nonce} {n}: {'yes' if x else 'no'}" for n, x in met.items())
  is_right = answer(prompt, block["answer"]) == 1 if "reference" in block else (
      stated[0].endswith(stated[2][:1]) and "" not in stated)  # It follows from the last step.
  return f"Verdict {nonce}: {'yes' if is_right else 'no'}"


def _state(prompt):
  """Returns the completion without a wrong step, with the prompt's answer."""
  _, *stated = _values(int(prompt.text[0]), _operations(prompt))
  return f"{';'.join(map(str, stated))}#{prompt.answer}"


for _fn in (answer, form, milestones, steps, recoverable, checks, step_share):
  vars(_fn).update(is_bounded=True, state=_state)
vars(checks).update(count_items=lambda prompt: 1 + len(_operations(prompt)))


def _operations(prompt):
  """The (operator, digit) pairs of the question."""
  return list(zip(prompt.text[1:-1:2], map(int, prompt.text[2:-1:2])))


def _values(start, operations):
  """The start and the value after each operation."""
  return list(itertools.accumulate(
      operations, lambda value, operation: _OPS[operation[0]](value, operation[1]), initial=start))


def _parse_steps(text):
  """The steps of a completion, None for those that are not a digit."""
  stated = text.partition("#")[0]
  return [int(step) if re.fullmatch("[0-9]", step) else None
          for step in (stated.split(";") if stated else [])]
