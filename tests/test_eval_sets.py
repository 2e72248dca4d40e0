"""Evaluation with its own decoding and length, and further sets of held-out prompts."""
import dataclasses
import json

import jax
import numpy as np
import pytest

from rlx import build, cli
from rlx.build import (
    keys, models as build_models, own_data, prompts as build_prompts, run as run_lib, sets)
from rlx.io import metrics as io_metrics, weights
from rlx.loops import rl
from rlx.rollouts import sampler
from rlx.tools import data, evaluate
from tests import test_resume, tiny

RUN = dict(steps=3, rollouts__per_prompt=2, rollouts__max_draws=2, learner__minibatches=1,
           eval__every=1, eval__prompts=8, eval__batch=4, eval__samples=2, checkpoint__every=1,
           checkpoint__max_to_keep=5)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  """A model, questions a.., b.., and c00 .. c04 in other.jsonl, of which a03 is a training one."""
  folder = tmp_path_factory.mktemp("sets")
  tiny.write(folder, train=20)
  (folder / "other.jsonl").write_text("".join(
      json.dumps(dict(question=q, answer="7", split="dev")) + "\n"
      for q in ("c00", "c01", "a03", "c02", "c03", "c04")))
  return folder


def config_of(files, own=None, **changes):
  return tiny.config(files, **RUN | changes, eval__sets=own or {})


OWN = dict(hot=dict(decoding=dict(temperature=50.0)),
           other=dict(split="dev", verifier=dict(name="format.boxed"), max_tokens=2,
                       prompts=4, samples=3))


@pytest.fixture(scope="module")
def sets_of(files): return OWN | dict(other=OWN["other"] | dict(source=str(files / "other.jsonl")))


@pytest.fixture(scope="module")
def plain(files, tmp_path_factory):
  """A run without named sets, on the questions that one with them trains on."""
  folder = tmp_path_factory.mktemp("plain")
  c = config_of(files)
  run = tiny.build_run(c)
  with tiny.building(run): rl.train(c, folder)
  return folder


def without_sets(lines):
  return [{k: x for k, x in line.items() if not k.endswith(("/hot", "/other"))} for line in lines]


@pytest.mark.parametrize("changes, tokens, same", [
    (dict(eval__decoding=dict(temperature=30.0)), 4, ["greedy"]),
    (dict(eval__decoding=dict(top_k=1)), 4, ["greedy"]),
    (dict(eval__max_tokens=2), 2, []), (dict(eval__max_tokens=7), 7, [])])
def test_evaluation_has_its_own_decoding_and_length(files, plain, tmp_path, changes, tokens, same):
  """Training does not see them, bit for bit; without temperature sampled is greedy."""
  c, seen = config_of(files), []
  for key, x in changes.items():
    if isinstance(x, dict): c.eval.decoding.update(x)
    else: c.eval.max_tokens = x
  run = tiny.build_run(c)
  rewards = run.outcomes.rewards
  with tiny.building(run), pytest.MonkeyPatch.context() as patch:
    patch.setattr(type(run.outcomes), "__call__", lambda self, prompts, rollouts: (
        seen.append(rollouts), np.clip(rewards(prompts, rollouts), 0, 1))[1])
    rl.train(c, tmp_path)
  mine, other = tiny.lines(tmp_path), tiny.lines(plain)
  is_eval = lambda key: key.startswith("eval/")
  drop = lambda lines: [{k: x for k, x in line.items() if not is_eval(k)} for line in lines]
  assert drop(mine) == drop(other)
  for name in ("greedy", "sampled"):
    assert ([l[f"eval/{name}"] for l in mine] == [l[f"eval/{name}"] for l in other]) == (
        name in same), name
  assert seen and {r.sampler_logps_BT.shape[1] for r in seen} == {tokens}
  if "top_k" in changes.get("eval__decoding", {}):
    assert [l["eval/greedy"] for l in mine] == pytest.approx([l["eval/sampled"] for l in mine])


def test_the_sampler_of_training_is_compiled_once(files):
  """What evaluation does is no part of its program, and equal sets share theirs."""
  made = []
  make = sampler.make
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(sampler, "make", lambda *a, **k: made.append(k) or make(*a, **k))
    c = config_of(files, dict(same={}, other=dict(
        source=str(files / "other.jsonl"), split="dev", columns=dict(verifier="format.boxed"))))
    c.eval.decoding.temperature, c.eval.max_tokens = 0.5, 2
    run = build.build(c)
    state = run.init()
    run.sampling.train(state.policy, run.prompts.take(12), jax.random.key(0))
    before = sampler._advance._cache_size()
    rl.measure_accuracy(run, state, "curve", 1)
    per_evaluation = sampler._advance._cache_size() - before
    run.sampling.train(state.policy, run.prompts.take(12), jax.random.key(1))
  assert per_evaluation <= 2 and sampler._advance._cache_size() == before + per_evaluation
  assert [(k["max_tokens"], k["temperature"]) for k in made] == [
      (4, 1.0), (2, 0.0), (2, 0.5), *[(2, 0.0)] * 2, *[(2, 0.5)] * 2]


