"""Compares tool calls with those of a reference: names, parameters and their values.

  <tool_call>
  {"name": "weather", "parameters": {"city": "Rome", "day": 2}}
  </tool_call>

A block has a call a line, or one JSON value: a call or a list of calls. There may be several
blocks, as chat templates write them, and "arguments" in place of "parameters". An answer without a
block is read as one JSON value. The reference is `prompt.meta["calls"]`, a list of calls, or else
`prompt.answer`, in the same form; an empty list says that no tool is to be called.

Of N reference calls with P parameters in all,

  s = names + sum_i (keys_i + values_i)        s_max = 1 + N + P

with the multiset Jaccard index of the names of all calls, that of the parameters' names of a call,
and the number of its values that are equal. To each reference call belongs the best of the calls
of that name that are left, in order. Calls that cannot be read, in whole or in part, have s = 0.

Source: Qian et al. 2025, arXiv:2504.13958 (ToolRL), as in its released code
(qiancheng0/ToolRL, rlla.py), whose reward is 6 s / s_max - 3 plus 1 for the form. Differs from the
code: true is not 1; an object that names a key twice, NaN and Infinity are no JSON; without
reference calls a completion is right if it makes none, and not neutral; the form is that of
`format.tags`.
"""
import collections
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlx.verifiers import errors, format as format_lib, items as items_lib, thoughts

if TYPE_CHECKING: from rlx.core import records

_MARK = re.compile(r"</?tool_call>")
PARTS = ("format", "names", "keys", "values")


def matched(prompt: "records.Prompt", text: str) -> float:
  """s / s_max: how much of the reference calls is right.

  Example:
    >>> import types
    >>> prompt = types.SimpleNamespace(answer="", meta={"calls": [
    ...     {"name": "weather", "parameters": {"city": "Rome", "day": 2}}]})
    >>> round(tool_calls.matched(prompt, '{"name": "weather", "parameters": {"city": "Rome"}}'), 3)
    0.625
  """
  gold = _read_reference(prompt)
  made = _read(thoughts.behind(text, prompt))
  if made is None or not gold: return float(made == gold)
  weights, parts = _weigh(gold), _compare(gold, made)
  return sum(w * parts[name] for name, w in weights.items()) / sum(weights.values())


def exact(prompt: "records.Prompt", text: str) -> float:
  """1.0 if all is right and nothing else is called, in any order: the coarse reward of ToolRL."""
  return float(matched(prompt, text) == 1.0)


def items(prompt: "records.Prompt", text: str) -> list[float]:
  """The parts of `PARTS` that `meta["items"]` names; all four without it.

  names, keys and values are averages over what the reference has, so that their mean with the
  weights 1, N and P is `matched`. prompts/datasets/tool_calls.py gives these weights.
  """
  gold, made = _read_reference(prompt), _read(thoughts.behind(text, prompt))
  parts = dict(format=_form(prompt, text), **_compare(gold, made))
  return [parts[name] for name in items_lib.list_names(prompt, PARTS)]


def score(prompt: "records.Prompt", text: str) -> float:
  """The reward of ToolRL, in [0, 1]: (format + 6 s / s_max) / 7."""
  return (_form(prompt, text) + 6 * matched(prompt, text)) / 7


def inspect(prompts: Sequence["records.Prompt"], unsafe: bool = False) -> list[tuple]:
  """Finds references that are no calls.

  Returns:
    for each prompt, (why nothing can be compared with its reference, or None; None).
  """
  del unsafe
  return [(_describe(p), None) for p in prompts]


for _fn in (matched, exact, items, score):
  vars(_fn).update(is_bounded=True, inspect=inspect, state=lambda prompt: _state(prompt))


def _weigh(gold):
  return dict(names=1, keys=len(gold), values=sum(len(p) for _, p in gold))


def _compare(gold, made):
  """{"names", "keys", "values"} in [0, 1]."""
  if made is None or not gold: return dict.fromkeys(PARTS[1:], float(made == gold))
  left, keys, values = collections.defaultdict(list), 0.0, 0
  for name, parameters in made: left[name].append(parameters)
  for name, wanted in gold:
    agreed = [(_jaccard(wanted, given),
               sum(k in given and _equals(wanted[k], given[k]) for k in wanted))
              for given in left[name]]
    if not agreed or not max(map(sum, agreed)): continue  # No key in common: left for another.
    best = max(range(len(agreed)), key=lambda i: sum(agreed[i]))  # The first of the best.
    left[name].pop(best)
    keys, values = keys + agreed[best][0], values + agreed[best][1]
  weights = _weigh(gold)
  return dict(names=_jaccard([n for n, _ in gold], [n for n, _ in made]),
              keys=keys / weights["keys"], values=values / max(weights["values"], 1))


