"""Llama 2, 3, 3.1, 3.2 and models of the same shape (model_type "llama").

A layout spells a foreign tensor's axes in our letters; (NH) is one axis made of
two. `{L}` is the layer. GGUF interleaves the two halves of each rotated head,
so there H is written hc: H/2 pairs of c = 2.
"""
from rlx.models.families import _config

KEYS = {  # Hugging Face name -> (our path, layout)
    "model.embed_tokens.weight": ("embed.w_VD", "VD"),
    "model.layers.{L}.input_layernorm.weight": ("layers.attn_norm.scale_LD", "D"),
    "model.layers.{L}.self_attn.q_proj.weight": ("layers.attn.q_LDNH", "(NH)D"),
    "model.layers.{L}.self_attn.k_proj.weight": ("layers.attn.k_LDKH", "(KH)D"),
    "model.layers.{L}.self_attn.v_proj.weight": ("layers.attn.v_LDKH", "(KH)D"),
    "model.layers.{L}.self_attn.o_proj.weight": ("layers.attn.o_LNHD", "D(NH)"),
    "model.layers.{L}.post_attention_layernorm.weight": ("layers.mlp_norm.scale_LD", "D"),
    "model.layers.{L}.mlp.gate_proj.weight": ("layers.mlp.gate_LDF", "FD"),
    "model.layers.{L}.mlp.up_proj.weight": ("layers.mlp.up_LDF", "FD"),
    "model.layers.{L}.mlp.down_proj.weight": ("layers.mlp.down_LFD", "DF"),
    "model.norm.weight": ("norm.scale_D", "D"),
    "lm_head.weight": ("head.w_DV", "VD"),
    # Where the config has them: attention_bias and mlp_bias.
    "model.layers.{L}.self_attn.q_proj.bias": ("layers.attn.q_bias_LNH", "(NH)"),
    "model.layers.{L}.self_attn.k_proj.bias": ("layers.attn.k_bias_LKH", "(KH)"),
    "model.layers.{L}.self_attn.v_proj.bias": ("layers.attn.v_bias_LKH", "(KH)"),
    "model.layers.{L}.self_attn.o_proj.bias": ("layers.attn.o_bias_LD", "D"),
    "model.layers.{L}.mlp.gate_proj.bias": ("layers.mlp.gate_bias_LF", "F"),
    "model.layers.{L}.mlp.up_proj.bias": ("layers.mlp.up_bias_LF", "F"),
    "model.layers.{L}.mlp.down_proj.bias": ("layers.mlp.down_bias_LD", "D"),
}

GGUF_KEYS = {  # GGUF name -> (our path, layout)
    "token_embd.weight": ("embed.w_VD", "VD"),
    "blk.{L}.attn_norm.weight": ("layers.attn_norm.scale_LD", "D"),
    "blk.{L}.attn_q.weight": ("layers.attn.q_LDNH", "(Nhc)D"),
    "blk.{L}.attn_k.weight": ("layers.attn.k_LDKH", "(Khc)D"),
    "blk.{L}.attn_v.weight": ("layers.attn.v_LDKH", "(KH)D"),
    "blk.{L}.attn_output.weight": ("layers.attn.o_LNHD", "D(NH)"),
    "blk.{L}.ffn_norm.weight": ("layers.mlp_norm.scale_LD", "D"),
    "blk.{L}.ffn_gate.weight": ("layers.mlp.gate_LDF", "FD"),
    "blk.{L}.ffn_up.weight": ("layers.mlp.up_LDF", "FD"),
    "blk.{L}.ffn_down.weight": ("layers.mlp.down_LFD", "DF"),
    "output_norm.weight": ("norm.scale_D", "D"),
    "output.weight": ("head.w_DV", "VD"),
}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  return _config.to_decoder(hf, source, family="llama", biases=("attention_bias", "mlp_bias"))


def hf_config(config):
  """The config.json of `config`."""
  return _config.to_hf(config, architecture="LlamaForCausalLM", model_type="llama")
