"""Hugging Face directories: read, written, read again; what does not fit is named."""
import dataclasses
import json
import pathlib

import jax
import numpy as np
import pytest
import safetensors.numpy

from rlx.io import hf
from rlx.io import params as params_io
from rlx.io import tokenizer
from rlx.io import weights
from rlx.models import families
from rlx.models import transformer

FIXTURES = pathlib.Path(__file__).parent.parent / "models" / "fixtures"
FAMILIES = ["llama", "smollm2", "qwen2", "qwen3", "mistral"]


def tensors(path):
  return safetensors.numpy.load_file(path / "model.safetensors")


@pytest.mark.parametrize("family", FAMILIES)
def test_round_trip(family, tmp_path):
  """What is written has the names, shapes and bits of what transformers wrote."""
  config, params = hf.load(FIXTURES / family)
  hf.save(tmp_path, config, params)
  before, after = tensors(FIXTURES / family), tensors(tmp_path)
  assert set(before) == set(after)
  for name, x in before.items():
    np.testing.assert_array_equal(after[name], x)
  config_again, params_again = hf.load(tmp_path)
  assert config_again == config
  jax.tree.map(np.testing.assert_array_equal, params_again, params)


def test_fused_round_trip(tmp_path):
  """A Phi-3 is saved as the Llama that it is, or with its config.json as it was, fused."""
  config, params = hf.load(FIXTURES / "phi3")
  said = json.loads((FIXTURES / "phi3" / "config.json").read_text())
  hf.save(tmp_path / "fused", config, params, hf=said)
  before, after = tensors(FIXTURES / "phi3"), tensors(tmp_path / "fused")
  assert set(before) == set(after)
  for name, x in before.items():
    np.testing.assert_array_equal(after[name], x)
  hf.save(tmp_path / "apart", config, params)
  for name, kind in (("fused", "phi3"), ("apart", "llama")):
    assert json.loads((tmp_path / name / "config.json").read_text())["model_type"] == kind
    config_again, params_again = hf.load(tmp_path / name)
    assert config_again == config
    jax.tree.map(np.testing.assert_array_equal, params_again, params)


def test_what_the_decoder_has_no_use_for_is_kept(tmp_path):
  """Context length and special tokens; dtype and vocabulary are those of the weights."""
  said = json.loads((FIXTURES / "mistral" / "config.json").read_text())
  config, params = hf.load(FIXTURES / "mistral", "bfloat16")
  hf.save(tmp_path, config, params, hf=said)
  dtype = {key: "bfloat16" for key in ("dtype", "torch_dtype") if key in said}
  assert json.loads((tmp_path / "config.json").read_text()) == said | dtype and dtype
  assert said["model_type"] == "mistral" and "max_position_embeddings" in said


@pytest.mark.parametrize("case", ["gemma3", "phi3_longrope", "qwen3_yarn"])
def test_config_json_is_kept(case, tmp_path):
  """Also what it nests: rotary parameters by the kind of layer, and factors."""
  said = json.loads((FIXTURES / case / "config.json").read_text())
  config, params = hf.load(FIXTURES / case)
  hf.save(tmp_path, config, params, hf=hf.stored(FIXTURES / case)[1])
  assert json.loads((tmp_path / "config.json").read_text()) == said
  assert hf.load(tmp_path)[0] == config


def test_rotary_frequencies_in_old_files_are_not_read(tmp_path):
  """transformers once wrote them with each layer; they follow from the config."""
  def add(arrays):
    for i in range(2):
      arrays[f"model.layers.{i}.self_attn.rotary_emb.inv_freq"] = np.full(4, 7, np.float32)
  path = edited(tmp_path, "llama", add)
  for part, expected in zip(hf.load(path), hf.load(FIXTURES / "llama")):
    jax.tree.map(np.testing.assert_array_equal, part, expected)
  half = {name: x.astype(np.float16) for name, x in tensors(FIXTURES / "llama").items()}
  add(half)
  safetensors.numpy.save_file(half, path / "model.safetensors")
  assert hf.stored(path)[0].param_dtype == "float16"


def test_a_leaf_is_read_by_layer_or_whole():
  config, params = hf.load(FIXTURES / "phi3")
  leaf = hf.stored(FIXTURES / "phi3")[2]["layers.attn.k_LDKH"]
  expected = params["layers"]["attn"]["k_LDKH"]
  for layer in range(config.n_layers):
    np.testing.assert_array_equal(leaf[(layer,)], expected[layer])
  np.testing.assert_array_equal(leaf[()], expected)


@pytest.mark.parametrize("family", [*FAMILIES, "phi3"])
def test_transformers_reads_what_is_written(family, tmp_path):
  torch = pytest.importorskip("torch")
  import transformers
  hf.save(tmp_path, *hf.load(FIXTURES / family))
  recorded = np.load(FIXTURES / family / "logits.npz")
  model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
  with torch.no_grad():  # Row 0 has no padding.
    logits = model(torch.tensor(recorded["tokens"][:1])).logits.float().numpy()
  np.testing.assert_allclose(logits, recorded["logits"][:1], atol=1e-5)


def test_dtype(tmp_path):
  """bfloat16 in memory and on disk; half the bytes."""
  config, params = hf.load(FIXTURES / "qwen2", "bfloat16")
  assert (config.dtype, config.param_dtype) == ("bfloat16", "bfloat16")
  assert {str(x.dtype) for x in jax.tree.leaves(params)} == {"bfloat16"}
  hf.save(tmp_path, config, params)
  again = hf.load(tmp_path, "bfloat16")[1]
  jax.tree.map(np.testing.assert_array_equal, again, params)
  w, exact = (hf.load(p)[1]["embed"]["w_VD"] for p in (tmp_path, FIXTURES / "qwen2"))
  np.testing.assert_allclose(w, exact, rtol=2**-8)


