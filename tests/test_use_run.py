"""What can be done with the folder of a run, and what new users write."""
import contextlib
import io
import json
import pathlib
import sys

import jax
import numpy as np
import pytest
import tqdm

import rlx
from rlx import api, build
from rlx.build import keys, load, methods, own_data, prompts, updates, validation, verifiers
from rlx.configs import base
from rlx.core import records, resolve
from rlx.io import compile_cache, progress
from rlx.loops import record, rl
from rlx.tools import convert, evaluate
from tests import test_convert, tiny


ROOT = pathlib.Path(__file__).parent.parent


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
def plain(logps_BT, old_logps_BT, advantages_BT):
  return -advantages_BT * (logps_BT - old_logps_BT)


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


@pytest.mark.parametrize("call, given, line", [
    ("train", ("Qwen/Qwen3-0.6B", other, [{}]),
     "train('papers/grpo', base='gsm8k', model='hf:Qwen/Qwen3-0.6B', reward=other, rows=...)"),
    ("train", ("quickstart", "rows.csv", "more.csv", [other, plain]),
     "train('quickstart', rows='rows.csv', eval_rows='more.csv', reward={'other': other, 'plain': "
     "plain})"),
    ("train", ("quikstart", {"a": other}), "train('quikstart', reward=other)"),
    ("evaluate", ("MODEL", [{}]), "evaluate('papers/grpo', base='gsm8k', model='MODEL', rows=...)"),
    ("evaluate", (base.get_config(), [{}]), "evaluate(config, rows=...)")])
def test_arguments_without_names_are_refused_with_the_line_to_write(call, given, line, tiny_files):
  path = str(tiny_files / "model")
  given = [x.replace("MODEL", path) if isinstance(x, str) else x for x in given]
  with pytest.raises(ValueError) as e: getattr(rlx, call)(*given)
  assert str(e.value) == (f"rlx.{call}: arguments after the config have names; write rlx."
                          f"{line.replace('MODEL', path)}.")


@pytest.mark.parametrize("config, message", [
    ("Qwen/Qwen3-0.6B", "a model is given as model='hf:Qwen/Qwen3-0.6B'"),
    ("hf:Qwen/Qwen3-0.6B", "this is a model; name a config such as quickstart, and the model as"),
    ("MODEL", "this is a model; name a config such as quickstart, and the model as model='")])
def test_a_model_in_the_place_of_the_config_is_named(config, message, tiny_files):
  config = config.replace("MODEL", str(tiny_files / "model"))
  with pytest.raises(ValueError, match=message): rlx.train(config, reward=other)


def test_folders_that_cannot_be_written_are_one_line(tmp_path, command):
  (tmp_path / "file").write_text("")
  for workdir, message in (("gs://bucket/run", "'gs://bucket/run': files are written to a local"),
                           ("/proc/run", "cannot be written; name another one."),  # Not by root.
                           (f"{tmp_path}/file/run", "file is no folder; name another one.")):
    with pytest.raises(ValueError, match=message):
      rlx.train("quickstart:smoke", rows=[{"prompt": "1"}], reward=other, workdir=workdir)
    for words in (["train", "quickstart:smoke", f"workdir={workdir}"],
                  ["convert", "source=configs/models/chain", f"to={workdir}"],
                  ["preflight", "quickstart:smoke", f"json={workdir}/figures.json"]):
      assert message in command(*words).stderr, words
  assert not [*tmp_path.glob("gs*")]


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


@pytest.mark.parametrize("limit, cuts, message", [
    (6, 2, "6 training prompts; .* 12 different ones. Set prompts.per_step=4 or lower, or give"),
    (2, 2, "2 training prompts; a draw takes 12 different ones. Give more rows."),
    (2, 1, "2 training prompts; .* Set prompts.per_step=1 or lower"),
    (1, 1, "1 training prompt; a draw takes 12 different ones. Give more rows.")])
