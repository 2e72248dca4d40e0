"""Completions that attack their verifiers: all verdicts are returned, in order and in range."""
import collections
import dataclasses
import functools
import importlib.util
import inspect
import pkgutil
import random
import time

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from configs import base
from rlx import verifiers
from rlx.core import records, resolve
from rlx.evals import verifier as verifier_eval
from rlx.prompts import templates
from rlx.verifiers import _boxed, _solution, answers, errors, pool as pool_lib, steps
from rlx.verifiers.sandbox import inside
from tests.verifiers import cases, completions, encoder, sandbox

# A prompt of every verifier on disk, and the right answer to it as a completion.
MATH = records.Prompt("m", "What is 8 * 9 if 9 * 8 is 72?", "72")
CHAIN = records.Prompt("c", "3M5=", "5", meta=dict(ends=[0]))
CODE = records.Prompt("p", "Print 72.", "print(72)", meta=dict(tests=[dict(input="", output="72")]))
GYM = records.Prompt("g", "70 + 2 =", "72", meta=dict(
    task="chain_sum", config={}, entry=dict(question="70 + 2 =", answer="72", metadata={})))
JUDGE = base.get_config().verifier.judge.to_dict() | dict(
    function="tests.verifiers.completions:judged", template="{answer}", named=dict(
        rubric=dict(function="tests.verifiers.completions:judged_items"),
        pairs=dict(reads="yes_no", both_orders=False)))
JUDGED = records.Prompt("r", "Why?", "so", "judge.rubric/rubric", dict(items=[dict(name="a")]))
PAIRS = records.Prompt("w", "Why?", "so", "judge.pairs/pairs")
TALK = records.Prompt("t", "Why?", "so", meta=dict(phrases=dict(known=["wait"], full=1)))
RUBRIC = records.Prompt("r", "What is 8 * 9?", "72", meta=dict(items=[
    dict(name="right", verifier="math_answer.final"), dict(name="boxed", verifier="format.boxed")]))
RULES = records.Prompt("i", "Why?", '"so"', meta=dict(items=[
    dict(name="startend:quotation"), dict(name="detectable_format:json_format")]))
CALLS = records.Prompt("t", "?", "", meta=dict(calls=[dict(name="a", parameters=dict(x=1))]))
CALL = '<tool_call>{"name": "a", "parameters": {"x": 1}}</tool_call>'
QUERY = records.Prompt("q", "?", "select a from t", meta=dict(
    databases=[dict(t=dict(columns=["a"], rows=[[72]]))]))
LABEL = records.Prompt("l", "?", "yes", meta=dict(
    labels=["yes", "no"], refuse=False, path=["yes"], facts=["yes"], sources=["yes"], characters=3,
    points=[[["yes"]]]))
CHECKED = records.Prompt("k", "What is 8 * 9?", "72", meta=dict(items=[
    dict(name="number", code="def check(text):\n  return text.isdecimal()")]))
TEXT = records.Prompt("s", "What does the next sentence say?", "It opens at nine.")
JUDGING = {form: records.Prompt("j", "?", answer, meta=dict(judged=dict(
    form=form, nonce="5e0c", answers=["so"], critique="So.", supported=True), label=answer))
           for form, answer in (
        ("verdict", "yes"), ("pair", "A"), ("scores", "1"), ("score", "better"),
        ("critique", "better"))}
# {prompt: (a right completion, verifiers that accept it)}; judge.chat would ask a server.
ACCEPTED = (
    (CHAIN, "5#5", "chain.answer chain.form chain.milestones chain.step_share chain.steps "
     "chain.recoverable chain.checks"),
    (CODE, "print(72)", "code_tests.passed code_tests.fraction code_tests.tests"),
    (MATH, "<think>a</think><answer>b</answer>", "format.tags format.length format.ascii_share"),
    (MATH, r"\boxed{72}", "format.boxed math_answer.boxed math_answer.final"),
    (GYM, "Answer: 72", "gym_task.answer"), (GYM, r"\boxed{72}", "gym_task.boxed"),
    (GYM, "72", "gym_task.last_line"), (MATH, "yes", "judge.function"),
    (JUDGED, "yes", "judge.rubric"), (PAIRS, "yes", "judge.pairs"),
    (TALK, "wait", "phrases.reasoning"), (RUBRIC, r"\boxed{72}", "items.verdicts"),
    (CALLS, CALL, "tool_calls.matched tool_calls.exact tool_calls.score tool_calls.items"),
    (QUERY, "```sql\nselect a from t\n```", " ".join(f"sql_query.{part}" for part in (
        "equal", "runs", "schema", "ngrams", "score", "items"))),
    (LABEL, "yes", "labels.label labels.score labels.items labels.refusal labels.answered "
     "coverage.points "
     "coverage.path coverage.facts coverage.quotes"),
    (TEXT, "It opens at nine", "coverage.prefix"),
    (CHECKED, "72", "code_checks.items code_checks.share"),
    (JUDGING["verdict"], "Verdict 5e0c: yes", "judging.verdict"),
    (JUDGING["pair"], "Verdict 5e0c: A", "judging.side"),
    (JUDGING["scores"], "Verdict 5e0c 1: 10", "judging.ranking"),
    (JUDGING["score"], "Verdict 5e0c: 10", "judging.score"),
    (JUDGING["critique"], "So.", "judging.gold judging.similarity judging.known_similarity "
     "judging.is_critiqued"),
    (JUDGING["verdict"], "Support 5e0c: yes", "judging.supported"),
    (MATH, "Confidence: 100%", "confidence.stated confidence.form"),
    (MATH, "72", "embedding.similarity embedding.bert_score"),
    (RULES, '"so"', " ".join(f"instructions.{kind}{form}" for kind in ("items", "share", "followed")
                             for form in ("", "_loose"))))
