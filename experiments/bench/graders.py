r"""Verifiers of mathematical answers, rlx's and those of other systems, on labelled answers.

  python -m experiments.bench.graders           # docs/verifiers.md, docs/verifiers.jsonl
  python -m experiments.bench.graders rlx       # runs only these; the others keep what is recorded

Runs the graders whose packages are installed; verdicts of the others are those recorded
in docs/verifiers.jsonl, one line for each grader and set. For all of them, in an
environment of their own:

  python -m venv /tmp/graders
  /tmp/graders/bin/pip install 'math-verify[antlr4_11_0]' pylatexenc numpy packaging scipy
  /tmp/graders/bin/pip install --no-deps trl verl
  /tmp/graders/bin/python -m experiments.bench.graders

Every call has a deadline. A grader that misses it is killed and has no verdict for this answer.
"""
import dataclasses
import hashlib
import importlib.machinery
import importlib.metadata
import json
import math
import multiprocessing
import os
import pathlib
import re
import resource
import signal
import sys
import types
from typing import Callable

import numpy as np

from rlx.grids import tables
from rlx.evals import verifier as report_lib

ROOT = pathlib.Path(__file__).parents[2]
RECORDED, PAGE = ROOT / "docs/verifiers.jsonl", ROOT / "docs/verifiers.md"
LABELLED = ROOT / "tests/verifiers"
SETS = {
    "pairs": "answers in many forms of `tests/verifiers/math_pairs.jsonl`",
    "first": "adversarial completions of `tests/verifiers/math_cases_first.jsonl`",
    "cases": "adversarial completions of `tests/verifiers/math_cases.jsonl`, written by "
             "someone who did not know the code",
    "second": "further ones of `tests/verifiers/math_cases_second.jsonl`",
    "third": "answers and completions of public reports and of a second attack, of "
             "`tests/verifiers/math_cases_third.jsonl`",
    "unseen": "completions of `tests/verifiers/math_cases_unseen.jsonl`, by an author who had not "
              "read the code"}
LIMIT_S = 10.0   # For a verdict.
START_S = 120.0  # For a grader to import its packages and to give a first verdict.
MEMORY = 2**32   # Bytes.


def labelled(name):
  """The answers of a set: dicts with name, kind, verifier, gold, text, right."""
  file = f"math_{name}.jsonl" if name in ("pairs", "cases") else f"math_cases_{name}.jsonl"
  return [json.loads(line) for line in (LABELLED / file).read_text().splitlines()]


def disputed():
  """{name: why its label is not counted}."""
  return json.loads((LABELLED / "math_disputed.json").read_text())


def figures(cases, verdicts):
  """How a grader did: shares of the answers whose labels are not disputed.

  Args:
    verdicts: as text, a letter per answer: 1 | 0 | ? (none) | t (none before its deadline).
  Returns:
    dict(wrong_rewarded, right_accepted, precision, unknown, late): NaN without cases. An
    answer without a verdict is neither rewarded nor accepted.
  """
  without = disputed()
  kept = [(case["right"], v) for case, v in zip(cases, verdicts, strict=True)
          if case["name"] not in without]
  right, said = (np.array(x) for x in zip(*kept))
  share = lambda part, whole: float(part.sum() / whole.sum()) if whole.any() else math.nan
  yes, every = said == "1", np.ones(len(kept), bool)
  return dict(
      wrong_rewarded=share(yes & ~right, ~right), right_accepted=share(yes & right, right),
      precision=share(yes & right, yes), late=share(said == "t", every),
      unknown=share((said == "?") | (said == "t"), every))


# pylint: disable=g-import-not-at-top
def _rlx():
  from rlx.verifiers import math_answer
  def grade(case):
    prompt = types.SimpleNamespace(text=case.get("question", ""), answer=case["gold"])
    return getattr(math_answer, case["verifier"].partition(".")[2])(prompt, case["text"])
  return grade


def _math_verify():
  import math_verify
  return lambda case: math_verify.verify(math_verify.parse(_box(case["gold"])),
                                         math_verify.parse(case["text"]))


def _trl():
  from trl.rewards import accuracy_rewards
  return lambda case: accuracy_rewards.accuracy_reward(
      [[dict(role="assistant", content=case["text"])]], [_box(case["gold"])])[0]


def _verl_math():
  _open("verl", "verl.utils", "verl.utils.reward_score")
  from verl.utils.reward_score import math_reward
  return lambda case: math_reward.compute_score(case["text"], case["gold"])


def _verl_math_verify():
  _open("verl", "verl.utils", "verl.utils.reward_score")
  from verl.utils.reward_score import math_verify
  # What its compute_score calls in a process of its own. This is one.
  return lambda case: math_verify._verify_in_subprocess(_box(case["gold"]), case["text"])