def test_too_few_prompts_name_the_key_that_takes_fewer(tiny_files, limit, cuts, message):
  c = tiny.config(tiny_files, prompts__limit=limit, learner__minibatches=cuts,
                  prm__minibatches=cuts)
  with pytest.raises(ValueError, match=message): build.build(c, splits=("train",))


@pytest.mark.parametrize("rows, message", [
    (["1M2="], "there is one, and one is held out to measure accuracy; give at least two different "
     "rows, or those held out as eval_rows=[...]."), (["1M2="] * 3, "all 3 are equal, and one is"),
    (["1M2=", "3M4="], None)])
def test_a_single_row_is_refused_and_of_two_one_is_held_out(rows, message, evaluated, tmp_path,
                                                           monkeypatch):
  monkeypatch.setattr(own_data, "_HELD_OUT", 1)  # As if the hash held out all of them.
  rows = [dict(prompt=text, answer="2") for text in rows]
  train = lambda: rlx.train("quickstart:smoke", rows=rows, reward=other, workdir=tmp_path / "run")
  if message is None:
    train()
    splits = [json.loads(x)["split"] for x in (tmp_path / "run/rows.jsonl").open()]
    assert splits == ["train", "test"]
  else:
    with pytest.raises(ValueError) as e: train()
    assert str(e.value).startswith(f"rows: {message}")


def test_an_environment_s_reward_needs_no_workers_for_verifiers(tiny_files):
  """A verifier that is asked after all has a process; those of the config are always asked."""
  c = tiny.config(tiny_files, verifier__workers=0)
  asked = [records.Prompt(id="a", text="1", answer="1", verifier="math_answer.final")]
  with pytest.raises(ValueError, match="verifier.workers=0: math_answer.final"):
    verifiers.pool_of(c, asked)
  c.environment.name = "echo.Echo"
  with contextlib.closing(verifiers.pool_of(c, asked)) as pool:
    assert pool.verify(asked, [r"\boxed{1}"]) == 1
  c.verifier.scores = ("math_answer.final",)
  with pytest.raises(ValueError, match="verifier.workers=0: math_answer.final .verifier.scores"):
    verifiers.pool_of(c, asked)


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
  jitted = [p.read_text() for p in ROOT.glob("rlx/*/*.py") if "jax.jit" in p.read_text()]
  for name in progress.Compilations._NAMES: assert any(f"def {name}(" in text for text in jitted)
  compilations = progress.Compilations()
  event = "/jax/core/compile/backend_compile_duration"
  for name, seconds in (("jit(step)", 2.0), ("jit(step)", 1.2), ("jit(add)", .1)):
    jax.monitoring.record_event_duration_secs(event, seconds, fun_name=name)
  assert (text := compilations.take()) == "updates 3 s and 1 small ones"
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
  assert "rlx: step 0 compiled updates 3 s and 1 small ones.\n" in capsys.readouterr().err


PPO = dict(rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)),
           advantages=dict(total=dict(name="temporal.gae"), whiten=True))


@pytest.mark.parametrize("changes, programs", [
    ({}, "sampler, scoring, PRM update, rewards and advantages, policy update"),
    (PPO, "sampler, scoring, rewards and advantages, value update, policy update"),
    (dict(PPO, advantages=dict(outcome=dict(name="group.rloo"), whiten=True)),
     "sampler, rewards and advantages, policy update")])
def test_what_the_first_step_compiles_is_said_before(changes, programs, tiny_files, tmp_path,
                                                     capsys, monkeypatch):
  """In one line, before the stages of step 0."""
  c = tiny.config(tiny_files, **changes)
  run = tiny.build_run(c)
  asked = []
  def step(run, state, *_): raise KeyboardInterrupt(asked.append(capsys.readouterr().err))
  monkeypatch.setattr(rl, "iteration", step)
  monkeypatch.setattr(rl, "measure_accuracy", lambda *_: {})
  with tiny.building(run), pytest.raises(KeyboardInterrupt): rl.train(c, tmp_path)
  assert f"rlx: compiling: evaluation, {programs}; step 0 waits for them.\n" in asked[0]
  assert run.list_programs(evaluates=False) == programs.split(", ")
