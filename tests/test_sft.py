import json
import shutil

import numpy as np
import pytest

from configs import sft_chain
from rlx.build import models as build_models, prompts as build_prompts, sft as build_sft
from rlx.io import metrics as io_metrics, tokenizer, weights
from rlx.loops import sft
from tests import tiny


def config_of(steps, lr, **model):
  c = sft_chain.get_config("smoke")
  c.model.update(model)
  c.sft.steps, c.sft.batch, c.checkpoint.every = steps, 16, 10
  c.sft.fresh.update(d_model=16, n_layers=1, n_heads=2, n_kv_heads=1, head_dim=8, d_ff=32)
  c.sft.optimizer.update(lr=lr, warmup_steps=0, schedule="constant", total_steps=0)
  c.prompts.options.size = c.eval.prompts = 64
  return c


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
  """The workdir of a run of 30 steps."""
  workdir = tmp_path_factory.mktemp("sft") / "whole"
  sft.train(config_of(30, 3e-2), workdir)
  return workdir


def test_learns_and_exports_a_model_that_loads(whole):
  losses = [l["sft/loss"] for l in io_metrics.read(whole)]
  assert losses[0] == pytest.approx(np.log(20), abs=.2)  # 18 characters, pad, eos.
  assert losses[-1] < losses[0] - 0.8
  config, _, tokens = weights.load(whole / "model")
  assert config.d_model == 16
  text = "4M7m2M5="
  assert tokens.decode(tokens.encode(text)) == text


def test_a_killed_run_resumes_to_the_same_parameters(whole, tmp_path):
  workdir = tiny.killed_after(whole, 20, tmp_path / "killed")
  shutil.rmtree(workdir / "model")
  assert sft.train(config_of(30, 3e-2), workdir)["steps"] == 30
  assert tiny.lines(workdir) == tiny.lines(whole)
  (_, params, _), (_, expected, _) = (weights.load(folder / "model") for folder in (workdir, whole))
  tiny.assert_equal_trees(params, expected)


def test_what_a_model_came_with_is_kept(whole, tmp_path):
  """Its family, all that config.json and generation_config.json say, and the chat template."""
  shutil.copytree(whole / "model", tmp_path / "start")
  told, chosen = tiny.say_more(tmp_path / "start")
  sft.train(config_of(1, 1e-3, path=str(tmp_path / "start")), tmp_path / "run")
  read = lambda name: json.loads((tmp_path / "run/model" / name).read_text())
  assert read("config.json") == told and read("generation_config.json") == chosen
  assert tokenizer.load(tmp_path / "run/model").hf.chat_template == tokenizer.load(
      tmp_path / "start").hf.chat_template is not None
  weights.load(tmp_path / "run/model")


def test_parameters_in_bfloat16_learn_from_updates_below_their_precision(tmp_path):
  """20 of 1e-5, of weights of about 0.2 in steps of 1e-3."""
  c = config_of(20, 1e-5, param_dtype="bfloat16", param_update="stochastic")
  before = np.asarray(build_models.load_sft_model(c)[1]["layers"]["mlp"]["up_LDF"])
  sft.train(c, tmp_path)
  assert io_metrics.read(tmp_path)[-1]["sft/lr"] == pytest.approx(1e-5)
  config, params, _ = weights.load(tmp_path / "model", dtype="bfloat16")
  assert config.param_dtype == before.dtype.name == "bfloat16"
  assert 0.05 < np.mean(params["layers"]["mlp"]["up_LDF"] != before) < 0.9


def test_batch_of_pads_and_ends_with_eos():
  c = sft_chain.get_config()
  tokens = tokenizer.characters("0123456789Mm+-*=;#")
  r = build_prompts.texts_of(c, tokens).examples([("4M7=", "7#7"), ("1m2M3=", "1;3#3")])
  assert r.prompt_len_B.tolist() == [4, 6]
  assert r.completion_len_B.tolist() == [4, 6]
  assert tokens.decode(r.tokens_BS[1].tolist()) == "1m2M3=1;3#3"
  assert r.completions_BT[0, 3] == tokens.eos_ids[0]


