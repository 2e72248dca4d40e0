"""What can be done with the folder of a run, and what new users write."""
import io
import json
import sys

import numpy as np
import pytest

import rlx
from rlx import api
from rlx.build import load, prompts
from rlx.core import resolve
from rlx.io import compile_cache
from rlx.loops import record, rl
from rlx.tools import convert, evaluate
from tests import test_convert


@pytest.fixture(scope="module")
def run(tiny_files, tmp_path_factory):
  """(folder of a run with other parameters than its start, the model converted from it)."""
  folder = tmp_path_factory.mktemp("use")
  test_convert.run_of(folder / "run", tiny_files / "model")
  convert.convert(folder / "run", folder / "policy")
  convert.convert(folder / "run", folder / "prm", model="prm")
  return folder


def test_a_run_s_folder_is_its_newest_policy_and_prm(run, tiny_files, capsys, monkeypatch):
  options = dict(max_tokens=4, temperature=0)
  drawn = rlx.sample(run / "run", "a01", **options)
  assert drawn == rlx.sample(str(run / "policy"), ["a01"], **options)  # One text is one prompt.
  assert drawn != rlx.sample(str(tiny_files / "model"), ["a01"], **options)
  pairs = [("a01", "1234")]
  start = str(tiny_files / "model")
  scored = rlx.score(run / "run", None, pairs)
  assert scored == rlx.score(str(run / "prm"), start, pairs) and np.any(scored[0]["rewards"])
  with pytest.raises(ValueError, match="reference=None: .* is not the folder of a run; name the"):
    rlx.score(start, None, pairs)
  monkeypatch.setattr(sys, "stdin", io.StringIO("a01\n\n"))
  api.chat(run / "run", **options)
  assert capsys.readouterr().out == drawn[0][0]["text"] + "\n"


@pytest.mark.parametrize("words, message", [
    ([], "rlx chat MODEL: a model is needed."),
    (["m", "tokens=3"], "tokens: rlx chat takes ['max_tokens', 'temperature', 'seed']."),
    (["m", "seed=x"], "seed='x': a number.")])
def test_mistakes_of_chat_are_one_line(words, message, command):
  assert command("chat", *words).stderr == f"rlx: {message}\n"


@pytest.fixture
def evaluated(monkeypatch):
  """The configs that would be evaluated or trained."""
  configs = []
  for module in (evaluate, rl):
    name = module.__name__.rpartition(".")[2].replace("rl", "train")
    monkeypatch.setattr(module, name, lambda config, workdir: configs.append(config))
  monkeypatch.setattr(compile_cache, "keep_compiled", lambda *args: None)
  return configs


REWARD = "rlx.verifiers.reward_function:tests/test_use_run"
def first(completions): return [float(c == "1") for c in completions]
def other(completions): return [0.5 for _ in completions]


def test_a_run_is_evaluated_on_other_rows_with_another_reward(tmp_path, evaluated, command,
                                                              monkeypatch):
  """Its own rows stay, and functions that only Python had are found again or asked for."""
  rows = [{"prompt": f"a{i:02d}", "answer": "1"} for i in range(30)]
  given = dict(first=lambda completions: first(completions), second=lambda c: other(c))
  config = lambda: load.load_config("quickstart:smoke")
  rlx.train(config(), rows=rows, reward=given, workdir=str(tmp_path))
  record.record(evaluated[-1], tmp_path)
  (tmp_path / "checkpoints" / "1").mkdir(parents=True)
  before = (tmp_path / "rows.jsonl").read_bytes()
  (tmp_path / "more.csv").write_text("prompt,answer\nb01,1\nb02,2\n")
  rlx.evaluate(tmp_path, rows=tmp_path / "more.csv")
  name = evaluated[-1].prompts.columns.verifier
  assert name == "rlx.given:lambda" and evaluated[-1].rewards.keys() == evaluated[0].rewards.keys()
  monkeypatch.delitem(sys.modules, "rlx.given")
  with pytest.raises(ValueError, match="Python gave this function to the run, .* again, as reward"):
    resolve.lookup("verifiers", name, "verifier")
  rlx.evaluate(tmp_path, rows=tmp_path / "more.csv",
               reward={"lambda": other, "lambda_2": first})
  assert evaluated[-1].prompts.columns.verifier == f"{REWARD}/other"
  assert evaluated[-1].verifier.scores == (f"{REWARD}/first",)
  command("evaluate", str(tmp_path), f"rows={tmp_path}/more.csv", "reward=tests.test_use_run:first")
  c = evaluated[-1]
  assert c.prompts.columns.verifier == f"{REWARD}/first"
  assert [p.text for p in prompts.read_prompts(c, c.eval.split)] == ["b01", "b02"]
  assert (tmp_path / "rows.jsonl").read_bytes() == before
