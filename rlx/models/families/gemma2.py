"""Gemma 2: norms before and after each sublayer that multiply by 1 + scale, a scaled
embedding, soft caps, and a window on every other layer."""
from rlx.models.families import _config
from rlx.models.families import llama

KEYS = llama.KEYS | {
    "model.layers.{L}.post_attention_layernorm.weight":
        ("layers.attn_post_norm.scale_LD", "D"),
    "model.layers.{L}.pre_feedforward_layernorm.weight": ("layers.mlp_norm.scale_LD", "D"),
    "model.layers.{L}.post_feedforward_layernorm.weight":
        ("layers.mlp_post_norm.scale_LD", "D"),
}

GGUF_KEYS = llama.GGUF_HALVES | {
    "blk.{L}.post_attention_norm.weight": ("layers.attn_post_norm.scale_LD", "D"),
    "blk.{L}.post_ffw_norm.weight": ("layers.mlp_post_norm.scale_LD", "D"),
}

# What a file without them means, as far as Gemma 3 agrees.
DEFAULTS = {"head_dim": 256, "num_key_value_heads": 4, "query_pre_attn_scalar": 256,
            "sliding_window": 4096, "tie_word_embeddings": True,
            "hidden_activation": "gelu_pytorch_tanh"}
_DEFAULTS = DEFAULTS | {"final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0,
                        "max_position_embeddings": 8192}
READS = {"final_logit_softcapping", "hidden_act", "hidden_activation",
         "query_pre_attn_scalar", "sliding_window"}


def switches(hf, source):
  """What Gemma 2 and 3 have in common."""
  act = hf["hidden_activation"] or hf.get("hidden_act")
  if act != "gelu_pytorch_tanh":
    raise ValueError(f"{source}: hidden_activation={act!r:.60}; only 'gelu_pytorch_tanh' "
                     "is supported.")
  return dict(
      activation="gelu_tanh", norms="both", norm_plus_one=True, scaled_embedding=True,
      query_scalar=_config.number(hf, "query_pre_attn_scalar", source, int),
      logit_softcap=optional(hf, "final_logit_softcapping", source))


def optional(hf, key, source):
  """The number, or None if it is absent or null."""
  return None if hf.get(key) is None else _config.number(hf, key, source)


def of_switches(config):
  """The keys of config.json that `switches` reads."""
  return dict(hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh",
              query_pre_attn_scalar=config.query_scalar,
              final_logit_softcapping=config.logit_softcap)


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  hf = _DEFAULTS | hf
  return _config.to_decoder(
      hf, source, family="gemma2", reads=READS | {"attn_logit_softcapping"},
      biases=("attention_bias",), **switches(hf, source),
      attn_softcap=optional(hf, "attn_logit_softcapping", source),
      windows=_config.windows(hf, source, is_local=lambda i: i % 2 == 0))


def hf_config(config):
  """The config.json of `config`."""
  return _config.to_hf(
      config, architecture="Gemma2ForCausalLM", model_type="gemma2", **of_switches(config),
      attn_logit_softcapping=config.attn_softcap,
      **_config.of_windows(config) or {"layer_types": ["full_attention"] * config.n_layers})