def _verl_prime():
  _open("verl", "verl.utils", "verl.utils.reward_score", "verl.utils.metric")
  sys.modules["verl.utils.metric"].Metric = None  # It would import torch.
  from verl.utils.reward_score import prime_math
  return lambda case: prime_math.compute_score(case["text"], case["gold"])[0]


def _verl_gsm8k():
  _open("verl", "verl.utils", "verl.utils.reward_score")
  from verl.utils.reward_score import gsm8k
  return lambda case: gsm8k.compute_score(
      f"#### {case['stated']}" if "stated" in case else case["text"], case["gold"])


@dataclasses.dataclass(frozen=True)
class Grader:
  """load() imports it and gives its function from an answer to a verdict."""
  load: Callable
  packages: tuple[str, ...]
  how: str  # it is asked


_SYMPY = ("sympy", "antlr4-python3-runtime")
_PARSERS = ("math-verify", "latex2sympy2_extended", *_SYMPY)
_VERL = "`verl.utils.reward_score."
GRADERS = {
    "rlx": Grader(_rlx, (), "`math_answer.boxed`, or `math_answer.final` of the cases that say so"),
    "math-verify": Grader(
        _math_verify, _PARSERS,
        r"`verify(parse(reference), parse(completion))` by default, the reference in `\boxed{}`"),
    "TRL": Grader(_trl, ("trl", *_PARSERS),
                  r"`trl.rewards.accuracy_reward`, the reference in `\boxed{}`"),
    "verl math": Grader(_verl_math, ("verl",), _VERL + "math_reward`, the bare reference"),
    "verl math_verify": Grader(_verl_math_verify, ("verl", *_PARSERS),
                               _VERL + r"math_verify`, which puts the reference in `\boxed{}`"),
    "verl prime_math": Grader(_verl_prime, ("verl", "pylatexenc", *_SYMPY),
                              _VERL + "prime_math`, the bare reference"),
    "verl gsm8k": Grader(
        _verl_gsm8k, ("verl",),
        _VERL + "gsm8k`, the bare reference; of pairs the answer stands behind the `####` that it "
        "looks for. It is made for plain numbers"),
}


def run(load, cases):
  """(verdicts as `figures` takes them, CPU seconds) of a grader in a process of its own."""
  verdicts, seconds, process = "", 0.0, None
  for case in cases:
    if process is None: process, connection = _start(load, cases[0])
    connection.send(case)
    if connection.poll(LIMIT_S):
      try:
        verdict, spent = connection.recv()
      except EOFError:  # It died.
        verdict, spent, process = "?", 0.0, _stop(process)
    else:
      verdict, spent, process = "t", LIMIT_S, _stop(process)
    verdicts, seconds = verdicts + verdict, seconds + spent
  if process is not None: _stop(process)
  return verdicts, seconds


def record(name, old=()):
  """The lines of a grader: one for each set."""
  packages = {p: importlib.metadata.version(p) for p in GRADERS[name].packages}
  lines = []
  for key in SETS:
    cases = labelled(key)
    verdicts, seconds = run(GRADERS[name].load, cases)
    lines.append(dict(grader=name, set=key, digest=digest(cases), packages=packages,
                      verdicts=verdicts, cpu_s=round(seconds, 6)))
    print(f"{name}, {key}: {figures(cases, verdicts)}", file=sys.stderr)
  return lines


def digest(cases):
  """Returns a hash of what graders read, which tells whether recorded verdicts are of it."""
  return hashlib.sha256(json.dumps(
      [[c[k] for k in ("gold", "text", "verifier")] for c in cases]).encode()).hexdigest()[:16]


