"""Models in and out: the same bits, the same logits, little memory, and nothing half."""
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

from configs import base
from rlx.io import adapters as adapters_io, checkpoint, hf, hub, shards, tables, tokenizer, weights
from rlx.learner import sharding
from rlx.loops import record
from rlx.models import lora, transformer, value
from rlx.tools import convert
from tests.io import test_damaged

HERE = pathlib.Path(__file__).parent
FIXTURES = HERE / "models" / "fixtures"
FAMILIES = ["llama", "smollm2", "qwen2", "qwen3", "mistral", "phi3"]
NESTED = ["gemma3", "phi3_longrope", "qwen3_yarn"]  # config.json with objects of rotary parameters.
TOKENS = np.arange(12)[None] * 5 % 61
RANK, ALPHA = 3, 7.5
GENERATION = "generation_config.json"


def bits(path):
  """{name: (dtype, shape, bytes)} of a Hugging Face directory."""
  return {name: (np.dtype(x.dtype).name, x.shape, x[:].tobytes())
          for name, x in shards.tensors(path)[1].items()}


def said(folder, name="config.json"):
  return json.loads((folder / name).read_text())


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
  """Family -> its fixture with a tokenizer of as many tokens as it has rows."""
  folder = tmp_path_factory.mktemp("bases")
  @functools.cache
  def base(family):
    test_damaged.write_model(folder / family, family)
    return folder / family
  return base


def run_of(workdir, start, scorers=None, **changes):
  """A workdir as a run leaves it, of random models; {name: parameters}.

  Args:
    scorers: {name: path} of those that learned.
  """
  c = base.get_config()
  c.model.path, c.seed = str(start), 3
  for key, changed in changes.items():
    section, name = key.split("__")
    c[section][name] = changed
  c.scorers = {name: dict(path=str(path)) for name, path in (scorers or {}).items()}
  record.record(c, workdir)
  config, params = hf.load(hub.folder(start), c.model.param_dtype)
  noise = np.random.default_rng(0)
  def trained(tree):
    return jax.tree.map(lambda x: x + (0.1 * noise.normal(size=x.shape)).astype(x.dtype), tree)
  if c.lora.rank:
    params = lora.init(params, jax.random.key(0), rank=c.lora.rank, targets=c.lora.targets)
  models = {name: trained(params) for name in ("policy", "prm")}
  if learned := {f"scorers.{name}": trained(value.init(*hf.load(path, c.model.param_dtype)))
                 for name, path in (scorers or {}).items() if path != "a/b"}:
    models["scorers"] = learned
  models = sharding.place(models, sharding.make_mesh(fsdp=2))
  checkpoints = checkpoint.Checkpoints(workdir)
  others = dict(step=4, policy_opt=dict(mu=params, count=jax.numpy.int32(4)), value=None)
  checkpoints.save(4, models | others, {})
  checkpoints.close()
  return models


def logits_of(config, params):
  """Of TOKENS; float32, adapters as the run reads them."""
  columns = np.arange(TOKENS.shape[1])[None]
  @functools.partial(jax.jit, static_argnums=1)
  def forward(params, config):
    return transformer.logits(params, config, transformer.hidden(
        params, config, TOKENS, columns, columns >= 0))
  return np.asarray(forward(params, config))


def theirs(model):
  import torch
  with torch.no_grad(): return model(torch.tensor(TOKENS)).logits.float().numpy()


# The same bits.


@pytest.mark.parametrize("family, dtype", [
    *itertools.product(FAMILIES, ["float32", "bfloat16"]), *((x, "float32") for x in NESTED)])
def test_there_and_back_is_the_same_bits(family, dtype, tmp_path):
  """Hugging Face -> shards -> rlx -> Hugging Face: of its own family, fused ones fused."""
  one, two, three = (tmp_path / name for name in ("shards", "rlx", "back"))
  convert.convert(FIXTURES / family, one, dtype=dtype, shard_gb=1e-5)
  convert.convert(one, two, format="rlx")
  convert.convert(two, three)
  assert len(list(one.glob("*.safetensors"))) > 2
  assert bits(one) == bits(three)
  if dtype == "float32": assert bits(one) == bits(FIXTURES / family)
  assert said(three) == said(FIXTURES / family) | {"dtype": dtype}
  expected = hf.load(FIXTURES / family, dtype)
  config, params = test_damaged.read_model(two, dtype)
  assert config == expected[0]
  jax.tree.map(np.testing.assert_array_equal, params, expected[1])


