"""Public sets by name, from `prompts.source=NAME` to Prompts, over a stub of the package datasets.

fixtures/public_sets.json has rows of the published shapes, written for these tests.
"""
import json
import pathlib
import re
import sys
import types

import pytest

import rlx
from rlx.grids import grid
from rlx import cli
from rlx.build import (
    load, own_data, prompts as build_prompts, sets, sft as build_sft, verifiers as build_verifiers)
from rlx.configs import base
from rlx.core import records
from rlx.io import rows as io_rows, tokenizer
from rlx.loops import rl
from rlx.prompts.datasets import dapo_17k
from tests import tiny
from tests.prompts import test_datasets

GRPO = str(pathlib.Path(__file__).parents[2] / "configs/papers/grpo.py")
# {set: (arguments of load_dataset, its split for training, its held-out split)}
HUB = {
    "gsm8k": (("openai/gsm8k", "main"), "train", "test"),
    "math": (("DigitalLearningGmbH/MATH-lighteval", None), "train", "test"),
    "dapo_17k": (("open-r1/DAPO-Math-17k-Processed", "en"), "train[512:]", "train[:512]"),
    "deepscaler": (("agentica-org/DeepScaleR-Preview-Dataset", None), "train[512:]", "train[:512]"),
    "big_math": (("SynthLabsAI/Big-Math-RL-Verified", None), "train[512:]", "train[:512]"),
    "openr1_math": (("open-r1/OpenR1-Math-220k", "default"), "train[512:]", "train[:512]"),
    "numina_math": (("AI-MO/NuminaMath-1.5", None), "train[512:]", "train[:512]"),
    "numina_math_cot": (("AI-MO/NuminaMath-CoT", None), "train", "test"),
    "eurus_2_rl": (("PRIME-RL/Eurus-2-RL-Data", None), "train", "validation"),
    "mbpp": (("google-research-datasets/mbpp", "full"), "train", "test"),
    "taco": (("parquet", None), "train", "test"),
    "code_contests": (("deepmind/code_contests", None), "train", "test"),
    "math_500": (("HuggingFaceH4/MATH-500", None), "", "test"),
    "aime24": (("HuggingFaceH4/aime_2024", None), "", "train"),
    "aime25": (("math-ai/aime25", None), "", "test"),
    "amc": (("AI-MO/aimo-validation-amc", None), "", "train"),
    "humaneval": (("openai/openai_humaneval", None), "", "test"),
    "livecodebench": (("json", None), "", "test")}


@pytest.fixture(autouse=True)
def hub(monkeypatch):
  """The package datasets with all public sets; the calls of load_dataset."""
  calls = []
  def load_dataset(*args, split, revision, **files):
    calls.append((args, split, files))
    name = next((n for n, (a, *_) in HUB.items() if a == args), None)
    if name is None: raise FileNotFoundError(f"Dataset '{args[0]}' doesn't exist on the Hub")
    return test_datasets.public_rows(name, split)
  def get_dataset_split_names(name, config):
    del name
    return dict(main=["train", "test"], en=["train"])[config]
  monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(
      load_dataset=load_dataset, get_dataset_split_names=get_dataset_split_names))
  return calls


def write(source, **keys):
  """A config of the toy with a source and other keys of prompts, as Python code may write it."""
  c = load.load_config("papers/grpo").copy_and_resolve_references()
  with c.unlocked():
    c.prompts.source = source
    for key, value in keys.items(): c.prompts[key] = value
  return c


def named(source, **keys):
  """The same with the name of a set resolved."""
  sets.fill(c := write(source, **keys))
  return c


def test_every_set_is_tried():
  assert set(HUB) == set(sets.list_sets()) == set(test_datasets.PUBLIC) and len(HUB) >= 10