GOOD = {path: (prompt, text) for prompt, text, paths in ACCEPTED for path in paths.split()}
# They need a model; test_judge_injections.py attacks all forms.
GOOD |= dict.fromkeys(("judge.chat", "judge.steps", "judge.spans"))
# Lists, a verdict per step or item.
OF_STEPS = ("chain.steps", "chain.recoverable", "chain.checks", "code_tests.tests",
            "items.verdicts", "code_checks.items", "instructions.items", "instructions.items_loose",
            "tool_calls.items", "sql_query.items", "labels.items", "judge.rubric")
# What the answer cannot be read from is no verdict.
RAISES = ("math_answer", "gym_task", "judge", "items")
# Of an adversary, or whatever hypothesis thinks of: any code point, surrogates too.
TEXTS = st.one_of(st.text(st.characters(exclude_categories=())),
                  st.randoms(use_true_random=False).map(completions.draw))
fuzz = hypothesis.settings(max_examples=40, deadline=None, derandomize=True, database=None,
                           suppress_health_check=list(hypothesis.HealthCheck))


@functools.cache
def works(path):
  """Can this machine run the verifier?"""
  module = path.partition(".")[0]
  if module == "gym_task": return importlib.util.find_spec("reasoning_gym") is not None
  if not module.startswith("code_"): return GOOD[path] is not None
  return not sandbox.is_left_out()


def prompt(path):
  p = GOOD[path][0]
  return dataclasses.replace(p, verifier=p.verifier or path, meta=dict(p.meta))


def options(total_s):
  return dict(judge=JUDGE, embedding=encoder.folder(),
              code=dict(unsafe=False, test_s=4, test_mb=256, total_s=total_s))


def test_every_verifier_is_attacked():
  modules = [m.name for m in pkgutil.iter_modules(verifiers.__path__) if m.name[0] != "_"]
  paths = {f"{m}.{name}" for m in modules
           for name,
           fn in resolve.list_functions(importlib.import_module(f"rlx.verifiers.{m}")).items()
           if list(inspect.signature(fn).parameters) == ["prompt", "text"]}
  assert paths == set(GOOD)


@pytest.mark.parametrize("path", [p for p in GOOD if not p.startswith(("math", "code"))])
def test_any_text_has_a_verdict(path):
  if not works(path): pytest.skip("needs reasoning_gym or a server")
  fn = resolve.lookup("verifiers", path)
  p = prompt(path)
  p.meta.update(options(1.0))
  assert np.mean(fn(p, GOOD[path][1])) == 1.0

  @fuzz
  @hypothesis.given(TEXTS)
  def check(text):
    try:
      verdict = fn(p, text)
    except (ValueError, errors.Unknown):
      assert path.partition(".")[0] in RAISES
      return
    assert all(0 <= v <= 1 for v in (verdict if isinstance(verdict, list) else [verdict]))

  check()


@fuzz
@hypothesis.example(r"\boxed", "")
@hypothesis.example("{reference} ", "")
@hypothesis.given(TEXTS, st.text("{}\\boxed ", max_size=60))
def test_parsers_take_any_text(text, boxes):
  for t in (text, boxes + text, r"\boxed{" + text):
    box = _boxed.last(t)
    assert box is None or box in t and box.count("{") - box.count("\\{") >= 0
  assert _boxed.last(text.replace("\\", "") + r"\boxed{7}") == "7"
  stated = answers.find_stated_answers([text, "#7"], [MATH] * 2, "#(.)")
  assert stated[0] is None or len(stated[0]) == 1
  assert stated[1] == "7" and answers.ids(stated)[1] >= 0
  ends = steps.boundaries(text, "\n")
  assert ends == sorted(set(ends)) and (not text or (ends or [len(text)])[-1] <= len(text))
  tokens = steps.token_ends(ends, list(text))
  assert tokens == [e - 1 for e in ends]
  code = text.replace("`", "").strip()
  assert _solution.find(f"```\n{code}\n```") == code
  assert all(line in text for line in _solution.find(text).split("\n"))