def test_gguf(tmp_path):
  """Equals what the file gives; the tokenizer and the context length come along."""
  test_damaged.write_gguf(tmp_path)
  expected = test_damaged.read_model(tmp_path / "m.gguf")
  for kind in ("hf", "rlx"):
    convert.convert(tmp_path / "m.gguf", tmp_path / kind, format=kind)
    config, params, tokens = weights.load(tmp_path / kind)
    assert config == expected[0]
    jax.tree.map(np.testing.assert_array_equal, params, expected[1])
    assert tokens.vocabulary == tokenizer.load(tmp_path / "m.gguf").vocabulary
    assert said(tmp_path / kind)["max_position_embeddings"] == 77


def test_files_of_the_tokenizer_are_copied(bases, tmp_path):
  """Into a folder that exists and is empty, too."""
  (tmp_path / "m").mkdir()
  (bases("llama") / "chat_template.jinja").write_text("{{ messages }}")
  convert.convert(bases("llama"), tmp_path / "m", format="rlx")
  for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json",
               "chat_template.jinja"):
    assert (tmp_path / "m" / file).read_bytes() == (bases("llama") / file).read_bytes()
  (bases("llama") / "chat_template.jinja").unlink()
  assert weights.load(tmp_path / "m")[2].vocabulary == tokenizer.load(bases("llama")).vocabulary


# Runs.


@pytest.mark.parametrize("name", ["policy", "prm"])
def test_a_run(bases, tmp_path, name):
  """The checkpoint's bits; the base's config.json and family; what ended its completions."""
  start = bases("mistral")
  models = run_of(tmp_path / "run", start)
  convert.convert(tmp_path / "run", tmp_path / "m", model=name)
  config, params, tokens = weights.load(tmp_path / "m")
  jax.tree.map(np.testing.assert_array_equal, params, models[name])
  assert config == hf.load(start)[0] and tokens.eos_ids == tokenizer.load(start).eos_ids
  assert said(tmp_path / "m") == said(start) and said(start)["model_type"] == "mistral"
  assert said(tmp_path / "m", GENERATION)["eos_token_id"] == list(tokens.eos_ids)
  assert np.abs(logits_of(config, models["policy"]) - logits_of(config, models["prm"])).max() > 1


def test_a_prm_of_another_size(bases, tmp_path):
  """prm.path says what it is."""
  run_of(tmp_path / "run", bases("llama"), prm__path=str(bases("qwen2")))
  with pytest.raises(ValueError, match=r"attn.k_LDKH|attn.k_bias|head.w_DV|q_bias"):
    convert.convert(tmp_path / "run", tmp_path / "m", model="prm")  # It has the policy's shapes.
  convert.convert(tmp_path / "run", tmp_path / "m")


def test_a_prm_with_a_head_is_refused(bases, tmp_path):
  run_of(tmp_path / "run", bases("llama"))
  config, params = hf.load(bases("llama"))
  checkpoints = checkpoint.Checkpoints(tmp_path / "run")
  checkpoints.save(5, dict(policy=params, prm=value.init(config, params)), {})
  checkpoints.close()
  with pytest.raises(ValueError, match="model='prm': it has a head for scores"):
    convert.convert(tmp_path / "run", tmp_path / "m", model="prm")
  convert.convert(tmp_path / "run", tmp_path / "m")
  jax.tree.map(np.testing.assert_array_equal, hf.load(tmp_path / "m")[1], params)


