"""OLMo 2: norms after each sublayer instead of before, and of all queries and keys of a
token together."""
from rlx.models.families import _config
from rlx.models.families import llama

KEYS = {k: v for k, v in llama.KEYS.items() if "input_layernorm" not in k} | {
    "model.layers.{L}.post_attention_layernorm.weight":
        ("layers.attn_post_norm.scale_LD", "D"),
    "model.layers.{L}.post_feedforward_layernorm.weight":
        ("layers.mlp_post_norm.scale_LD", "D"),
    "model.layers.{L}.self_attn.q_norm.weight": ("layers.attn.q_norm.scale_LNH", "(NH)"),
    "model.layers.{L}.self_attn.k_norm.weight": ("layers.attn.k_norm.scale_LKH", "(KH)"),
}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  return _config.to_decoder(hf, source, family="olmo2", norms="post", qk_norm="all",
                            biases=("attention_bias",))


def hf_config(config):
  """The config.json of `config`."""
  return _config.to_hf(config, architecture="Olmo2ForCausalLM", model_type="olmo2")