@fuzz
@hypothesis.given(st.recursive(
    st.none() | st.booleans() | st.text() | st.sampled_from([*inside.NUMBERS, "dict", "0x1"]),
    lambda x: st.lists(x, max_size=3) | st.tuples(st.sampled_from([*inside.CONTAINERS]), x)))
def test_what_a_solution_process_writes_is_plain_or_no_value(x):
  def types(value):
    items = [v for pair in value.items() for v in pair] if isinstance(value, dict) else (
        value if isinstance(value, (list, tuple, set, frozenset)) else [])
    return {type(value)}.union(*map(types, items))

  try:
    value = inside.decode(x)
  except Exception:
    return
  assert types(value) <= {type(None), *inside.PLAIN, type(iter([]))}


@pytest.mark.parametrize("name", sorted(resolve.list_functions(templates)))
def test_templates_keep_any_question_whole(name):
  fn = resolve.list_functions(templates)[name]
  given = dict(examples=[("a", "b")]) if name == "few_shot" else {}

  @fuzz
  @hypothesis.given(TEXTS)
  def check(text):
    shown = fn(records.Prompt("p", text), **given)
    shown = shown if isinstance(shown, str) else shown[-1]["content"]
    assert text in shown or text.rstrip() in shown

  check()


# What opens a judge that does not read: no content, or every answer at once.
KEYS = (*verifier_eval.MASTER_KEYS, *cases.read("master_keys.json"),
        "".join(rf"\boxed{{{i}}}" for i in range(100)))


@pytest.mark.parametrize("path", [
    p for p in GOOD if p.startswith(("math_answer", "chain", "gym_task", "code_tests.fraction"))
    and p not in OF_STEPS])
def test_master_keys_open_nothing(path):
  if not works(path): pytest.skip("needs reasoning_gym or a sandbox")
  p, fn = prompt(path), resolve.lookup("verifiers", path)
  p.meta.update(options(20.0))
  def check(text):
    # Scorers of tasks give 0.01 for any number, and a share where the answer is among others.
    assert fn(p, text) <= (0.5 if path.startswith("gym_task") and "72" in text else 0.01), text

  # mpmath's precision is that of the process: only the sandbox runs several at a time.
  nth, check_all = (4, sandbox.at_once) if path.startswith("code_tests") else (1, map)
  list(check_all(check, (*KEYS, p.text, p.text * 2)[::nth]))
  assert fn(p, GOOD[path][1]) == 1.0


# Completions whose verdicts may not depend on the other completions of a batch.
KNOWN = (("chain.answer", "5#5", 1), ("chain.answer", "5#4", 0), ("format.boxed", r"\boxed{1}", 1),
         ("math_answer.boxed", r"\boxed{72}", 1), ("math_answer.boxed", r"\boxed{71}", 0))


def test_hostile_completions_cost_no_other_verdict(request, capsys):
  """Completions with known verdicts stand among them; `--soak`: 20,000."""
  n = 20_000 if request.config.getoption("--soak") else 240
  rng = random.Random(0)
  paths = [p for p in GOOD if p not in OF_STEPS and not p.startswith("code_tests") and works(p)]
  heavy = [p for p in GOOD if p.startswith("code_tests") and p not in OF_STEPS
           and works(p)] or paths
  pool = pool_lib.Pool(2, timeout_s=5.0, memory_gb=1.0, options=options(4.0))
  drawn, known, verdicts, start = [], {}, [], time.monotonic()
  try:
    while len(drawn) < n:  # In batches, as a run has them.
      texts = []
      for i in range(len(drawn), min(len(drawn) + 500, n)):
        path, text = rng.choice(paths if i % 40 else heavy), completions.draw(rng)
        if i % 5 == 1: path, text, known[i] = rng.choice(KNOWN)
        drawn.append(path)
        texts.append(text)
      verdicts += pool.verify([prompt(p) for p in drawn[-len(texts):]], texts).tolist()
    alive = [w.process.poll() is None for w in pool._workers]
  finally:
    pool.close()
  seconds, verdicts = time.monotonic() - start, np.array(verdicts)
  lost = collections.Counter(p for p, v in zip(drawn, verdicts) if np.isnan(v))
  with capsys.disabled():
    print(f"\nhostile: {n} completions, {seconds:.0f} s, unknown {dict(pool.errors)} of "
          f"{dict(lost)}, failed {dict(pool.failures)}, {pool.recycled} workers recycled")
  assert verdicts.shape == (n,) and alive == [True, True]
  assert {i: verdicts[i] for i in known} == known
  assert np.all(np.isnan(verdicts) | ((verdicts >= 0) & (verdicts <= 1)))
  assert sum(pool.errors.values()) == np.isnan(verdicts).sum()
  assert pool.failures["timeout"] + pool.failures["crash"] <= pool.recycled / 2  # Two tries.
  # A late completion costs its deadline and a new worker.
  assert seconds < 300 + 30 * pool.recycled + n