@pytest.mark.parametrize("name, changes", [("mine", {}), ("scorers.prm", dict(lora__rank=RANK))])
def test_a_scorer_that_learned_gives_the_same_scores(bases, tmp_path, name, changes):
  """Of a language model with a head of its own for tokens, and of what was written of it, which
  has a head for scores; beside adapters, which it has none of."""
  start, short = bases("qwen2"), name.removeprefix("scorers.")
  for i, kind in enumerate(("hf", "rlx")):
    models = run_of(tmp_path / f"run{i}", bases("qwen2"), {short: start}, **changes)
    start = tmp_path / kind
    convert.convert(tmp_path / f"run{i}", start, model=name, format=kind)
    config, params, tokens = weights.load(start)
    trained = jax.device_get(models["scorers"][f"scorers.{short}"])
    columns = np.arange(TOKENS.shape[1])[None]
    scores = [np.asarray(value.values(p, config, TOKENS, columns, columns >= 0, completion_width=4))
              for p in (params, trained)]
    assert config.has_head and np.ptp(scores[0]) > 1e-3
    np.testing.assert_array_equal(*scores)
    assert tokens.vocabulary == tokenizer.load(bases("qwen2")).vocabulary
  card = (tmp_path / "hf" / "README.md").read_text()
  assert "The scorer after 4 steps" in card and "scorers.mine.path=hf" in card
  assert 'pipeline_tag: "text-classification"' in card


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", ["qwen2", "phi3"])
def test_merged_adapters(bases, tmp_path, family, dtype):
  """The logits of base and adapters, which are far from the base's; both formats alike."""
  start = bases(family)
  models = run_of(tmp_path / "run", start, lora__rank=RANK, lora__alpha=ALPHA,
                  model__param_dtype=dtype)
  convert.convert(tmp_path / "run", tmp_path / "m")
  convert.convert(tmp_path / "run", tmp_path / "rlx", format="rlx")
  config, whole = hf.load(start, dtype)
  expected = jax.jit(lora.merge)(_joined(whole, models["policy"]), ALPHA / RANK)
  converted_config, converted = hf.load(tmp_path / "m", dtype)
  assert converted_config == config
  _, stacked = test_damaged.read_model(tmp_path / "rlx", dtype)
  jax.tree.map(np.testing.assert_array_equal, stacked, converted)
  tolerance = dict(float32=1e-6, bfloat16=2**-7)[dtype]
  jax.tree.map(lambda a, b: np.testing.assert_allclose(
      np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=tolerance, atol=tolerance),
               converted, jax.device_get(expected))
  assert np.abs(logits_of(config, converted) - logits_of(config, whole)).max() > 1
  assert next(iter(bits(tmp_path / "m").values()))[0] == dtype


def _joined(whole, adapters):
  layers = {name: {**part, **adapters["layers"].get(name, {})}
            for name, part in whole["layers"].items()}
  return {**whole, "layers": layers}


ADAPTED = [("llama", lora.TARGETS), ("qwen2", ("q", "down")), ("phi3", lora.TARGETS),
           ("phi3", ("k", "o", "up"))]


def test_peft_files_have_the_bits_of_adapters_over_a_narrower_base(bases, tmp_path):
  run_of(tmp_path / "run", bases("llama"), lora__rank=RANK, model__param_dtype="bfloat16")
  convert.convert(tmp_path / "run", tmp_path / "peft", adapters="peft")
  held = shards.read_file(tmp_path / "peft" / "adapter_model.safetensors")
  assert {np.dtype(x.dtype).name for x in held.values()} == {"float32"}


@pytest.mark.parametrize("family, targets", ADAPTED, ids=str)
def test_peft_files_hold_the_adapters(bases, tmp_path, family, targets):
  """What peft computes, W + alpha / r B A of each module, is the merged model, tensor by tensor."""
  run_of(tmp_path / "run", bases(family), lora__rank=RANK, lora__alpha=ALPHA, lora__targets=targets)
  convert.convert(tmp_path / "run", tmp_path / "peft", adapters="peft")
  convert.convert(tmp_path / "run", tmp_path / "merged")
  config = said(tmp_path / "peft", "adapter_config.json")
  assert config["base_model_name_or_path"] == str(bases(family))
  file = tmp_path / "peft" / "adapter_model.safetensors"
  held = {k: x[:] for k, x in shards.read_file(file).items()}
  before, after = (shards.tensors(p)[1] for p in (bases(family), tmp_path / "merged"))
  changed = 0
  for name, x in before.items():
    module = name.removesuffix(".weight")
    a, b = (held.pop(f"base_model.model.{module}.lora_{c}.weight", None) for c in "AB")
    if a is None:
      np.testing.assert_array_equal(after[name][:], x[:])
      continue
    short = module.rpartition(".")[2]
    assert short in config["target_modules"]
    r, alpha = (config[f"{k}_pattern"].get(short, config[v])
                for k, v in (("rank", "r"), ("alpha", "lora_alpha")))
    assert a.shape[0] == r
    np.testing.assert_allclose(x[:] + alpha / r * (b @ a), after[name][:], atol=1e-5)
    changed += 1
  assert not held and changed
  with pytest.raises(ValueError, match="it exists and is not empty"):
    convert.convert(tmp_path / "run", tmp_path / "peft", adapters="peft")


