"""The command `rlx` and the functions of the package, as users call them."""
import asyncio
import doctest
import importlib
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlx
from rlx.build import load
from rlx.core import method, options, records
from rlx.io import compile_cache
from rlx.loops import record, rl
from rlx.stages import outcomes
from rlx.tools import doctor, evaluate
from rlx.verifiers import pool, reward_function
from tests import api_rewards, whole

ROOT = pathlib.Path(__file__).parent.parent


def test_the_command_explains_itself(command):
  done = command()
  assert done.stdout == command("--help").stdout and done.returncode == 0
  for name in ("train", "evaluate", "sft", "train_scorer", "doctor", "view", "convert"):
    assert f"  rlx {name} " in done.stdout


@pytest.mark.parametrize("words, message", [
    (["trian"], "no command 'trian'; did you mean train?; there are train, "),
    (["train_prm", "quickstart"], "no command 'train_prm': renamed to train_scorer; there are "),
    (["train"], "rlx train CONFIG: a config is needed"),
    (["train", "steps=3"], "rlx train CONFIG: a config is needed"),
    (["train", "quikstart"], "no config 'quikstart'; did you mean quickstart? There are "),
    (["train", "prime"], "no config 'prime'; did you mean papers/prime? "),
    (["train", "mine.py"], "no config file 'mine.py'"),
    (["train", "quickstart:small"], "config argument 'small': there are smoke, "),
    (["train", "quickstart", "--steps"], "'--steps': written key=value, such as steps=20."),
    (["train", "quickstart", "checkpoint.keep=3"], "checkpoint.keep: renamed to checkpoint.max_to"),
    (["train", "quickstart", "prm.bata=1"], "prm.bata: no such key; did you mean prm.beta? "),
    (["train", "quickstart", "steps.x=1"], "steps.x: no such key; steps has no keys."),
    (["train", "quickstart", "steps=many"], "flag --config.steps=many: invalid literal for int"),
    (["train", "papers/prime:x"], "config argument 'x': there are"),
    (["train", "quickstart", "prm.order=after"], "prm.order='after': one of"),
    (["train", "quickstart", "rollouts.per_prompt=1"], "rollouts.per_prompt=1: "),
    (["train", "quickstart", "prompts.columns.qestion=q", "prompts.dataset=jsonl"],
     "prompts.columns.qestion: datasets.jsonl.prompts takes ["),
    (["train", "quickstart", "prompts.template.enable_thinking=false"],
     "prompts.template.enable_thinking: no option of plain, and the model's chat template never"),
    (["train", "quickstart", "prompts.options.opps=M"],
     "prompts.options.opps: no such key; did you mean"),
    (["train", "quickstart", "mesh.data=99"], "mesh: data=99 "),
    (["doctor", "quickstart", "model.path=/nowhere"], "model.path='/nowhere' is missing"),
    (["view"], "rlx view WORKDIR ...: a run's folder is needed."),
    (["view", "/nowhere"], "/nowhere: no config.json there"),
    (["convert", "source=/nowhere", "to=x"], "source='/nowhere' is missing"),
    (["convert", "x"], "'x': written key=value"),
], ids=str)
def test_mistakes_of_the_command_are_one_line(words, message, tmp_path, command, monkeypatch):
  monkeypatch.chdir(tmp_path)
  done = command(*words)
  assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
  assert done.stderr.startswith(f"rlx: {message}"), done.stderr


def test_a_run_s_folder_stands_for_its_config(tmp_path, monkeypatch, command):
  """With the types of the keys: one that is None can be set, and a list is a tuple again."""
  config = load.load_config("papers/cos_len")
  record.record(config, tmp_path / "run")
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(compile_cache, "keep_compiled", lambda *args: None)
  called = []
  monkeypatch.setattr(
      evaluate, "evaluate", lambda config, workdir: called.append((config, workdir)))
  assert command("evaluate", "run", "prompts.limit=5").returncode == 0
  rlx.evaluate("run", **{"prompts.limit": 5})
  for read, workdir in called:
    assert workdir == "run" and read.prompts.limit == 5
    assert {**options.flatten(read.to_dict()),
            "prompts.limit": None} == options.flatten(config.to_dict())
  (tmp_path / "quickstart").symlink_to(tmp_path / "run")  # A config's name precedes it.
  assert load.load_config("quickstart").rewards.outcome.name == "outcome.verdict"