@pytest.mark.parametrize("changes", [dict(x=1), dict(d_ff=None)], ids=str)
def test_a_random_start_has_all_sizes_and_no_others(changes):
  c = sft_chain.get_config("smoke")
  c.sft.fresh = {k: v for k, v in (c.sft.fresh.to_dict() | changes).items() if v is not None}
  with pytest.raises(ValueError, match=r"^sft.fresh has \[.*needed are \['alphabet', 'd_ff'"):
    build_models.load_sft_model(c)


def test_refuses_a_batch_that_does_not_divide(tmp_path):
  c = sft_chain.get_config("smoke")
  c.sft.microbatches, c.mesh.fsdp = 2, 8
  with pytest.raises(ValueError, match="sft.batch=8: must be a multiple of sft.microbatches="
                                       "2 x mesh.data x mesh.fsdp = 8"):
    sft.train(c, tmp_path)


def test_answers_of_one_question_are_examples_each_and_a_batch_is_no_larger(tmp_path):
  """Several right completions of one question, as rejection sampling gives."""
  rows = [dict(question="1M2=", answer=str(i)) for i in (2, 3, 3)]
  (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
  (tmp_path / "test.jsonl").write_text(json.dumps(dict(question="8M8=", answer="8")) + "\n")
  c = config_of(1, 1e-3)
  c.prompts.source, c.prompts.dataset = f"{tmp_path}/{{split}}.jsonl", "jsonl"
  c.prompts.options, c.prompts.columns = {}, {}
  c.sft.target, c.sft.batch = dict(name="jsonl.demonstration"), 2
  assert [p.answer for p in build_sft.build_sft(c).prompts] == ["2", "3"]
  c.sft.batch = 4
  with pytest.raises(ValueError, match="sft.batch=4: at most 2, the number of examples of"):
    build_sft.build_sft(c)


def test_dialogues_and_pairs_are_learned_together(tmp_path, monkeypatch):
  """Without a column for the answer the replies are learned, else the answer. Equal openings are no
  duplicates, and each dialogue is tried before anything compiles."""
  def say(*contents):
    return [dict(role=("user", "assistant")[i % 2], content=x) for i, x in enumerate(contents)]
  rows = [dict(m=say("1M", "4", "5M", str(i))) for i in range(6)] + [dict(m="7M7=", answer="7")]
  (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
  (tmp_path / "test.jsonl").write_text(json.dumps(dict(m="8M8=", answer="8")) + "\n")
  c = config_of(1, 1e-3)
  c.prompts.source, c.prompts.dataset = f"{tmp_path}/{{split}}.jsonl", "jsonl"
  c.prompts.options, c.prompts.columns = {}, dict(question="m")
  c.sft.target, c.sft.batch = dict(name="jsonl.demonstration"), 7
  read = tokenizer.characters
  def with_template(alphabet):
    tokens = read(alphabet)
    tokens.hf.chat_template = TEMPLATE
    return tokens
  monkeypatch.setattr(tokenizer, "characters", with_template)
  TEMPLATE = "{% for m in messages %}{{ m.content }}{{ ';' if m.role == 'assistant' }}{% endfor %}"
  run = build_sft.build_sft(c)
  batch = run.batch(0)
  tokens = run.tokenizer
  learned = sorted(tokens.hf.decode(ids[mask]) for ids, mask in zip(
      np.asarray(batch.completions_BT), np.asarray(batch.action_BT)))
  assert learned == sorted([f"4<eos>{i}<eos>" for i in range(6)] + ["7<eos>"])
  TEMPLATE = "{% for m in messages %}{{ m.content if loop.last else '' }}{% endfor %}"
  with pytest.raises(ValueError, match="^prompt 'jsonl/train/0': the chat template renders"):
    build_sft.build_sft(c)