# Live, where torch and peft are.


@pytest.mark.parametrize("adapters, family, targets, name", [
    *(("merged", "qwen2", targets, name) for targets in ((), lora.TARGETS)
      for name in ("policy", "prm")),
    *(("peft", family, targets, "prm") for family, targets in ADAPTED)], ids=str)
def test_transformers_and_peft_give_the_runs_logits(
    bases, tmp_path, adapters, family, targets, name):
  pytest.importorskip("torch")
  peft = pytest.importorskip("peft")
  import transformers
  load = transformers.AutoModelForCausalLM.from_pretrained
  options = dict(lora__rank=RANK, lora__alpha=ALPHA, lora__targets=targets) if targets else {}
  params = run_of(tmp_path / "run", bases(family), **options)[name]
  convert.convert(tmp_path / "run", tmp_path / "m", adapters=adapters, model=name, shard_gb=1e-5)
  if adapters == "merged":
    model = load(tmp_path / "m")
    assert model.generation_config.eos_token_id == [1]
  else: model = peft.PeftModel.from_pretrained(load(bases(family)), tmp_path / "m")
  config, whole = hf.load(bases(family))
  config = dataclasses.replace(config, lora_scale=ALPHA / RANK)
  np.testing.assert_allclose(theirs(model), logits_of(
      config, _joined(whole, params) if targets else params), atol=1e-4)


# A padded vocabulary.


@pytest.mark.parametrize("family", ["llama", "smollm2"])
def test_rows_that_pad_are_never_likely(family, bases, tmp_path):
  """Each at most as likely as a token is on average, where a row of zeros takes all."""
  config, params = hf.load(bases(family))
  push = np.random.default_rng(0).normal(size=config.d_model).astype(np.float32)
  if config.tied_head:  # All logits have one sign; here they are negative.
    params["embed"]["w_VD"] += push
    params["norm"]["scale_D"] *= -1
  else: params["head"]["w_DV"] += 20 * push[:, None]  # In a position; either sign.
  hf.save(tmp_path / "pushed", config, params)
  for kind in ("hf", "rlx"):
    convert.convert(tmp_path / "pushed", tmp_path / kind, format=kind, pad_vocab_to_multiple_of=32)
  (wide, more), (_, same) = (test_damaged.read_model(tmp_path / kind) for kind in ("hf", "rlx"))
  jax.tree.map(np.testing.assert_array_equal, more, same)
  assert wide.vocab_size == 64 and more["embed"]["w_VD"].shape[0] == 64
  before, after = logits_of(config, params), logits_of(wide, more)
  np.testing.assert_allclose(after[..., :61], before, rtol=1e-5, atol=1e-4)
  p = jax.nn.softmax(after)
  assert p[..., 61:].max() < 1 / 61
  assert jax.nn.softmax(after.copy() * (np.arange(64) < 61))[..., 61:].max() > 0.3
  assert said(tmp_path / "hf", GENERATION)["suppress_tokens"] == [61, 62, 63]
  convert.convert(tmp_path / "hf", tmp_path / "again", pad_vocab_to_multiple_of=16)
  assert bits(tmp_path / "again") == bits(tmp_path / "hf")


def test_what_pads_is_suppressed_and_ends_stay(bases, tmp_path):
  convert.convert(bases("llama"), tmp_path / "m", pad_vocab_to_multiple_of=64)
  before, after = (said(folder, GENERATION) for folder in (bases("llama"), tmp_path / "m"))
  assert after == before | {"suppress_tokens": [61, 62, 63]} and before["eos_token_id"] == [1]
  convert.convert(FIXTURES / "phi3", tmp_path / "p", pad_vocab_to_multiple_of=64)
  # config.json's: a file without it would end nothing.
  assert said(tmp_path / "p", GENERATION)["eos_token_id"] == [57, 58]


# Refusals and accidents.


