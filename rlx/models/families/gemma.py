"""Gemma 2: norms before and after each sublayer that multiply by 1 + scale, a scaled embedding,
soft caps, and a window on every other layer. Gemma 3 for text: the same with an RMSNorm on each
query and key head, and other rotary angles on layers with a window."""
from rlx.models.families import _config, _names, llama

# The norm before the MLP has another name than in Llama, whose name is that of a post-norm.
_LAYER = llama.LAYER | _names.POST_NORMS | {
    "layers.mlp_norm.scale_LD": ("D", "pre_feedforward_layernorm", "ffn_norm")}
_DEFAULTS = {"head_dim": 256, "num_key_value_heads": 4, "query_pre_attn_scalar": 256,
             "sliding_window": 4096, "tie_word_embeddings": True,
             "hidden_activation": "gelu_pytorch_tanh"}
_FIXED = dict(activation="gelu_tanh", norms="both", norm_plus_one=True, scaled_embedding=True)
_READS = {"final_logit_softcapping", "hidden_act", "hidden_activation", "query_pre_attn_scalar",
          "sliding_window"}


def _switches(hf, source, **options):
  if (act := hf["hidden_activation"] or hf.get("hidden_act")) != "gelu_pytorch_tanh":
    raise ValueError(f"{source}: hidden_activation={act!r:.60}; only 'gelu_pytorch_tanh' "
                     "is supported.")
  return dict(query_scalar=_config.number(hf, "query_pre_attn_scalar", source, int),
              logit_softcap=_read_optional(hf, "final_logit_softcapping", source),
              windows=_config.windows(hf, source, **options))


def _read_optional(hf, key, source):
  """The number, or None if it is absent or null."""
  return None if hf.get(key) is None else _config.number(hf, key, source)


def _keys(config):
  return _config.layer_window_keys(config) | dict(
      hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh",
      query_pre_attn_scalar=config.query_scalar, final_logit_softcapping=config.logit_softcap)


GEMMA2 = _config.Family(
    "gemma2", "Gemma2ForCausalLM", *_names.tables(_LAYER), biases=("attention_bias",),
    fixed=_FIXED, reads=_READS | {"attn_logit_softcapping"},
    defaults=_DEFAULTS | {"final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0,
                          "max_position_embeddings": 8192},
    switches=lambda hf, source: _switches(hf, source, is_local=lambda i: i % 2 == 0) | dict(
        attn_softcap=_read_optional(hf, "attn_logit_softcapping", source)),
    keys=lambda config: _keys(config) | dict(attn_logit_softcapping=config.attn_softcap))


def _gemma3(hf, source):
  every = _config.number(hf, "sliding_window_pattern", source, int)
  return _switches(hf, source, is_local=lambda i: (i + 1) % every != 0)


GEMMA3_TEXT = _config.Family(
    "gemma3_text", "Gemma3ForCausalLM", *_names.tables(_LAYER, _names.HEAD_NORMS),
    biases=("attention_bias",), fixed=_FIXED | dict(qk_norm="head"),
    reads=_READS | {"_sliding_window_pattern", "rope_local_base_freq", "sliding_window_pattern"},
    defaults=_DEFAULTS | {
        "sliding_window_pattern": 6, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
        "max_position_embeddings": 131072},
    switches=_gemma3,
    keys=lambda config: _keys(config) | dict(rope_local_base_freq=config.local_theta))