@pytest.mark.parametrize("name", HUB)
def test_a_name_is_read_as_published(name, hub, caplog):
  case, c = test_datasets.PUBLIC[name], named(name)
  arguments, *splits = HUB[name]
  assert [c.prompts.split, c.eval.split] == splits and c.prompts.options.to_dict() == {}
  first = c.prompts.split or c.eval.split
  prompts = list(build_prompts.read_prompts(c, first))
  assert hub[0][:2] == (arguments, first)
  assert [p.answer for p in prompts] == [a.replace("{split}", first) for a in case["answers"]]
  assert all(p.is_public for p in prompts)
  said = ", ".join(f"{n} {reason}" for reason, n in case["dropped"].items())
  assert [r.getMessage() for r in caplog.records] == [
      f"prompts: dropped {sum(case['dropped'].values())} of {len(case['rows'])} rows of "
      f"{c.prompts.source}, split {first}: {said}."] * bool(said)
  assert not build_prompts.find_problems(c, prompts)
  assert splits[1] in next(iter(build_prompts.read_prompts(c, c.eval.split))).text
  if not splits[0]:
    with pytest.raises(ValueError, match="^prompts.split='': hf:.* no split for training"):
      build_prompts.read_prompts(c, "")


def test_what_a_prompt_has():
  read = lambda name: list(build_prompts.read_prompts(named(name), HUB[name][1] or HUB[name][2]))
  maths, program, function = read("eurus_2_rl")
  assert [m["role"] for m in maths.messages] == ["system", "user"]
  assert maths.text.endswith(r"Present the answer in LaTex format: \boxed{Your answer}")
  assert (maths.verifier, program.verifier) == ("math_answer.boxed", "code_tests.passed")
  assert program.meta["tests"] == dict(inputs=["1 2\n", "10 20\n"], outputs=["3\n", "30\n"])
  assert function.meta["tests"] == dict(fn_name="add", inputs=["1\n2", "[1]\n[2]"],
                                        outputs=["3", "[1, 2]"])
  program, function, method = read("taco")
  assert program.text.endswith("prints to standard output.")
  assert program.meta["tests"] == dict(
      inputs=["1 2\n", ["3 4", ""]], outputs=["3\n", ["7", ""]])
  assert function.text.endswith("Complete this code:\n\ndef add(a, b):\n\t")
  assert function.meta["tests"] == dict(fn_name="add", inputs=[[1, 2], [-1, 1]],
                                        outputs=[[3], [0]])
  assert method.meta["tests"]["outputs"] == [3, 5]
  assert len(read("code_contests")[0].meta["tests"]["inputs"]) == 3
  few = named("code_contests", columns=dict(tests=1))
  assert next(build_prompts.read_prompts(few, "train")).meta["tests"] == dict(
      inputs=["10 20\n"], outputs=["30\n"])
  program, method = read("livecodebench")
  assert "# YOUR CODE HERE\n```\n\n### Answer" in program.text
  assert "```python\nclass Solution:" in method.text and method.id == "livecodebench/test/2727"
  of_days = lambda **days: [p.id.rpartition("/")[2] for p in build_prompts.read_prompts(
      named("livecodebench", columns=days), "test")]
  assert of_days(start="2024-09-01") == ["2727"] and of_days(end="2024-08-31") == ["abc301_a"]
  with pytest.raises(ValueError, match="^prompts.columns.start='08/2024': a day such as 2024-08"):
    of_days(start="08/2024")
  assert read("big_math")[0].meta["llama8b_solve_rate"] == 0.875
  whole = dict(test_datasets.PUBLIC["dapo_17k"]["rows"][0])
  whole["prompt"] = whole.pop("source_prompt")  # As BytedTsinghua-SIA/DAPO-Math-17k has it.
  del whole["solution"]
  prompt, = dapo_17k.prompts([whole], "train")
  assert prompt.answer == "36" and prompt.messages[0]["content"].startswith("Solve the")


