"""Qwen2 and Qwen2.5: Llama with biases on queries, keys and values."""
from rlx.models.families import _config
from rlx.models.families import llama

KEYS = llama.KEYS | {
    "model.layers.{L}.self_attn.q_proj.bias": ("layers.attn.q_bias_LNH", "(NH)"),
    "model.layers.{L}.self_attn.k_proj.bias": ("layers.attn.k_bias_LKH", "(KH)"),
    "model.layers.{L}.self_attn.v_proj.bias": ("layers.attn.v_bias_LKH", "(KH)"),
}

# use_sliding_window says whether they count, and has to be off.
IGNORED = {"max_window_layers", "sliding_window"}

GGUF_KEYS = llama.GGUF_KEYS | {  # Heads are not interleaved here.
    "blk.{L}.attn_q.weight": ("layers.attn.q_LDNH", "(NH)D"),
    "blk.{L}.attn_k.weight": ("layers.attn.k_LDKH", "(KH)D"),
    "blk.{L}.attn_q.bias": ("layers.attn.q_bias_LNH", "(NH)"),
    "blk.{L}.attn_k.bias": ("layers.attn.k_bias_LKH", "(KH)"),
    "blk.{L}.attn_v.bias": ("layers.attn.v_bias_LKH", "(KH)"),
}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  return _config.to_decoder(hf, source, family="qwen2", qkv_bias=True,
                            ignored=IGNORED)


def hf_config(config):
  """The config.json of `config`."""
  return _config.to_hf(config, architecture="Qwen2ForCausalLM", model_type="qwen2")