def test_shards_are_written(tmp_path):
  """No file is larger than asked, but for a tensor that is; transformers' names and index."""
  config, params = hf.load(FIXTURES / "llama")
  hf.save(tmp_path, config, params, shard_bytes=7000)
  index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
  n = len(set(index["weight_map"].values()))
  arrays = {}
  for i in range(n):
    name = f"model-{i + 1:05d}-of-{n:05d}.safetensors"
    held = safetensors.numpy.load_file(tmp_path / name)
    assert {k for k, v in index["weight_map"].items() if v == name} == set(held)
    assert sum(x.nbytes for x in held.values()) <= 7000 or len(held) == 1
    arrays |= held
  assert n > 5 and index["metadata"]["total_size"] == sum(x.nbytes for x in arrays.values())
  before = tensors(FIXTURES / "llama")
  assert set(before) == set(arrays)
  for name, x in before.items(): np.testing.assert_array_equal(arrays[name], x)
  jax.tree.map(np.testing.assert_array_equal, hf.load(tmp_path)[1], params)


def test_a_model_replaces_one_in_shards(tmp_path):
  hf.save(tmp_path, *hf.load(FIXTURES / "llama"), shard_bytes=7000)
  config, params = hf.load(FIXTURES / "qwen2")
  hf.save(tmp_path, config, params)
  jax.tree.map(np.testing.assert_array_equal, hf.load(tmp_path)[1], params)


def test_float16_that_overflows_is_named(tmp_path):
  config, params = hf.load(FIXTURES / "llama")
  params["norm"]["scale_D"][3] = 1e5
  config = dataclasses.replace(config, param_dtype="float16")
  with pytest.raises(ValueError, match="model.norm.weight has values beyond .* float16"):
    hf.save(tmp_path / "hf", config, params)
  with pytest.raises(ValueError, match="norm.scale_D has values beyond .* float16"):
    params_io.save(tmp_path / "rlx", config, params, hf=None)


def edited(tmp_path, family, change, config_change=None):
  """A copy of a fixture whose tensors and config.json are edited."""
  arrays = tensors(FIXTURES / family)
  change(arrays)
  safetensors.numpy.save_file(arrays, tmp_path / "model.safetensors")
  config = json.loads((FIXTURES / family / "config.json").read_text())
  (tmp_path / "config.json").write_text(json.dumps({**config, **(config_change or {})}))
  return tmp_path


def test_a_head_of_a_tied_model_is_refused(tmp_path):
  def change(t): t["lm_head.weight"] = np.ones((61, 32), np.float32)
  with pytest.raises(ValueError, match="not part of the model: lm_head.weight"):
    hf.load(edited(tmp_path, "qwen2", change))


def test_copy_of_the_embedding_is_no_head(tmp_path):
  """Qwen3-0.6B is tied and stores lm_head.weight all the same."""
  def change(t): t["lm_head.weight"] = t["model.embed_tokens.weight"].copy()
  params = hf.load(edited(tmp_path, "qwen2", change))[1]
  assert set(params) == {"embed", "layers", "norm"}


def test_unknown_family(tmp_path):
  edited(tmp_path, "llama", lambda t: None, dict(model_type="gemma3"))
  with pytest.raises(ValueError, match="'gemma3'.*'gemma3_text'.*'qwen3_moe'"):
    hf.load(tmp_path)


@pytest.mark.parametrize("family, kind", [
    *((f, f) for f in ("llama", "qwen2", "qwen3")),
    ("smollm2", "llama"), ("mistral", "llama"), ("phi3", "llama")])
def test_the_first_family_that_gives_the_config_back(family, kind):
  """Whatever a run adds to the config."""
  config = dataclasses.replace(hf.load(FIXTURES / family)[0], remat="full", lora_scale=2.0,
                               dtype="bfloat16")
  assert hf.family_of(config) is families.FAMILIES[kind]


def test_no_family_has_both():
  config = dataclasses.replace(hf.load(FIXTURES / "qwen2")[0], qk_norm="head")
  with pytest.raises(ValueError, match="qkv_bias"):
    hf.family_of(config)


def test_model_directory_with_tokenizer(tmp_path):
  """hf.save and weights.load: what supervised training leaves for the RL run."""
  config = transformer.DecoderConfig(
      vocab_size=6, d_model=8, n_layers=1, n_heads=1, n_kv_heads=1, head_dim=8, d_ff=8)
  params = transformer.init(config, jax.random.key(0))
  hf.save(tmp_path, config, params, tokenizer.characters("01+="))
  config_again, params_again, tok = weights.load(tmp_path, dtype="float32")
  assert config_again == config
  jax.tree.map(np.testing.assert_array_equal, params_again, params)
  assert tok.encode("1+0=") == [3, 4, 2, 5] and tok.eos_ids == (1,)


@pytest.mark.parametrize("name, message", [
    ("nowhere", "'.*nowhere' is missing"), ("empty", "'.*empty' is something else")])
def test_missing_path(tmp_path, name, message):
  (tmp_path / "empty").mkdir()
  with pytest.raises(ValueError, match=f"model.path={message}; needed is"):
    weights.load(tmp_path / name)