@pytest.mark.parametrize("spelling", ["gsm8k", "GSM8K", "GSM-8k"])
def test_the_name_is_enough_everywhere(spelling, tmp_path, monkeypatch):
  """On the command line, in Python, in grids and in a config; over the toy's chains."""
  monkeypatch.chdir(tmp_path)
  seen = []
  monkeypatch.setattr("rlx.loops.rl.train", lambda config, workdir: seen.append(config) or {})
  monkeypatch.setattr("rlx.io.compile_cache.keep_compiled", lambda *_: None)
  source = {"prompts.source": spelling}
  cli.parse("train", "papers/grpo", f"prompts.source={spelling}")[0]()
  cli.parse("train", "papers/grpo", f"rows={spelling}")[0]()
  rlx.train("papers/grpo", **source)
  rlx.train("papers/grpo", rows=spelling)
  rlx.train(write(spelling), workdir="run")
  (tmp_path / "mine.py").write_text(
      "from rlx.configs import quickstart\ndef get_config(arg=''):\n  c = quickstart.grpo(arg)\n"
      f"  c.prompts.source = {spelling!r}\n  return c\n")
  rlx.train("mine.py")
  cli.parse("train", "mine.py")[0]()
  seen.append(grid.make_config(grid._cell(0, dict(arm="a", seed=0, config=GRPO, **source))))
  for c in seen:
    assert (c.prompts.source, c.prompts.dataset, c.prompts.split, c.eval.split) == (
        "hf:openai/gsm8k:main", "gsm8k", "train", "test")
    assert c.prompts.options.to_dict() == c.prompts.columns.to_dict() == {}
    assert len(list(build_prompts.read_prompts(c, "train"))) == 2
  assert len(seen) == 8


def test_other_keys_of_a_call_hold(tmp_path, monkeypatch):
  """Whatever their order, and over a base that has another set."""
  monkeypatch.chdir(tmp_path)
  seen = []
  monkeypatch.setattr("rlx.loops.rl.train", lambda config, workdir: seen.append(config) or {})
  monkeypatch.setattr("rlx.io.compile_cache.keep_compiled", lambda *_: None)
  other = {"prompts.split": "train[:9]", "prompts.columns.verifier": "math_answer.final"}
  words = [f"{k}={v}" for k, v in other.items()]
  cli.parse("train", "papers/grpo", "base=math", *words, "prompts.source=deepscaler")[0]()
  cli.parse("train", "papers/grpo", "base=gsm8k", *words, "rows=deepscaler")[0]()
  rlx.train("papers/grpo", base="code", **{
      "prompts.split": "train[:9]", "prompts.columns": dict(verifier="math_answer.final"),
      "prompts.source": "deepscaler"})
  change = dict(arm="a", seed=0, config=GRPO, base="math", **other)
  seen.append(grid.make_config(grid._cell(0, change | {"prompts.source": "deepscaler"})))
  for c in seen:
    assert (c.prompts.dataset, c.prompts.split, c.eval.split) == (
        "deepscaler", "train[:9]", "train[:512]")
    assert next(build_prompts.read_prompts(c, "train")).verifier == "math_answer.final"
  kept = named("dapo_17k", split="train[:9]", columns=dict(verifier="math_answer.final"))
  assert (kept.prompts.split, kept.eval.split) == ("train[:9]", "train[:512]")
  # Another kind of source does not get the options of the toy's chains.
  c = cli._override(load.load_config("papers/grpo"), {
      "prompts.source": "hf:openai/gsm8k:main", "prompts.dataset": "gsm8k"})
  assert len(list(build_prompts.read_prompts(c, "train"))) == 2


def test_a_part_of_a_mixture_is_filled():
  part = base.get_config().prompts.copy_and_resolve_references()
  part.source = "DeepScaleR"
  assert sets.fill_prompts(part) == "train[:512]" and part.dataset == "deepscaler"
  part = type(part)(dict(source="mbpp", weight=2.0))
  assert sets.fill_prompts(part) == "test"
  assert part.to_dict() == dict(source="hf:google-research-datasets/mbpp:full", weight=2.0,
                                dataset="mbpp", split="train", options={})
  assert sets.fill_prompts(part) is None