@pytest.mark.parametrize("options, message", [
    (dict(format="gguf"), r"format='gguf': one of \('hf', 'rlx'\)"),
    (dict(dtype="int8"), r"dtype='int8': one of \('float32', 'bfloat16', 'float16'\)"),
    (dict(adapters="qlora"), r"adapters='qlora': one of"),
    (dict(model=3), "model=3: a text"),
    (dict(model="value", source="run"), "model='value': the run has no such model; source='run' "
     "has policy, prm, mine, other\\."),
    (dict(model="still", source="run"), r"model='still': it did not learn \(scorers.still.online"
     r"\), so it is still 'a/b'; source='run' has policy, prm, mine"),
    (dict(model="mine", source="run", adapters="peft"),
     "adapters='peft': model='mine' of source=.* has no adapters"),
    (dict(model="prm"), "model='prm': source=.* is not the workdir of a run"),
    (dict(adapters="peft"), "adapters='peft': source=.* has no adapters"),
    (dict(adapters="peft", format="rlx"), "format='rlx' and .* need merged"),
    *((dict(shard_gb=x), f"shard_gb={x}: a number from 1e-12 to")
      for x in (0, -1.0, float("nan"), float("inf"))),
    *((dict(pad_vocab_to_multiple_of=x), f"pad_vocab_to_multiple_of={x}: a whole number from 1 to")
      for x in (0, 2**31)),
    (dict(source="nowhere"), "source='nowhere' is missing; needed is"),
    (dict(source="full"), "source='full' is something else; needed is"),
    (dict(source="run", adapters="peft"), "adapters='peft': .* has no adapters"),
    (dict(source="empty"), "source='.*empty': the run has no checkpoint"),
    (dict(to="full"), "to='.*full': it exists and is not empty"),
    (dict(to="cut"), "cut.part exists, left by an interrupted conversion"),
], ids=str)
def test_refused_before_anything_is_written(bases, tmp_path, monkeypatch, options, message):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "full").mkdir()
  (tmp_path / "full" / "mine").write_text("")
  (tmp_path / "cut.part").mkdir()
  if options.get("source") == "run":
    run_of(tmp_path / "run", bases("llama"), dict.fromkeys(("other", "mine"), bases("llama"))
           | dict(still="a/b"))
  (tmp_path / "empty" / "checkpoints").mkdir(parents=True)
  (tmp_path / "empty" / "config.json").write_text("{}")
  before = sorted(tmp_path.rglob("*"))
  with pytest.raises(ValueError, match=message):
    convert.convert(**dict(dict(source=bases("llama"), to="new"), **options))
  assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("change, message", [
    (dict(lora=dict(rank=4, alpha=7.5)), "_a_.* has shape .*; lora.rank=4 and the model make it"),
    (dict(lora=dict(rank=3, alpha=None)), "config.json: lora.alpha=None: a number from"),
    (dict(lora=dict(rank=-1, alpha=7.5)), "config.json: lora.rank=-1: a whole number from"),
    (dict(lora=3), "config.json: lora.rank is missing"), (dict(prm=None), "prm.path is missing"),
    (dict(model=dict(path=None, param_dtype="float32")), "config.json: model.path=None: a text"),
    (dict(model=dict(path="x", param_dtype="int8")), "model.param_dtype='int8': one of")], ids=str)
def test_what_a_runs_config_says_is_checked(bases, tmp_path, change, message):
  run_of(tmp_path / "run", bases("llama"), lora__rank=RANK, lora__alpha=ALPHA)
  (tmp_path / "run" / "config.json").write_text(json.dumps(said(tmp_path / "run") | change))
  with pytest.raises(ValueError, match=message): convert.convert(tmp_path / "run", tmp_path / "m")
  assert not (tmp_path / "m").exists()


def test_adapters_of_no_matrix_are_refused():
  with pytest.raises(ValueError, match="^run: x.w_a_DI is of no matrix of the model"):
    adapters_io.check({"x.w_a_DI": np.zeros((2, RANK))}, {}, RANK, "run")


def test_no_room(bases, tmp_path, monkeypatch):
  usage = shutil.disk_usage(tmp_path)
  monkeypatch.setattr(shutil, "disk_usage", lambda p: usage._replace(free=60_000))
  convert.convert(bases("llama"), tmp_path / "small", dtype="bfloat16")
  with pytest.raises(ValueError, match=r"to=.*: 0.00 GB are needed, 0.00 are free"):
    convert.convert(bases("llama"), tmp_path / "large")
  assert [p.name for p in tmp_path.iterdir()] == ["small"]


