"""Hugging Face config.json <-> DecoderConfig, the part that families share."""
from rlx.models import transformer

_FIELDS = {  # config.json -> DecoderConfig
    "vocab_size": "vocab_size", "hidden_size": "d_model",
    "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads", "head_dim": "head_dim",
    "intermediate_size": "d_ff", "rms_norm_eps": "norm_eps",
    "tie_word_embeddings": "tied_head"}

# Where the decoder has one way only. Absent means this value.
_ONLY = {"hidden_act": "silu", "partial_rotary_factor": 1.0}

# Keys that do not change the forward pass.
_IGNORED = {
    "_attn_implementation_autoset", "_model_name_or_path", "_name_or_path",
    "architectures", "attention_dropout", "bos_token_id", "dtype", "eos_token_id",
    "initializer_range", "is_llama_config", "layer_types",
    "max_position_embeddings", "max_window_layers", "model_type", "pad_token_id",
    "pretraining_tp", "rope_interleaved", "rope_parameters", "rope_scaling",
    "rope_theta", "sliding_window", "torch_dtype", "transformers.js_config",
    "transformers_version", "unk_token_id", "unsloth_fixed", "unsloth_version",
    "use_cache"}

_LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor",
           "original_max_position_embeddings")


def to_decoder(hf, *, family, qkv_bias=False, qk_norm=False, defaults=None):
  """DecoderConfig of a parsed config.json.

  Args:
    hf: the parsed config.json.
    family: its name, for messages.
    qkv_bias, qk_norm: the family's switches.
    defaults: values for keys that older files leave out.
  Raises:
    ValueError: a key is missing, asks for something that the decoder does not
      do, or is unknown and switched on.
  """
  hf = {"tie_word_embeddings": False, **(defaults or {}), **hf}
  for key in sorted(set(hf) - set(_FIELDS) - _IGNORED):
    # A feature that is off (None, False, empty), biases for one, is no feature.
    if not hf[key] or hf[key] == _ONLY.get(key): continue
    raise ValueError(f"config.json: {key}={hf[key]!r} is not supported for {family}"
                     + (f"; only {_ONLY[key]!r} is." if key in _ONLY else "."))
  if kinds := set(hf.get("layer_types") or ()) - {"full_attention"}:
    raise ValueError(f"config.json: layer_types has {sorted(kinds)}; only "
                     f"'full_attention' is supported for {family}.")
  if hf.get("num_attention_heads") and hf.get("hidden_size"):
    heads = hf["num_attention_heads"]
    if hf.get("num_key_value_heads") is None: hf["num_key_value_heads"] = heads
    if hf.get("head_dim") is None: hf["head_dim"] = hf["hidden_size"] // heads
  if missing := sorted(set(_FIELDS) - set(hf)):
    raise ValueError(f"config.json: {missing} missing; {family} needs it.")
  theta, scaling = _rope(hf, family)
  return transformer.DecoderConfig(
      **{ours: hf[theirs] for theirs, ours in _FIELDS.items()},
      rope_theta=theta, rope_scaling=scaling, qkv_bias=qkv_bias, qk_norm=qk_norm)


def to_hf(config, *, architecture, model_type):
  """A config.json for `config` that transformers 4 and 5 read."""
  hf = {theirs: getattr(config, ours) for theirs, ours in _FIELDS.items()}
  rope = {"rope_theta": config.rope_theta, "rope_type": "default"}
  if config.rope_scaling:
    kind, *numbers = config.rope_scaling
    rope.update(zip(_LLAMA3, numbers), rope_type=kind)
  if "original_max_position_embeddings" in rope:  # transformers wants an integer.
    rope["original_max_position_embeddings"] = int(
        rope["original_max_position_embeddings"])
  return {"architectures": [architecture], "model_type": model_type,
          "hidden_act": "silu", **hf, "rope_theta": config.rope_theta,
          "rope_scaling": rope if config.rope_scaling else None,
          "rope_parameters": rope}


def _rope(hf, family):
  """(theta, rope_scaling); transformers 5 writes rope_parameters instead."""
  rope = {**(hf.get("rope_scaling") or {}), **(hf.get("rope_parameters") or {})}
  theta = float(rope.get("rope_theta") or hf.get("rope_theta") or 10000.0)
  kind = rope.get("rope_type") or rope.get("type") or "default"
  if kind not in ("default", "linear", "llama3"):
    raise ValueError(f"config.json: rope_type={kind!r} is not supported for "
                     f"{family}; default, linear and llama3 are.")
  known = {"rope_theta", "rope_type", "type", *_LLAMA3}
  if unknown := sorted(k for k in set(rope) - known if rope[k] != _ONLY.get(k)):
    raise ValueError(f"config.json: rope {unknown[0]}={rope[unknown[0]]!r} is not "
                     f"supported for {family}.")
  if kind == "default": return theta, None
  if kind == "linear": return theta, ("linear", float(rope["factor"]))
  return theta, ("llama3", *(float(rope[k]) for k in _LLAMA3))