@pytest.mark.parametrize("source, message", [
    ("gsmk8", r"did you mean gsm8k\? By name there are aime24, .*, taco; others are written"),
    ("Deep-Scale", "did you mean deepscaler"), ("NuminaMath-1.5", "did you mean numina_math"),
    ("c4", r"data set\. By name there are aime24")])
def test_a_near_miss(source, message):
  for key, call in (("prompts.source", lambda: named(source)),
                    ("rows", lambda: rlx.train("papers/grpo", rows=source)),
                    ("rows", lambda: cli.parse("train", "papers/grpo", f"rows={source}"))):
    with pytest.raises(ValueError, match=f"^{key}='{re.escape(source)}': no such .*{message}") as e:
      call()
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("source", ["chain", "generated", "jsonl", "rows.txt", "gsm8k.jsonl",
                                    "hf:openai/gsm8k", "gym:chain_sum", "3", "data/gsm8k", 3, None])
def test_another_source_is_no_name(source):
  assert sets.find_set(source) is None


def answers_right(completions, answer): return [float(a in c) for c, a in zip(completions, answer)]


def test_rows_of_a_set_with_a_reward_or_other_rows(tmp_path, caplog):
  prepare = lambda *args, **more: own_data.prepare(
      load.load_config("quickstart:smoke"), *args, None, None, str(tmp_path), {}, **more)[0]
  c = prepare("math", None, answers_right)
  assert c.prompts.source == f"jsonl:{tmp_path}/rows.jsonl"
  assert [p.answer for p in build_prompts.read_prompts(c, "test")] == [
      r"\frac{1}{2}", r"\text{even}"]
  mine = [dict(prompt=f"{i}+1=", answer=i + 1, verifier="math_answer.final") for i in range(3)]
  c = prepare(mine, "eurus_2_rl", None)
  first, *_ = build_prompts.read_prompts(c, "test")
  assert first.verifier == "math_answer.boxed" and first.messages
  assert len(list(build_prompts.read_prompts(c, "train"))) == 3
  c = prepare("gsm8k", mine, None)
  assert [p.answer for p in build_prompts.read_prompts(c, "train")] == ["8", "1200"]
  assert next(build_prompts.read_prompts(c, "test")).answer == "1"
  with pytest.raises(ValueError, match="columns=.*: rows='gsm8k' names a set and its columns"):
    prepare("gsm8k", None, None, columns=dict(prompt="question"))
  assert "prompts: dropped 1 of 3 rows of hf:openai/gsm8k:main" in caplog.text


@pytest.mark.parametrize("train, held_out", [
    ("hf:openai/gsm8k:main", None),
    ("hf:openai/gsm8k:main:train[512:]", "hf:openai/gsm8k:main:test"),
    ("hf:open-r1/DAPO-Math-17k-Processed:en", None),
    ("hf:agentica-org/DeepScaleR-Preview-Dataset::train[:9]", None)])
def test_rows_of_the_hub_with_their_splits(train, held_out, hub, tmp_path):
  """Those that the set has, or the one that the source names."""
  columns = dict(prompt="question") if "gsm8k" in train else {} if "DAPO" in train else dict(
      prompt="problem")
  own_data.prepare(load.load_config("quickstart:smoke"), train, held_out,
                   lambda completions: [0.0 for _ in completions], None, None, str(tmp_path), {},
                   columns=columns)
  splits = {split for _, split, _ in hub}
  assert splits == ({"train[512:]", "test"} if held_out else {"train", "test"} if "main" in train
                    else {"train[:9]"} if "::" in train else {"train"})
  assert (tmp_path / "rows.jsonl").read_text().count('"split": "test"') >= 1


@pytest.mark.parametrize("source, split, read", [
    ("hf:o/n:c:train", "test", r"without :train; prompts.split and eval.split name the splits"),
    ("hf:BAAI/TACO/ALL/train.parquet", "train", r"needs \{split\} in the path"),
    ("hf:o/none", "train", "Dataset 'o/none' doesn't exist"),
    ("hf:BAAI/TACO/ALL/{split}-*.parquet", "train[:9]",
     {"train": "hf://datasets/BAAI/TACO/ALL/train-*.parquet"})])