def _jaccard(first, second):
  """Multiset Jaccard index; 1 if both are empty."""
  one, other = (collections.Counter(list(names)) for names in (first, second))
  union = (one | other).total()
  return (one & other).total() / union if union else 1.0


def _equals(wanted, given):
  """Whether JSON values are equal; true is no number."""
  if isinstance(wanted, bool) or isinstance(given, bool): return wanted is given
  if isinstance(wanted, dict) and isinstance(given, dict):
    return wanted.keys() == given.keys() and all(_equals(wanted[k], given[k]) for k in wanted)
  if isinstance(wanted, list) and isinstance(given, list):
    return len(wanted) == len(given) and all(map(_equals, wanted, given))
  return type(wanted) is type(given) and wanted == given or (
      isinstance(wanted, int | float) and isinstance(given, int | float) and wanted == given)


def _form(prompt, text):
  if "tags" in prompt.meta.get("format", {}): return format_lib.tags(prompt, text)
  blocks = _split(thoughts.behind(text, prompt))
  return float(blocks is not None and len(blocks[0]) > 0 and not blocks[1].strip())


def _split(text):
  """(insides of the blocks, what stands outside of them); None where marks do not pair."""
  marks = _MARK.findall(text)
  if marks != ["<tool_call>", "</tool_call>"] * (len(marks) // 2): return None
  parts = _MARK.split(text)
  return parts[1::2], "".join(parts[::2])


def _read(text):
  """[(name, {parameter: value})] of a text; [] if it has no calls, None if they cannot be read."""
  if (blocks := _split(text)) is None: return None
  inside, outside = blocks
  if not inside:
    return _normalise(_parse(outside)) if outside.lstrip()[:1] in ("{", "[") else []
  calls = []
  for block in inside:
    read = _normalise(_parse(block))
    if read is None:
      lines = [_parse(line) for line in block.splitlines() if line.strip()]
      read = _normalise(lines) if all(isinstance(line, dict) for line in lines) else None
    if not read: return None
    calls += read
  return calls


def _parse(text):
  """A JSON value; None if the text is none."""
  try:
    return json.loads(text, parse_constant=_refuse, object_pairs_hook=_read_object)
  except (ValueError, RecursionError):
    return None


def _refuse(name): raise ValueError(f"{name} is no JSON.")


def _read_object(pairs):
  if len(read := dict(pairs)) < len(pairs): raise ValueError("a key stands twice.")
  return read


def _normalise(calls):
  """[(name, parameters)] of a call or a list of calls; None if it is something else."""
  calls = [calls] if isinstance(calls, dict) else calls
  if not isinstance(calls, list | tuple): return None
  read = []
  for call in calls:
    if not isinstance(call, dict): return None
    parameters = call.get("parameters", call.get("arguments", {}))
    if not isinstance(call.get("name"), str) or not isinstance(parameters, dict): return None
    read.append((call["name"], parameters))
  return read


def _read_reference(prompt):
  if problem := _describe(prompt): raise errors.Unknown(problem)
  return _find_reference(prompt)


def _find_reference(prompt):
  if "calls" in prompt.meta: return _normalise(prompt.meta["calls"])
  return _read(thoughts.behind(prompt.answer, prompt)) or None


def _describe(prompt):
  if problem := items_lib.find_unknown(prompt, PARTS): return problem
  if _find_reference(prompt) is not None: return None
  return (f"its reference is {prompt.meta.get('calls', prompt.answer)!r:.80}; needed are calls "
          '{"name": ..., "parameters": {...}} in meta[\'calls\'], or in the answer as a completion '
          "has them")


def _state(prompt):
  """A completion with the reference calls; None where no call is right."""
  if not (calls := _find_reference(prompt)): return None
  lines = [json.dumps(dict(name=name, parameters=parameters)) for name, parameters in calls]
  block = "\n".join(["<tool_call>", *lines, "</tool_call>"])
  return block if "think" not in prompt.meta.get("format", {}).get(
      "tags", ()) else f"<think>\n</think>\n{block}"
