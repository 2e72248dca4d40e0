"""Qwen3, the dense ones: Llama with an RMSNorm on each query and key head."""
from rlx.models.families import _config
from rlx.models.families import llama
from rlx.models.families import qwen2

KEYS = llama.KEYS | {
    "model.layers.{L}.self_attn.q_norm.weight": ("layers.attn.q_norm.scale_LH", "H"),
    "model.layers.{L}.self_attn.k_norm.weight": ("layers.attn.k_norm.scale_LH", "H"),
}

GGUF_KEYS = llama.GGUF_HALVES | {
    "blk.{L}.attn_q_norm.weight": ("layers.attn.q_norm.scale_LH", "H"),
    "blk.{L}.attn_k_norm.weight": ("layers.attn.k_norm.scale_LH", "H"),
}


# What a file without them means; of head_dim that is not hidden_size / heads.
_DEFAULTS = qwen2.DEFAULTS | {"head_dim": 128}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  return _config.to_decoder(
      hf, source, family="qwen3", qk_norm="head", defaults=_DEFAULTS,
      biases=("attention_bias",), reads=qwen2.WINDOW_KEYS, windows=qwen2.windows(hf, source))


def hf_config(config):
  """The config.json of `config`."""
  return _config.to_hf(config, architecture="Qwen3ForCausalLM", model_type="qwen3",
                       **qwen2.of_windows(config))