@pytest.mark.parametrize("kind", ["hf", "rlx"])
def test_an_interruption_leaves_nothing(bases, tmp_path, monkeypatch, kind):
  seen, read = [], tables.Leaf.__getitem__
  def half(leaf, index):
    seen.append(index)
    if len(seen) == 9: raise KeyboardInterrupt
    return read(leaf, index)
  monkeypatch.setattr(tables.Leaf, "__getitem__", half)
  with pytest.raises(KeyboardInterrupt):
    convert.convert(bases("llama"), tmp_path / "m", format=kind)
  assert not list(tmp_path.iterdir())


def test_a_kill_leaves_what_nobody_takes_for_a_model(bases, tmp_path):
  """Until the last byte there is no folder of that name."""
  code = ("import os, sys; from rlx.tools import convert; "
          "convert.pathlib.Path.rename = lambda *a: os._exit(9); "
          "convert.convert(sys.argv[1], sys.argv[2])")
  done = subprocess.run([sys.executable, "-c", code, bases("llama"), tmp_path / "m"],
                        cwd=HERE.parent, check=False)
  assert done.returncode == 9
  assert [p.name for p in tmp_path.iterdir()] == ["m.part"]


def test_the_command_line(bases, tmp_path, command):
  done = command("convert", f"source={bases('llama')}", f"to={tmp_path / 'm'}", "dtype=bfloat16")
  assert done.returncode == 0, done.stderr
  assert re.search(r"m  0\.\d MB, bfloat16$", done.stdout.strip())
  assert {dtype for dtype, *_ in bits(tmp_path / "m").values()} == {"bfloat16"}
  for args, message in (
      ([], "rlx: source=... is missing."), (["source=x", "to=y", "z"], "rlx: 'z': written key=val"),
      (["source=x", "z=y"], r"rlx: z: not an option; there are \['source', 'to', 'format'"),
      (["source=x", "to=y", "shard_gb=z"], "rlx: shard_gb='z': a number."),
      ([f"source={bases('llama')}", f"to={tmp_path / 'm'}"], "rlx: to='.*': it exists")):
    done = command("convert", *args)
    assert done.returncode == 2
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and re.match(message, lines[0]), done.stderr


# Memory.


MEASURE = """
import pathlib, sys
import jax, orbax.checkpoint, tensorstore
from rlx.io import hf, tables
from rlx.tools import convert
convert.convert("configs/models/chain", sys.argv[2] + "-small", format=sys.argv[3])
tables.paths(hf.config_of(sys.argv[1])[0])  # What jax takes to trace, 3 MB.
def memory(key):
  lines = pathlib.Path("/proc/self/status").read_text().splitlines()
  return next(int(l.split()[1]) for l in lines if l.startswith(key)) * 1024
pathlib.Path("/proc/self/clear_refs").write_text("5")  # The highest so far is the present.
before = memory("VmRSS:")
convert.convert(sys.argv[1], sys.argv[2], format=sys.argv[3])
print(memory("VmHWM:") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("kind", ["hf", "rlx"])
def test_memory_is_that_of_a_shard(tmp_path, kind):
  """128 MB in eight shards: less than two of them are resident at any time."""
  config = transformer.DecoderConfig(
      vocab_size=4000, d_model=1000, n_layers=16, n_heads=4, n_kv_heads=2, head_dim=64,
      d_ff=300)
  shapes = jax.eval_shape(functools.partial(transformer.init, config), jax.random.key(0))
  hf.save(tmp_path / "m", config, jax.tree.map(lambda x: np.ones(x.shape, x.dtype), shapes),
          shard_bytes=2**24)
  files = [f.stat().st_size for f in (tmp_path / "m").glob("*.safetensors")]
  environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
  done = subprocess.run(
      [sys.executable, "-c", MEASURE, tmp_path / "m", tmp_path / "out", kind],
      cwd=HERE.parent, env=environment, capture_output=True, text=True, check=True)
  peak = int(done.stdout.split()[-1])
  assert len(files) > 5 and peak < 2 * max(files) < 0.4 * sum(files), (peak, max(files))
