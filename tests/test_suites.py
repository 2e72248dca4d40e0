"""Suites of benchmarks: what they ask and how, and what `rlx evaluate suite=NAME` reports."""
import json

import numpy as np
import pytest

import rlx
from configs.suites import reason
from rlx.build import load, prompts as build_prompts, run as run_lib, sets, suites
from rlx.stages import outcomes
from tests.io.test_chat import bare  # pylint: disable=unused-import
from tests.prompts.test_public_sets import hub  # pylint: disable=unused-import
from tests.test_bases import chat_model  # pylint: disable=unused-import

ALL = ("code", "math", "reason")
GREEDY, R1 = dict(temperature=0.0), dict(temperature=0.6, top_p=0.95, top_k=0, min_p=0.0)
BOXED = ("Solve the following math problem efficiently and clearly.  The last line of your "
         "response should be of the following format: 'Therefore, the final answer is: "
         r"$\boxed{ANSWER}$. I hope it is correct' (without quotes) where ANSWER is just the final "
         "number or expression that solves the problem. Think step by step before answering.\n\n")
# {set: (samples, decoding, tokens, prompts, the start of the last turn, its end)} as published.
PUBLISHED = {
    "gsm8k": (None, GREEDY, 1024, 1319, "Q: test: ", "\nA: Let's think step by step."),
    "math_500": (1, R1, 30720, 500, BOXED + "test: Convert", "to polar coordinates."),
    "aime24": (32, R1, 30720, 30, BOXED + "train: Find", "minutes."),
    "aime25": (32, R1, 30720, 30, BOXED + "test: Find", "bases."),
    "amc": (32, R1, 30720, 83, BOXED + "train: What", "$m+n$?"),
    "humaneval": (None, GREEDY, 768, 164, (
        "Please provide a self-contained Python script that solves the following problem in a "
        "markdown code block:\n```\nfrom typing"), '    """\n\n```\n'),
    "mbpp": (None, GREEDY, 768, 500, (
        "You are an expert Python programmer, and here is your task:\ntest: Write"),
             "assert add(2, 2) == 4"),
    "livecodebench": (10, R1 | dict(temperature=0.2), 2000, 1055, (
        "### Question:\ntest: Add two numbers.\n\n### Format: You will use the following starter"),
                      "```\n\n### Answer: (use the provided format with backticks)\n\n")}


def loaded(name):
  sets.fill(c := load.load_config(f"suites/{name}").copy_and_resolve_references())
  return c


def rules_of(c):
  """{set: (samples, decoding, tokens, prompts)}"""
  rules = run_lib.sampling_options(c, run_lib.sizes_of(c)).evaluation
  return {name: (c.eval.sets[name].get("samples"),
                 rules[name].decoding if c.eval.sets[name].get("samples") else GREEDY,
                 rules[name].max_tokens, part.eval.prompts)
          for name, part in build_prompts.list_eval_sets(c).items()}


def test_sets_are_asked_and_decoded_as_published():
  seen = {}
  for suite in ("math", "code"):
    c = loaded(suite)
    for name, rule in rules_of(c).items():
      part = build_prompts.list_eval_sets(c)[name]
      prompt = next(iter(build_prompts.read_prompts(part, part.eval.split)))
      *system, user = build_prompts.bind_template(part)[0](prompt)
      assert [turn["role"] for turn in system] == ["system"] * (name == "livecodebench")
      seen[name] = (*rule, user["content"])
  assert set(seen) == set(PUBLISHED)
  for name, (*rule, start, end) in PUBLISHED.items():
    assert list(seen[name][:4]) == rule, name
    assert seen[name][4].startswith(start) and seen[name][4].endswith(end), seen[name][4]
  assert set(reason.SETS) == set(reason.TASKS) and len(reason.SETS) == 8


@pytest.mark.parametrize("suite", ALL)
def test_a_suite_does_not_depend_on_the_config_that_it_evaluates(suite):
  alone = loaded(suite)
  for name in ("papers/prime", "environments/calculator", "smollm2"):
    c = load.load_config(name).copy_and_resolve_references()
    c.prompts.template = dict(name="chat", system="Be brief.")
    c.rollouts.stops, c.eval.max_tokens = ("\n",), 3
    c.eval.decoding.min_p = c.rollouts.decoding.min_p = 0.2
    if suite == "math":  # Trained on a set of the suite, with a verifier of its own.
      sets.change_source(c, {"prompts.source": "gsm8k"})
      c.prompts.columns = dict(verifier="format.boxed")
    suites.use_suite(c, suite)
    sets.fill(c)
    assert rules_of(c) == rules_of(alone)
    for key, part in build_prompts.list_eval_sets(c).items():
      assert part.prompts.to_dict() | dict(per_step=0) == (
          build_prompts.list_eval_sets(alone)[key].prompts.to_dict() | dict(per_step=0)), key
    assert c.rollouts.stops == () and c.environment.name is None