def page(lines):
  """docs/verifiers.md with its tables, between two marks, made of recorded lines."""
  sets = {key: labelled(key) for key in SETS}
  recorded = {(line["grader"], line["set"]): line for line in lines}
  without = disputed()
  before, after = re.fullmatch(
      r"(.*<!-- graders -->\n).*(<!-- end graders -->.*)", PAGE.read_text(), re.DOTALL).groups()
  out = []
  for key, cases in sets.items():
    right = [c["right"] for c in cases if c["name"] not in without]
    rows = []
    for name in GRADERS:
      line = recorded[name, key]
      f = figures(cases, line["verdicts"])
      rows.append((
          name, f"{f['wrong_rewarded']:.1%}", f"{f['right_accepted']:.1%}", f"{f['precision']:.3f}",
          f"{f['unknown']:.1%}", f"{f['late']:.1%}", f"{len(cases) / line['cpu_s']:,.0f}"))
    out += [f"## {len(cases)} {SETS[key]}", "",
            f"{len(right) - sum(right)} wrong and {sum(right)} right.", "",
            tables.markdown(("grader", "wrong rewarded", "right accepted", "precision",
                             "no verdict", "late", "verdicts / s"), rows), ""]
  out += ["## How each is asked", "", *(f"- {name}: {g.how}" for name, g in GRADERS.items())]
  named = {c["name"]: c for cases in sets.values() for c in cases}
  out += ["", f"## Labels that are not counted: {len(without)}", ""]
  out += [f"- {_shown(named[name])}, labelled {'right' if named[name]['right'] else 'wrong'}: {why}"
          for name, why in without.items()]
  kinds, right = zip(*((c["kind"], c["right"]) for c in sets["pairs"]))
  numbers = [{"1": 1.0, "0": 0.0}.get(v, math.nan) for v in recorded["rlx", "pairs"]["verdicts"]]
  rows = []
  for kind, m in report_lib.report(numbers, right, kinds).items():
    equal = sum(r for k, r in zip(kinds, right) if kind in ("all", k))
    rows.append((kind, equal, m["count"] - equal, *(
        "" if math.isnan(m[k]) else f"{m[k]:.3f}" for k in ("precision", "recall", "fpr"))))
  out += ["", "## rlx by kind of pair", "", tables.markdown(
      ("kind", "equal", "not equal", "precision", "recall", "false positives"), rows)]
  for title, letters, label in (("Wrong, and rewarded by rlx", "1", False),
                                ("Right, and not accepted by rlx", "0?t", True)):
    missed = [c for key, cases in sets.items()
              for c, v in zip(cases, recorded["rlx", key]["verdicts"], strict=True)
              if v in letters and c["right"] == label and c["name"] not in without]
    out += ["", f"## {title}: {len(missed)}", "", *(f"- {_shown(c)}" for c in missed)]
  return before + "\n".join(out) + "\n" + after


def main(names):
  lines = [json.loads(line) for line in RECORDED.read_text().splitlines()]
  installed = [name for name, grader in GRADERS.items() if all(map(_has, grader.packages))]
  for name in names or installed:
    lines = [line for line in lines if line["grader"] != name] + record(name)
    lines.sort(key=lambda line: list(GRADERS).index(line["grader"]))
    RECORDED.write_text("".join(json.dumps(line) + "\n" for line in lines))
  PAGE.write_text(page(lines))


def _has(package):
  try:
    return bool(importlib.metadata.version(package))
  except importlib.metadata.PackageNotFoundError:
    return False


def _box(answer): return rf"\boxed{{{answer}}}"


def _open(*packages):
  """Makes modules of packages importable that cannot, or need not, be imported as a whole."""
  for name in packages:
    parent, _, _ = name.rpartition(".")
    spec = importlib.machinery.PathFinder.find_spec(
        name, sys.modules[parent].__path__ if parent else None)
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = list(spec.submodule_search_locations)


def _start(load, case):
  """(process, connection) of a grader that has given a verdict."""
  context = multiprocessing.get_context("spawn")
  connection, theirs = context.Pipe()
  process = context.Process(target=_serve, args=(theirs, load))
  process.start()
  theirs.close()
  connection.send(case)
  if not connection.poll(START_S):
    _stop(process)
    raise RuntimeError(f"{load.__name__} has not started in {START_S:g} s.")
  connection.recv()
  return process, connection


def _stop(process):
  os.killpg(process.pid, signal.SIGKILL)
  process.join()


def _serve(connection, load):
  """In the process of a grader: reads answers, writes (verdict, CPU seconds)."""
  os.setsid()
  resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
  grade = load()
  sink = os.open(os.devnull, os.O_WRONLY)
  for fd in (1, 2): os.dup2(sink, fd)
  while True:
    case, start = connection.recv(), _cpu_s()
    try:
      said = float(grade(case))
    except Exception:  # pylint: disable=broad-exception-caught
      said = math.nan
    connection.send(("?" if math.isnan(said) else str(int(said > 0.5)), _cpu_s() - start))


def _cpu_s():
  used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
  return sum(u.ru_utime + u.ru_stime for u in used)


def _shown(case):
  """A case on one line, shortened."""
  parts = [" ".join(part.split()).replace("`", "'") for part in (case["gold"], case["text"])]
  gold, text = (part if len(part) <= 90 else f"{part[:43]} ... {part[-42:]}" for part in parts)
  return f"{case.get('kind', case['name'])}: `{gold}` and `{text}`"


if __name__ == "__main__":
  main(sys.argv[1:])
