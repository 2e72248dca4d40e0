"""Gemma 3, text: Gemma 2 with an RMSNorm on each query and key head and, on layers with a
window, rotary angles of their own."""
from rlx.models.families import _config
from rlx.models.families import gemma2

KEYS = gemma2.KEYS | {
    "model.layers.{L}.self_attn.q_norm.weight": ("layers.attn.q_norm.scale_LH", "H"),
    "model.layers.{L}.self_attn.k_norm.weight": ("layers.attn.k_norm.scale_LH", "H"),
}

# What a file without them means.
_DEFAULTS = gemma2.DEFAULTS | {
    "sliding_window_pattern": 6, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
    "max_position_embeddings": 131072}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  hf = _DEFAULTS | hf
  every = _config.number(hf, "sliding_window_pattern", source, int)
  return _config.to_decoder(
      hf, source, family="gemma3_text", biases=("attention_bias",), qk_norm="head",
      reads=gemma2.READS | {"_sliding_window_pattern", "rope_local_base_freq",
                            "sliding_window_pattern"},
      **gemma2.switches(hf, source), local_theta=None,
      windows=_config.windows(hf, source, is_local=lambda i: (i + 1) % every != 0))


def hf_config(config):
  """The config.json of `config`."""
  hf = _config.to_hf(
      config, architecture="Gemma3ForCausalLM", model_type="gemma3_text",
      rope_local_base_freq=config.local_theta, **gemma2.of_switches(config),
      **_config.of_windows(config) or {"layer_types": ["full_attention"] * config.n_layers})
  local = {"rope_type": "default", "rope_theta": config.local_theta}
  return hf | {"rope_parameters": {"full_attention": hf["rope_parameters"],
                                   "sliding_attention": local}}