def test_gym_tasks_of_the_suite_exist():
  gym = pytest.importorskip("reasoning_gym")
  assert {t for tasks in reason.TASKS.values() for t in tasks.split(",")} <= set(
      gym.factory.DATASETS)
  c = loaded("reason")
  for name, part in build_prompts.list_eval_sets(c).items():
    assert len(list(build_prompts.read_prompts(part, "test"))) >= 50, name


SMALL = {"prompts.max_tokens": 1024, "eval.batch": 4, "rollouts.chunk": 8,
         "verifier.workers": 1} | {
    f"eval.sets.{name}.max_tokens": 8 for name in ("gsm8k", "math_500", "aime24", "aime25", "amc")
} | {f"eval.sets.{name}.samples": 3 for name in ("aime24", "aime25", "amc")}
MEASURES = {"gsm8k": "greedy", "math_500": "avg@1", "aime24": "avg@3", "aime25": "avg@3",
            "amc": "avg@3"}


def test_a_model_is_evaluated_on_a_suite(chat_model, tmp_path, command, monkeypatch):
  """Each set once, in its own way; the accuracy is the mean over samples and prompts."""
  drawn, rng = {}, np.random.default_rng(0)
  def judge(self, prompts, rollouts):
    del self
    outcome_PG = rng.integers(0, 2, (len(prompts), len(rollouts.finish_B) // len(prompts)))
    kept = [i for i, p in enumerate(prompts) if p.id not in {q.id for q in prompts[:i]}]
    drawn[prompts[0].source] = outcome_PG[kept]
    return outcome_PG.astype(float)
  monkeypatch.setattr(outcomes.Outcomes, "__call__", judge)
  done = command("evaluate", f"model.path={chat_model}", "suite=math", f"workdir={tmp_path}",
                 *(f"{k}={x}" for k, x in SMALL.items()))
  assert done.returncode == 0, done.stderr
  found = json.loads((tmp_path / "evaluate.json").read_text())
  assert set(found) == {f"{measure}/{name}" for name, measure in MEASURES.items()}
  for key, x in found.items():
    measure, name = key.split("/")
    assert drawn[name].shape == (2, int(measure[4:] or 1) if "@" in measure else 1)
    assert x["mean"] == pytest.approx(drawn[name].mean()) and x["low"] <= x["mean"] <= x["high"]
    assert x["prompts"] == 2 and x["tokens"] <= 8 and x["settings"]["max_tokens"] == 8
    assert any(name in line and measure in line and f"2 of {x['asked']}" in line
               for line in done.stdout.splitlines()), done.stdout
  assert found["avg@3/aime24"]["settings"]["decoding"] == R1
  assert found["greedy/gsm8k"]["settings"]["verifiers"] == ["math_answer.final"]


def test_a_run_is_evaluated_by_its_checkpoint_and_in_python(chat_model, tmp_path):
  """With its own config, PRM and rows; the run's folder has the result."""
  rows = [dict(prompt=f"{i}+1=", answer=i + 1, verifier="format.boxed") for i in range(9)]
  small = {"prompts.per_step": 4, "rollouts.per_prompt": 2, "rollouts.max_tokens": 8, "steps": 1,
           "rollouts.chunk": 8, "eval.prompts": 1, "eval.every": 0, "rollouts.max_draws": 1,
           "rollouts.fill": "failed", "rollouts.oversample": 1.0, "prompts.max_tokens": 128,
           "prompts.template.name": "chat"} | {
      f"{name}.{cut}": 1 for name in ("learner", "prm") for cut in ("minibatches", "microbatches")}
  rlx.train("papers/prime", rows=rows, model=str(chat_model), workdir=str(tmp_path), **small)
  found = rlx.evaluate(str(tmp_path), suite="math", **SMALL)
  assert {k: x["mean"] for k, x in found.items()} == {f"{m}/{n}": 0.0 for n, m in MEASURES.items()}
  assert json.loads((tmp_path / "evaluate.json").read_text()).keys() == found.keys()


def test_refusals_are_one_line(command, tmp_path):
  say = lambda *words: command("evaluate", *words).stderr
  assert say("quickstart", "suite=maths").startswith(
      "rlx: suite='maths': no such suite; did you mean math? There are code, math, reason.")
  assert say("suite=poetry").startswith("rlx: suite='poetry': no such suite. There are code, ")
  assert say("quickstart", "suite=math", "rows=gsm8k").startswith("rlx: suite='math': without rows")
  with pytest.raises(ValueError, match="^suite='math': without rows and reward"):
    rlx.evaluate("quickstart", suite="math", rows=[])
  assert say("suite=math", "eval.sets.aime24.sample=2").startswith(
      "rlx: eval.sets.aime24.sample: no such key; did you mean eval.sets.aime24.samples?")
  assert command("train", "suites/math", f"workdir={tmp_path}").stderr.startswith("rlx: ")