def test_named_sets_are_measured_and_resumed(files, plain, sets_of, tmp_path, capsys):
  """The main set and training are those of a run without named sets, of the same questions."""
  c = config_of(files, sets_of)
  run = tiny.build_run(c)
  start = run.prompts.state()
  assert [len(x) for x in run.eval_sets.values()] == [8, 4]
  assert {p.verifier for p in run.eval_sets["other"]} == {"format.boxed"}
  assert all(p.id.startswith("hot/") and p.source == "hot" for p in run.eval_sets["hot"])
  assert "a03" not in {p.text for p in run.prompts.first(19)}  # Held out as another set.
  with tiny.building(run): rl.train(c, tmp_path / "whole")
  out, summary = capsys.readouterr().out, io_metrics.summary(tmp_path / "whole")
  for name, n in (("hot", 8), ("other", 4)):
    for kind in ("greedy", "sampled"):
      assert f"{kind}/{name}" in out
      assert summary["after"][f"{kind}/{name}"]["prompts"] == n
  lines = tiny.lines(tmp_path / "whole")
  assert all(f"eval/sampled/{name}" in line for line in lines for name in OWN)
  assert [l["eval/greedy/hot"] for l in lines] == [l["eval/greedy"] for l in lines]
  assert [l["eval/sampled/hot"] for l in lines] != [l["eval/sampled"] for l in lines]
  for k in (1, 2):
    killed = tiny.killed_after(tmp_path / "whole", k, tmp_path / f"killed{k}")
    run.prompts.restore(start)
    with tiny.building(run): rl.train(c, killed)
    test_resume.assert_same(killed, tmp_path / "whole")
  c.eval.sets = dict(c.eval.sets.to_dict(), new=dict(split="test"))
  c.steps = 4
  with pytest.raises(ValueError, match="^eval.sets.new.split=.* has checkpoints of a run with No"):
    rl.train(c, tmp_path / "whole")


def test_sets_without_common_texts_leave_the_run_as_it_is(files, plain, tmp_path):
  c = config_of(files, dict(hot=OWN["hot"]))
  run = tiny.build_run(c)
  with tiny.building(run): rl.train(c, tmp_path)
  assert without_sets(tiny.lines(tmp_path)) == tiny.lines(plain)
  tiny.assert_equal_trees(*(tiny.restored(run, w)[0] for w in (tmp_path, plain)))


def test_evaluate_and_data_show_the_sets(files, sets_of, tmp_path, capsys):
  c = config_of(files, sets_of)
  metrics = evaluate.evaluate(c, tmp_path)
  assert [metrics[f"{kind}/{name}"]["prompts"] for kind in ("greedy", "sampled")
          for name in ("hot", "other")] == [8, 4] * 2
  assert "sampled/other" in capsys.readouterr().out
  figures = data.main(c)
  other = figures["eval.sets.other"]
  assert other["used"] == 4 and other["source"].endswith("other.jsonl, split dev")
  assert other["dropped"]["more than eval.sets.other.prompts=4"]["count"] == 2
  assert figures["eval"]["used"] == figures["eval.sets.hot"]["used"] == 8
  assert figures["train"]["dropped"]["also in the evaluation split"]["count"] == 1


def test_a_set_has_the_keys_of_prompts_and_eval(files):
  c = config_of(files, eval__samples=3)
  c.eval.decoding.update(temperature=0.6, top_p=0.9)
  c.eval.max_tokens, c.prompts.template = 3, dict(name="chat", system="s")
  c.eval.sets = dict(
      a=dict(decoding=dict(top_p=1.0, top_k=5), samples=8), gsm=dict(source="GSM8K"),
      part=dict(source="math", split="train[:5]", template=dict(name="plain"), max_tokens=9))
  sets.fill(c)
  keys.check(c)
  a, gsm, part = build_prompts.list_eval_sets(c).values()
  assert (a.prompts.source, a.eval.split, a.eval.samples) == (c.prompts.source, "test", 8)
  assert a.prompts.columns == c.prompts.columns and not gsm.prompts.columns
  assert (gsm.prompts.source, gsm.prompts.dataset, gsm.eval.split) == (
      "hf:openai/gsm8k:main", "gsm8k", "test")
  assert part.eval.split == "train[:5]" and part.prompts.template.to_dict() == dict(name="plain")
  rules = run_lib.sampling_options(c, run_lib.sizes_of(c)).evaluation
  assert {name: (r.max_tokens, r.samples) for name, r in rules.items()} == {
      "": (3, 3), "a": (3, 8), "gsm": (3, 3), "part": (9, 3)}
  assert rules[""].decoding == rules["gsm"].decoding == dict(
      temperature=0.6, top_k=0, top_p=0.9, min_p=0.0)
  assert rules["a"].decoding == dict(temperature=0.6, top_k=5, top_p=1.0, min_p=0.0)
  assert build_prompts.list_limits(c) == {
      "rollouts.max_tokens": 4, "eval.max_tokens": 3, "eval.sets.a.max_tokens": 3,
      "eval.sets.gsm.max_tokens": 3, "eval.sets.part.max_tokens": 9}
  plain = run_lib.sampling_options(config_of(files), run_lib.sizes_of(c)).evaluation[""]
  assert plain.decoding == c.rollouts.decoding.to_dict() and plain.max_tokens == 4


