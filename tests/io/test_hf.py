"""Hugging Face directories: read, written, read again; what does not fit is named."""
import dataclasses
import pathlib
import shutil

import jax
import numpy as np
import pytest
import safetensors.numpy

from rlx.io import hf, params as params_io, shards, tables
from rlx.models import families

FIXTURES = pathlib.Path(__file__).parent.parent / "models" / "fixtures"


def tensors(path):
  return safetensors.numpy.load_file(path / "model.safetensors")


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
  assert hf.open_model(path)[0].param_dtype == "float16"


def test_a_leaf_is_read_by_layer_or_whole():
  config, params = hf.load(FIXTURES / "phi3")
  leaf = hf.open_model(FIXTURES / "phi3")[2]["layers.attn.k_LDKH"]
  expected = params["layers"]["attn"]["k_LDKH"]
  for layer in range(config.n_layers):
    np.testing.assert_array_equal(leaf[(layer,)], expected[layer])
  np.testing.assert_array_equal(leaf[()], expected)


def test_a_model_replaces_one_in_shards(tmp_path):
  hf.save(tmp_path, *hf.load(FIXTURES / "llama"), shard_bytes=7000)
  files = [shards.read_file(file) for file in tmp_path.glob("*.safetensors")]
  # The data is aligned behind each header.
  assert not any(min(x.start for x in tensors_.values()) % 8 for tensors_ in files)
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


def edited(tmp_path, family, change):
  """A copy of a fixture whose tensors are edited."""
  arrays = tensors(FIXTURES / family)
  change(arrays)
  safetensors.numpy.save_file(arrays, tmp_path / "model.safetensors")
  shutil.copy(FIXTURES / family / "config.json", tmp_path)
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


@pytest.mark.parametrize("row", [0, 4999])
def test_a_head_that_differs_in_one_row_is_no_copy(row):
  """Also where it is compared in several parts."""
  embedding, head = np.zeros((2, 5000, 1))
  head[row] = 1
  assert tables._without_copy_of_embedding(
      ["head"], dict(embedding=([("embed.w_VD", "VD")], ())), dict(embedding=embedding, head=head),
      dict(head=("head.w_DV", "VD"))) == ["head"]


@pytest.mark.parametrize("family, kind", [
    *((f, f) for f in ("llama", "qwen2", "qwen3")),
    ("smollm2", "llama"), ("mistral", "llama"), ("phi3", "llama")])
def test_the_first_family_that_gives_the_config_back(family, kind):
  """Whatever a run adds to the config."""
  config = dataclasses.replace(hf.load(FIXTURES / family)[0], remat="full", lora_scale=2.0,
                               dtype="bfloat16", kv_copies=2, platform="tpu",
                               decoding="fused", matmul_precision="default")
  assert hf.family_of(config) is families.FAMILIES[kind]


def test_no_family_has_both():
  config = dataclasses.replace(hf.load(FIXTURES / "qwen2")[0], qk_norm="head")
  with pytest.raises(ValueError, match="qkv_bias"):
    hf.family_of(config)
