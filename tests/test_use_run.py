"""What can be done with the folder of a run, and what new users write."""
import io
import json
import sys

import jax
import numpy as np
import pytest
import tqdm

import rlx
from rlx import api, build
from rlx.build import keys, load, methods, prompts, updates, validation, verifiers
from rlx.configs import base
from rlx.core import records, resolve
from rlx.io import compile_cache, progress
from rlx.loops import record, rl
from rlx.tools import convert, evaluate
from tests import test_convert, tiny


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
  rlx.evaluate(tmp_path, rows=tmp_path / "more.csv", reward={"lambda": other, "lambda_2": first})
  assert evaluated[-1].prompts.columns.verifier == f"{REWARD}/other"
  assert evaluated[-1].verifier.scores == (f"{REWARD}/first",)
  command("evaluate", str(tmp_path), f"rows={tmp_path}/more.csv", "reward=tests.test_use_run:first")
  c = evaluated[-1]
  assert c.prompts.columns.verifier == f"{REWARD}/first"
  assert [p.text for p in prompts.read_prompts(c, c.eval.split)] == ["b01", "b02"]
  (tmp_path / "other.csv").write_text((tmp_path / "more.csv").read_text().replace("prompt", "Asked"))
  words = "evaluate", str(tmp_path), "reward=tests.test_use_run:first", "columns.prompt=Asked"
  command(*words, f"rows={tmp_path}/other.csv")
  c = evaluated[-1]
  assert [p.text for p in prompts.read_prompts(c, c.eval.split)] == ["b01", "b02"]
  assert command(*words).stderr == "rlx: columns.prompt: only with rows=FILE.\n"
  assert (tmp_path / "rows.jsonl").read_bytes() == before


@pytest.mark.parametrize("call, right", [
    (dict(rewards=other), "reward"), (dict(reward_funcs=[other]), "reward"),
    (dict(train_dataset=[]), "rows"), (dict(row=[]), "rows"), (dict(output_dir="x"), "workdir"),
    (dict(learning_rate=1e-6), r"\*\*{'learner.optimizer.lr': ...}")],
                         ids=lambda x: next(iter(x)))
def test_arguments_of_other_libraries_name_the_right_one(call, right):
  name, = call
  with pytest.raises(ValueError, match=f"^{name}: .*no such argument; did you mean {right}\\?$"):
    rlx.train("quickstart:smoke", **call)


@pytest.mark.parametrize("config, message", [
    ("Qwen/Qwen3-0.6B", "a model is given as model='hf:Qwen/Qwen3-0.6B'"),
    ("hf:Qwen/Qwen3-0.6B", "this is a model; name a config such as quickstart, and the model as"),
    ("MODEL", "this is a model; name a config such as quickstart, and the model as model='")])
def test_a_model_in_the_place_of_the_config_is_named(config, message, tiny_files):
  config = config.replace("MODEL", str(tiny_files / "model"))
  with pytest.raises(ValueError, match=message): rlx.train(config, reward=other)


def test_folders_that_cannot_be_written_are_one_line(tmp_path, command):
  (tmp_path / "file").write_text("")
  for workdir, message in (("gs://bucket/run", "'gs://bucket/run': runs are written to a local"),
                           (f"{tmp_path}/file/run", "file is no folder; name another one.")):
    with pytest.raises(ValueError, match=message):
      rlx.train("quickstart:smoke", rows=[{"prompt": "1"}], reward=other, workdir=workdir)
    assert message in command("train", "quickstart:smoke", f"workdir={workdir}").stderr
  assert not [*tmp_path.glob("gs*")]


def plain(logps_BT, old_logps_BT, advantages_BT):
  return -advantages_BT * (logps_BT - old_logps_BT)


def half(outcome_B): return 0.5 * outcome_B


def test_a_plain_function_takes_the_place_of_a_method_and_its_options(evaluated, tmp_path):
  rlx.train("quickstart:smoke", workdir=str(tmp_path / "run"), **{
      "learner.loss": plain, "rewards.outcome.coef": 0.5, "rewards.outcome": half})
  c = evaluated[-1]
  assert c.learner.loss.to_dict() == dict(name="tests.test_use_run:plain")
  assert (c.rewards.outcome.name, c.rewards.outcome.coef) == ("tests.test_use_run:half", 0.5)
  keys.check(c)
  validation.check(c, methods.resolve_methods(c))