def test_sets_on_the_command_line(files, monkeypatch, tmp_path, command):
  made = []
  monkeypatch.setattr(rl, "train", lambda config, workdir: made.append(config))
  cli.parse("train", "quickstart:smoke", f"workdir={tmp_path}", "eval.decoding.temperature=1",
            "eval.max_tokens=9", "eval.sets.a.decoding.top_p=0.5", "eval.sets.a.options.n_max=3",
            "eval.sets.b.source=x.jsonl", "eval.sets.b.columns.question=q",
            "eval.sets.b.verifier.name=format.boxed", "eval.sets.b.prompts=5")[0]()
  assert made[0].eval.sets.to_dict() == dict(
      a=dict(decoding=dict(top_p=0.5), options=dict(n_max=3)),
      b=dict(source="x.jsonl", columns=dict(question="q"), verifier=dict(name="format.boxed"),
             prompts=5))
  assert (made[0].eval.decoding.temperature, made[0].eval.max_tokens) == (1.0, 9)
  error = command("train", "quickstart:smoke", "eval.sets.a=x").stderr
  assert error.startswith("rlx: eval.sets.a='x': a section of keys, such as eval.sets.a.source.")


@pytest.mark.parametrize("changes, message", [
    ({"eval.decoding.temperature": 0.0}, "eval.decoding.temperature=0.0: a number from 0.001 to"),
    ({"eval.decoding.top_p": 1.5}, "eval.decoding.top_p=1.5: a number from 1e-06 to 1, or None."),
    ({"eval.decoding.top_k": -1}, "eval.decoding.top_k=-1: a whole number from 0 to"),
    ({"eval.decoding.top_q": 1}, "eval.decoding.top_q: no such key; did you mean eval.decoding."),
    ({"eval.max_tokens": 0}, "eval.max_tokens=0: a whole number from 1 to"),
    ({"eval.sets.a.decoding.min_p": 2}, "eval.sets.a.decoding.min_p=2: a number from 0 to"),
    ({"eval.sets.a.weight": 1.0}, "eval.sets.a.weight: no such key; "),
    ({"eval.sets.a.verifier.name": "format.box"}, "eval.sets.a.verifier.name='format.box': "),
    ({"eval.sets.a.source": "gsm9k"}, "eval.sets.a.source='gsm9k': no such data set; did you mean"),
    ({"eval.sets.a.split": "x"}, "eval.sets.a: prompts.source='jsonl:"),
    ({"eval.sets.a.template.name": "boxd"}, "eval.sets.a: prompts.template.name='boxd': "),
    ({"eval.sets.a.columns.x": "y"}, "eval.sets.a: prompts.columns.x: datasets.jsonl."),
    ({"eval.sets.if.split": "x"}, "eval.sets.if: another name for the set, of letters"),
    ({"prompts.mixture.a.split": "train", "eval.sets.a.source": "x.jsonl"},
     "eval.sets.a: another name; prompts.mixture has a source a."),
    ({"prompts.mixture.a.split": "train", "eval.sets.b.split": "test"},
     "eval.sets.b.source is missing; with prompts.mixture each set has its own."),
], ids=str)
def test_refusals_are_one_line(files, changes, message):
  c = config_of(files)
  with pytest.raises(ValueError) as e:
    for key, x in changes.items():
      *sections, name = key.split(".")
      at = c
      with c.unlocked(), c.ignore_type():
        for part in sections:
          if part not in at: at[part] = {}
          at = at[part]
        at._fields[name] = x
    build.build(c)
  assert str(e.value).startswith(message) and "\n" not in str(e.value)


@pytest.mark.parametrize("key", ["eval.max_tokens", "eval.sets.a.max_tokens"])
def test_a_completion_is_as_long_as_the_model_allows(files, key, monkeypatch):
  load = weights.load
  monkeypatch.setattr(weights, "load", lambda *a, **k: (
      dataclasses.replace(load(*a, **k)[0], context=12), *load(*a, **k)[1:]))
  for n in (8, 9):
    c = config_of(files)
    own_data._set(c, key, n)
    if n == 8: assert build_models.load_model(c, c.model.path)[0].length == 12
  with pytest.raises(ValueError, match=rf"^prompts.max_tokens=4 \+ {key}=9: .* at most 12 posit"):
    build_models.load_model(c, c.model.path)