def test_a_doctor_reads_the_run_that_is_named(tmp_path, monkeypatch, command):
  record.record(load.load_config("quickstart"), tmp_path / "run")
  (tmp_path / "runs" / "quickstart").mkdir(parents=True)  # Not named.
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(compile_cache, "keep_compiled", lambda *args: None)
  called = []
  monkeypatch.setattr(doctor, "main", lambda config, workdir=None: called.append(workdir))
  for words in (["quickstart"], ["quickstart", "workdir=x"], ["run"], ["run", "workdir=x"]):
    assert command("doctor", *words).returncode == 0
  assert called == [None, "x", "run", "x"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
  """A wheel of this checkout, unpacked; the checkout itself stays as it is."""
  copy, site = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("site")
  for name in ("setup.py", "README.md"): shutil.copy(ROOT / name, copy)
  for name in ("rlx", "configs"):
    shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
  code = "from setuptools import build_meta; build_meta.build_wheel('.')"
  subprocess.run([sys.executable, "-c", code], cwd=copy, check=True, capture_output=True)
  with zipfile.ZipFile(next(copy.glob("*.whl"))) as file: file.extractall(site)
  return site


def test_a_wheel_holds_the_package_and_nothing_else(wheel):
  assert [p.name for p in wheel.iterdir() if not p.name.endswith(".dist-info")] == ["rlx"]
  entry_points, = wheel.glob("*.dist-info/entry_points.txt")
  assert "rlx = rlx.__main__:main" in entry_points.read_text()


def test_all_configs_load_and_the_quickstart_trains_from_a_wheel_in_an_empty_folder(
    wheel, tmp_path):
  """Nor do modules that have the names of the package's functions take their place. The script has
  no `if __name__ == "__main__"`; the workers of its verifiers do not run it again."""
  (tmp_path / "script.py").write_text("""
import inspect, pathlib, sys
with open("started", "a") as file: file.write("once")
import rlx, rlx.train, rlx.tools.evaluate, rlx.stages.rewards_advantages, rlx.rollouts.sampler
from rlx import __main__, api, configs
from rlx.build import load
for name in ("train", "evaluate", "sample", "score"):
  assert inspect.isfunction(getattr(rlx, name)), name
  assert getattr(rlx, name) is getattr(api, name), name
folder = pathlib.Path(configs.__path__[0])
files = [p for p in folder.rglob("*.py") if p.stem != "__init__"]
for p in files: load.load_config(str(p.relative_to(folder).with_suffix("")))
print(len(files), configs.__file__)
sys.argv = ["rlx", "train", "quickstart:smoke", "steps=1", "prompts.options.size=64",
            "verifier.workers=2"]
__main__.main()""")
  environment = os.environ | dict(
      PYTHONPATH=str(wheel), JAX_COMPILATION_CACHE_DIR=jax.config.jax_compilation_cache_dir)
  done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment,
                        capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  count, file = done.stdout.split()[:2]
  assert int(count) > 90 and file == str(wheel / "rlx/configs/__init__.py")
  assert "the run's folder is runs/quickstart-smoke" in done.stdout
  assert (tmp_path / "runs/quickstart-smoke/summary.json").exists()
  assert (tmp_path / "started").read_text() == "once"


def correct(completions, answer):
  return [float(c.endswith(a)) for c, a in zip(completions, answer)]


def generated(completions, **columns):
  del columns
  yield from (jnp.float32(0.25) for _ in completions)


ROWS = [{"prompt": f"{i}{op}{j}=", "answer": str(max(i, j) if op == "M" else min(i, j))}
        for i in range(10) for j in range(10) for op in "Mm"]


@pytest.mark.parametrize("reward, match", [
    (lambda completions: [1.0], "reward '<lambda>' returned 1 rewards for 2 completions"),
    (lambda completions: (0.0 for _ in iter(int, 1)), "returned more than 2 rewards for 2"),
    (lambda completions: 1.0, "returned 1.0; a list is needed, with one reward for each"),
    (lambda completions: ["yes" for c in completions], "returned 'yes' for a completion; a num"),
    (lambda completions: [float("inf") for c in completions], "returned inf for a completion"),
    (lambda completions, anwser: [0.0 for c in completions],
     r"takes 'anwser'; the rows have the columns \['answer', 'prompt'\]"),
    (lambda completions: [c.undefined for c in completions],
     "reward '<lambda>': it fails on the reference answers of the first rows: AttributeError: "),
    (lambda: [], "its first argument has to be the completions"),
    ("math_answer.final", "reward='math_answer.final': a function is needed"),
])
def test_mistakes_of_a_reward_are_one_line_before_anything_runs(tmp_path, reward, match):
  with pytest.raises(ValueError, match=match) as error:
    rlx.train("quickstart:smoke", rows=ROWS, reward=reward, workdir=tmp_path / "run")
  assert "\n" not in str(error.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize("changes, match", [
    (dict(rows=[{"question": f"{i}M7="} for i in range(3)], reward=lambda completions: [0, 0]),
     r"row .: no column `prompt`; it has \['question'\]: name the one that is asked"),
    (dict(rows=[*ROWS, {"prompt": "4M7=", "answer": object()}]),
     "row 200: column 'answer': <object object"),
    (dict(columns={"prompt": "question.text"}),
     r"columns\['prompt'\]='question.text': row 0 has \['answer', 'prompt'\]"),
    (dict(rows=[*ROWS, {"prompt": "four", "answer": "4"}]),
     "prompt 'row 200': The tokenizer cannot encode 'four'"),
    (dict(rows=ROWS, reward=None), "rows: without reward=, the column `verifier` of each row"),
    (dict(rows=[]), "rows: there are none"),
    (dict(rows="nowhere.jsonl"), "rows='nowhere.jsonl': no file nowhere.jsonl"),
    (dict(model="/nowhere"), "model.path='/nowhere' is missing"),
    (dict(config="quikstart"), "no config 'quikstart'; did you mean quickstart"),
    (dict(coefficients=dict(haf=1.0)), r"no reward 'haf'; there are \['outcome'\]"),
    ({"learner.optimizer.lrate": 1.0}, "learner.optimizer.lrate: no such key; there are "),
    ({"steps": "many"}, "steps='many': "),
], ids=lambda x: str(x)[:40])
def test_mistakes_of_a_call_are_one_line(tmp_path, changes, match):
  call = dict(config="quickstart:smoke", rows=ROWS, reward=correct, workdir=tmp_path) | changes
  with pytest.raises(ValueError, match=match) as error: rlx.train(**call)
  assert "\n" not in str(error.value)


def rewards_of(fn, texts, workers, ids="", kind="verify", timeout_s=60.0):
  """The rewards that a run's pool gives to completions of the prompts `ids`, and the pool."""
  verifier = reward_function.RewardFunction(fn.__name__, fn)
  verifiers = pool.Pool(workers, timeout_s=timeout_s, functions=dict(mine=verifier))
  prompts = [records.Prompt(id=id_, text="", answer="4", verifier="mine",
                            meta=dict(row=dict(prompt="", answer="4", id=id_)))
             for id_ in ids or "a" * len(texts)]
  rewards = getattr(verifiers, kind)(prompts, texts)
  verifiers.close()
  return rewards, verifiers


def test_each_kind_of_reward():
  """None and NaN are unknown, numbers of any library and True are numbers, of any size; what is no
  reward of a completion is unknown with a message, and a completion that makes the function fail
  gets 0, or the lowest reward of the others."""
  texts = ["none", "nan", "true", "numpy", "int", "high", "text", "fails"]
  expected = [np.nan, np.nan, 1, 0.5, 1, 3, np.nan, 0]
  for workers in (0, 1):
    rewards, verifiers = rewards_of(api_rewards.per_kind, texts, workers)
    np.testing.assert_array_equal(rewards, expected)
    assert verifiers.errors == dict(unknown=3) and verifiers.failures == dict(exception=1)
    rewards, verifiers = rewards_of(api_rewards.per_kind, ["low", "fails"], workers)
    assert rewards.tolist() == [-2.5, -2.5]
  _, verifiers = rewards_of(api_rewards.per_kind, ["text"], 0)
  assert verifiers.last_error == ("reward 'per_kind' returned '1' for a completion; a number, None "
                                  "or a list of numbers is needed")
  assert rewards_of(generated, ["a", "b"], 0)[0].tolist() == [0.25, 0.25]


def test_a_reward_is_called_with_lists():
  """Of the completions of a prompt in a worker, of all of them in this process."""
  texts, ids = ["x", "y", "z"], "aab"
  assert rewards_of(api_rewards.number_of_texts, texts, 2, ids)[0].tolist() == [2, 2, 1]
  here = lambda completions: api_rewards.number_of_texts(completions, 0)
  assert rewards_of(here, texts, 2, ids)[0].tolist() == [3, 3, 3]
  for workers in (0, 1):
    rewards, _ = rewards_of(api_rewards.parts, ["x", ""], workers, kind="verify_lists")
    np.testing.assert_array_equal(rewards[0], [-2, np.nan, 0.5])
    assert rewards[1] == []


def test_what_a_reward_does_to_its_arguments_changes_nothing():
  """It gets copies of the completions and of the columns, also of what stands inside them."""
  row, texts = dict(prompt="", answer="4", marks=[[1], {"a": 2}]), ["x", "y"]
  def edit(completions, marks, **columns):
    rewards = [len(completions) + len(marks[0])] * len(completions)
    completions.clear()
    for mark in marks: mark[0].append(9), mark[1].clear(), mark.reverse(), mark.pop()
    for column in columns.values(): column.sort(), column.clear()
    return rewards
  by_place = lambda texts, marks, **columns: edit(texts, marks, **columns)
  for fn in (edit, edit, by_place):
    assert reward_function.RewardFunction("edit", fn).rewards(texts, [row, row]) == [4.0, 4.0]
  assert texts == ["x", "y"] and row == dict(prompt="", answer="4", marks=[[1], {"a": 2}])


@pytest.mark.parametrize("fn", [
    lambda prompts, completions, **columns: [prompts, completions, columns["answer"]],
    lambda *, completions, answer, prompts: [prompts, completions, answer],
    lambda completions, prompts, answer: [prompts, completions, answer],
    lambda texts, prompts, answer: [prompts, texts, answer]], ids=range(4))
def test_a_reward_may_have_the_arguments_of_trl(fn, monkeypatch):
  monkeypatch.setattr(reward_function, "_numbers", lambda name, returned, n: returned)
  rows = [dict(prompt="p", answer="1"), dict(prompt="q", answer="2")]
  verifier = reward_function.RewardFunction("mine", fn)
  assert verifier.rewards(["x", "y"], rows) == [["p", "q"], ["x", "y"], ["1", "2"]]
  assert verifier.rewards(["x"], [dict(prompt="p", prompts="own", answer="1")]) == [
      ["own"], ["x"], ["1"]]


@pytest.mark.parametrize("fn", [lambda prompts: [], lambda prompt, texts: [],
                                lambda *, texts: [], lambda: []], ids=range(4))
def test_a_reward_has_to_take_completions(fn):
  with pytest.raises(ValueError, match="its first argument has to be the completions"):
    reward_function.RewardFunction("mine", fn).columns(dict(prompt="", answer=""))


def test_a_reward_may_be_async_also_where_an_event_loop_runs():
  """Its waits overlap: each completion waits until all of them have started."""
  async def mine(completions, answer):
    started = asyncio.Barrier(len(completions))
    async def judge(completion, right):
      await started.wait()
      return float(completion == right)
    return await asyncio.gather(*map(judge, completions, answer))
  async def call(): return rewards_of(mine, ["4", "5", "4"], 0, "abc")[0].tolist()
  assert rewards_of(mine, ["4", "5", "4"], 1, "abc")[0].tolist() == [1, 0, 1]
  assert asyncio.run(call()) == [1, 0, 1]
  assert rewards_of(api_rewards.waits, ["4", "5"], 1, "aa")[0].tolist() == [1, 0]


def test_a_list_is_the_verdict_too_and_the_function_is_called_once():
  """The verdict is the mean of the list. A completion that makes the function fail gets the lowest
  number of the others, and each of its steps does."""
  calls = []
  def letters(completions):
    if "fails" in completions: return 1 / 0
    calls.extend(completions)
    return [None if c == "none" else [{"a": -2.0, "b": 1.0}.get(x) for x in c] for c in completions]
  verifier = reward_function.RewardFunction("letters", letters)
  verifiers = outcomes.Verifiers(pool.Pool(0, 1.0, functions=dict(mine=verifier)), ("mine",))
  texts = ["ab", "b?", "", "none", "fails"]
  prompts = [records.Prompt(id=str(i), text="", verifier="mine", meta=dict(row=dict(answer="")))
             for i in range(len(texts))]
  rewards = verifiers.rewards(prompts, texts, keep=True)
  np.testing.assert_array_equal(rewards, [-0.5, 1, 0, np.nan, -2])
  del calls[:]
  np.testing.assert_equal(verifiers.lists("mine", prompts, texts),
                          [[-2, 1], [1, np.nan], [], [], -2])
  assert not calls
  verifiers.lists("mine", prompts[:2], texts[:2])  # Of another batch, for example.
  assert calls == texts[:2]


@method.method(unchanged=True)
def as_verified(outcome_B, learn_B, *, share: float = 1.0): return outcome_B


def test_a_reward_becomes_a_term_beside_what_the_config_has(tmp_path, monkeypatch):
  """Its value takes the place of the verdict; methods that read verdicts and scores stay."""
  monkeypatch.setattr(rl, "train", lambda config, workdir: config)
  monkeypatch.setattr(compile_cache, "keep_compiled", lambda *args: None)
  train = lambda config, reward: rlx.train(config, rows=ROWS, reward=reward, workdir=tmp_path)
  assert train("quickstart:smoke", correct).rewards.outcome.name == "outcome.reward"
  config = load.load_config("quickstart:smoke")
  with config.unlocked(): config.rewards.outcome = dict(name=as_verified, coef=2.0, share=0.5)
  assert train(config, correct).rewards.outcome.to_dict() == dict(name="outcome.reward", coef=2.0)
  cascade = load.load_config("papers/tinyv")
  config = train("papers/tinyv", correct)
  assert config.rewards == cascade.rewards and config.verifier.scores == cascade.verifier.scores
  config = train("papers/tinyv", dict(first=correct, second=generated))
  assert config.rewards.first.to_dict() == dict(name="outcome.reward", coef=1.0)
  assert config.verifier.scores[:-1] == cascade.verifier.scores
  assert config.rewards.second.index == len(cascade.verifier.scores)


def test_several_rewards_with_coefficients_and_lists_for_each_token(tmp_path, capsys):
  """Each is a term of its own: what a run logs is what the functions return, numbers on any scale.
  One character is one token. The verdict, which accuracy and the PRM read, is the first reward
  clipped to [0, 1], and one line says so."""
  def shorter(completions): return [-float(len(c)) for c in completions]
  def half(completions): return [0.5 for _ in completions]
  def letters(completions): return [[-3.0 * (x == "#") for x in c] for c in completions]
  def twos(completions): return [[2.0 for _ in c] for c in completions]
  workdir = tmp_path / "run"
  rlx.train("quickstart:smoke", rows=ROWS, workdir=workdir, steps=1,
            reward=dict(shorter=shorter, half=half, letters=letters, twos=twos),
            coefficients=dict(half=0.1),
            **{"rollouts.fill": "failed", "rollouts.step_separator": ""})
  config = json.loads((workdir / "config.json").read_text())
  assert {name: term["coef"] for name, term in config["rewards"].items()} == dict(
      shorter=1.0, half=0.1, letters=1.0, twos=1.0, process=1.0)
  logged, = [json.loads(line) for line in (workdir / "metrics.jsonl").open()]
  rows = [json.loads(line) for line in (workdir / "completions.jsonl").open()]
  assert logged["rewards/shorter"] < -1 and logged["rewards/letters"] < 0
  assert logged["rewards/half"] == 0.5
  assert logged["rewards/twos"] == pytest.approx(-2 * logged["rewards/shorter"], rel=1e-5)
  assert logged["rollouts/accuracy"] == 0 and {row["verdict"] for row in rows} == {0}
  notes = [line for line in capsys.readouterr().err.splitlines() if "clipped" in line]
  assert len(notes) == 1 and notes[0].startswith("rlx: a reward is -")
  assert "held-out accuracy, rollouts.filter_groups, prm.loss read" in notes[0]
  with pytest.raises(ValueError, match="has checkpoints of a run with other rows; give the same"):
    rlx.train("quickstart:smoke", rows=ROWS[:-1], workdir=workdir, reward=correct)


def test_functions_of_modules_run_in_workers_with_a_deadline(tmp_path, monkeypatch):
  (tmp_path / "my_reward.py").write_text(
      "import os, time\ndef where(completions, answer):\n"
      "  if 'hang' in completions: time.sleep(60)\n"
      f"  return [float(os.getpid() != {os.getpid()}) for c in completions]")
  monkeypatch.syspath_prepend(str(tmp_path))
  where = importlib.import_module("my_reward").where
  rewards, verifiers = rewards_of(where, ["a", "hang", "b"], 2, timeout_s=2.0)
  assert rewards.tolist() == [1, 0, 1] and verifiers.failures == dict(timeout=1)
  here = lambda completions: where(completions, None)  # Cannot be sent to a worker.
  assert rewards_of(here, ["a"], 2)[0].tolist() == [0]


PURE = [p for stage in ("core", "rewards", "advantages", "losses", "models", "evals", "prompts",
                        "verifiers", "rollouts", "learner")
        for p in (ROOT / "rlx" / stage).rglob("[!_]*.py")]


class Finder(doctest.DocTestFinder):
  """Also finds the examples of decorated functions."""

  def _from_module(self, module, object):
    return super()._from_module(module, inspect.unwrap(object) if callable(object) else object)


@pytest.mark.parametrize("path", [ROOT / "rlx/api.py", ROOT / "rlx/build/keys.py", *PURE],
                         ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_of_docstrings_are_right(path, tmp_path, monkeypatch):
  if ">>>" not in path.read_text(): return
  monkeypatch.chdir(tmp_path)
  module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
  # What a call prints on the way, such as progress, is no part of its example.
  checker = doctest.OutputChecker()
  is_right = lambda want, got, flags: doctest.OutputChecker.check_output(
      checker, want, "".join(got.splitlines(keepends=True)[-want.count("\n"):] if want else ""),
      flags)
  runner = doctest.DocTestRunner(types.SimpleNamespace(
      check_output=is_right, output_difference=checker.output_difference),
                                 optionflags=doctest.ELLIPSIS)
  names = {"folder": str(tmp_path / "run"), "jnp": jnp, path.stem: module}
  if re.search(r">>> .*jnp\.", path.read_text()): names[path.stem] = whole.compile_module(module)
  for test in Finder().find(module, extraglobs=names):
    assert runner.run(test).failed == 0, test.name