def test_addresses_of_the_hub(source, split, read, hub):
  if isinstance(read, dict):
    io_rows.rows(source, split)
    assert hub == [(("parquet", None), split, dict(data_files=read))]
    io_rows.rows(source, split, revision="v1")
    assert hub[1][2]["data_files"]["train"].startswith("hf://datasets/BAAI/TACO@v1/ALL/")
    return
  with pytest.raises(ValueError, match=f"^prompts.source='{re.escape(source)}': {read}"):
    io_rows.rows(source, split)


def test_prompts_of_a_set_that_cannot_be_judged_are_dropped(monkeypatch, caplog):
  """As is said by the verifier, before a run; a user's own are refused."""
  rows = [dict(problem=f"{i}?", answer=a) for i, a in enumerate(
      ["1", "All such functions are constant, which we now prove in two steps.", "2"])]
  code = [dict(text=f"{i}?", code="", test_setup_code="", test_list=tests, task_id=i)
          for i, tests in enumerate([["assert f(1) == 1", "assert f(2) == 4"], ["assert f(1)"],
                                     ["assert True"]])]
  monkeypatch.setattr(sys.modules["datasets"], "load_dataset", lambda name, *_, split, **__: (
      [dict(row) for row in (code if "mbpp" in name else rows)] if "[:" not in split else []))
  def train_of(c):
    texts = build_prompts.texts_of(c, tokenizer.characters(
        "".join(map(chr, range(32, 127))) + "\n"))
    c.prompts.max_tokens = 500
    return build_prompts.load_prompts(c, texts, ("train",), judged=True)[0]
  c = named("big_math")
  kept = train_of(c)
  assert [p.answer for p in kept] == ["1", "2"]
  assert ("prompts: dropped 1 of 3 prompts of hf:SynthLabsAI/Big-Math-RL-Verified, split "
          "train[512:]: they cannot be judged, first 'big_math/train[512:]/1': its") in caplog.text
  build_verifiers.check_prompts(c, kept)
  assert [p.id for p in train_of(named("mbpp"))] == ["mbpp/train/0"]
  c = named("mbpp")
  with c.unlocked(): c.verifier.allow_constant = True
  assert [p.id for p in train_of(c)] == ["mbpp/train/0", "mbpp/train/1"]
  own = [records.Prompt("a", "?", row["answer"], "math_answer.boxed") for row in rows[1:2]]
  with pytest.raises(ValueError, match="prompt 'a': its answer is 'All such"):
    build_verifiers.check_prompts(c, own)
  rows[:] = rows[1:2]
  with pytest.raises(ValueError, match="all 1 prompts of hf:.* cannot be judged"):
    train_of(named("big_math"))
  rows[:] = [dict(problem="?", answer=None)] * 2
  with pytest.raises(ValueError, match="all 2 rows of hf:.*, split train.* 2 without an answer"):
    train_of(named("big_math"))


def test_a_run_from_a_name_to_its_record(tmp_path, tiny_files, monkeypatch):
  def load_dataset(*_, split, **__):
    return [dict(question=f"{split[1]}{i:02d}".replace("r", "a"), answer="#### 3")
            for i in range(32)]
  monkeypatch.setattr(sys.modules["datasets"], "load_dataset", load_dataset)
  c = tiny.config(tiny_files, steps=1)
  c.prompts.source, c.prompts.dataset = "GSM8K", "chain"
  of_sft = c.copy_and_resolve_references()
  rl.train(c, tmp_path)
  prompts = json.loads((tmp_path / "config.json").read_text())["prompts"]
  assert (prompts["source"], prompts["dataset"]) == ("hf:openai/gsm8k:main", "gsm8k")
  assert prompts["columns"] == dict(verifier="format.ascii_share") and prompts["split"] == "train"
  of_sft.sft.target.name, of_sft.sft.batch = "gsm8k.demonstration", 32
  assert len(build_sft.build_sft(of_sft).prompts) == 32