def test_a_config_may_leave_whiten_out(tiny_files):
  c = tiny.config(tiny_files)
  with c.unlocked(): del c.advantages["whiten"]
  keys.check(c)
  stage = updates.rewards_advantages_of(c, methods.resolve_methods(c))
  assert stage.whiten is base.get_config().advantages.whiten


def test_too_few_prompts_name_the_key_that_takes_fewer(tiny_files):
  c = tiny.config(tiny_files, prompts__limit=6)
  with pytest.raises(ValueError, match="6 training prompts; a draw takes 12 different ones. Set pro"
                     "mpts.per_step=4 or lower, or give more rows"):
    build.build(c, splits=("train",))


def test_an_environment_s_reward_needs_no_workers_for_verifiers(tiny_files):
  c = tiny.config(tiny_files, verifier__workers=0)
  asked = [records.Prompt(id="a", text="1", answer="1", verifier="math_answer.final")]
  with pytest.raises(ValueError, match="verifier.workers=0: math_answer.final"):
    verifiers.pool_of(c, asked)
  c.environment.name = "echo.Echo"
  verifiers.pool_of(c, asked).close()


def test_one_record_is_of_one_method(tmp_path, evaluated, command, monkeypatch):
  """Another method in a folder is refused; without a folder it gets another one, and finds it
  again."""
  monkeypatch.chdir(tmp_path)
  def train(workdir=None, **changes):
    rlx.train("quickstart:smoke", workdir=workdir, **changes)
    record.record(evaluated[-1], folders[-1])
    (tmp_path / folders[-1] / "checkpoints" / "1").mkdir(parents=True, exist_ok=True)
  folders = []
  monkeypatch.setattr(rl, "train", lambda config, workdir: (
      evaluated.append(config), folders.append(workdir)))
  other_loss = {"learner.loss": plain}
  rows = [{"prompt": f"{i}", "answer": "1"} for i in range(30)]
  for changes in ({}, other_loss, {}, {"learner.optimizer.lr": 1e-5}, other_loss,
                  dict(rows=rows, reward=other), dict(rows=rows, reward=other)):
    train(**changes)
  (tmp_path / "rows.json").write_text(json.dumps(rows))
  command("train", "quickstart:smoke", "rows=rows.json", f"reward={__name__}:other")
  command("train", "quickstart:smoke")
  name = "runs/quickstart-smoke"
  assert folders == [name, name + "-2", name, name, name + "-2", *[name + "-3"] * 3, name]
  with pytest.raises(ValueError, match="learner.loss.name='tests.*: runs/quickstart-smoke has check"
                     "points of a run with .*, and one record cannot be that of two methods"):
    train(name, **other_loss)


def test_a_step_says_what_it_compiled_and_the_first_is_left_out_of_the_eta(capsys, monkeypatch):
  compilations = progress.Compilations()
  event = "/jax/core/compile/backend_compile_duration"
  for name, seconds in (("jit(update_policy)", 2.0), ("jit(update_policy)", 1.2), ("jit(add)", .1)):
    jax.monitoring.record_event_duration_secs(event, seconds, fun_name=name)
  assert (text := compilations.take()) == "update_policy 3 s and 1 small ones"
  jax.monitoring.record_event_duration_secs(event, 0.5, fun_name="jit(add)")
  assert compilations.take() == ""
  compilations.close()
  jax.monitoring.record_event_duration_secs(event, 5.0, fun_name="jit(add)")
  assert compilations.take() == ""
  now = [1000.0]
  for module in (progress.time, tqdm.std): monkeypatch.setattr(module, "time", lambda: now[0])
  bar = progress.Bar(11, 0)
  for step, seconds in enumerate((100.0, 2.0)):
    now[0] += seconds
    bar.note(step, text * (step == 0))
    bar.show({})
  state = bar._bar.format_dict
  bar.close()
  assert (state["n"] - state["initial"]) / state["elapsed"] == 0.5
  assert "rlx: step 0 compiled update_policy 3 s and 1 small ones.\n" in capsys.readouterr().err
