"""Hugging Face config.json <-> DecoderConfig, the part that families share."""
from rlx.models import transformer

_FIELDS = {  # config.json -> DecoderConfig
    "vocab_size": "vocab_size", "hidden_size": "d_model",
    "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads", "head_dim": "head_dim",
    "intermediate_size": "d_ff", "rms_norm_eps": "norm_eps",
    "tie_word_embeddings": "tied_head"}

# Where the decoder has one way only, or the feature is off. Absent is one of them.
_ONLY = {
    "attention_bias": (False, None), "hidden_act": ("silu",), "mlp_bias": (False, None),
    "partial_rotary_factor": (1.0, None), "use_mrope": (False, None),
    "use_sliding_window": (False, None)}

# Keys that do not change the forward pass. A null is as good as absent.
_IGNORED = {
    "_attn_implementation_autoset", "_model_name_or_path", "_name_or_path",
    "architectures", "attention_dropout", "bos_token_id", "dtype", "eos_token_id",
    "initializer_range", "is_llama_config", "layer_types", "max_position_embeddings",
    "max_sequence_length", "model_type", "pad_token_id", "pretraining_tp",
    "rope_interleaved", "rope_parameters", "rope_scaling", "rope_theta",
    "tokenizer_class", "torch_dtype", "transformers.js_config", "transformers_version",
    "unk_token_id", "unsloth_fixed", "unsloth_version", "use_cache"}

_LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor",
           "original_max_position_embeddings")


def to_decoder(hf, source, *, family, qkv_bias=False, qk_norm=False, defaults=None,
               ignored=frozenset()):
  """DecoderConfig of a parsed config.json.

  Args:
    hf: the parsed config.json.
    source: where it is from, for messages.
    family: its name, for messages.
    qkv_bias, qk_norm: the family's switches.
    defaults: values for keys that older files leave out.
    ignored: keys of this family that do not change the forward pass.
  Raises:
    ValueError: a key is missing, unknown, asks for something that the decoder does
      not do, or its value is none that makes sense.
  """
  hf = {"tie_word_embeddings": False, **(defaults or {}), **hf}
  for key in sorted(set(hf) - set(_FIELDS) - _IGNORED - ignored):
    allowed = _ONLY.get(key, (None,))
    if hf[key] not in allowed:
      raise ValueError(f"{source}: {key}={hf[key]!r:.60} is not supported for {family}"
                       + (f"; only {allowed[0]!r} is." if key in _ONLY else "."))
  kinds = hf.get("layer_types") or []
  if not isinstance(kinds, list) or any(k != "full_attention" for k in kinds):
    raise ValueError(f"{source}: layer_types={kinds!r:.60}; only 'full_attention' is "
                     f"supported for {family}.")
  if hf.get("num_key_value_heads") is None:
    hf["num_key_value_heads"] = hf.get("num_attention_heads")
  if hf.get("head_dim") is None:
    hf["head_dim"] = (_number(hf, "hidden_size", source, int)
                      // _number(hf, "num_attention_heads", source, int))
  if missing := sorted(set(_FIELDS) - set(hf)):
    raise ValueError(f"{source}: {missing} missing; {family} needs it.")
  for key in _FIELDS:
    if key != "tie_word_embeddings":
      _number(hf, key, source, float if key == "rms_norm_eps" else int)
  if not isinstance(hf["tie_word_embeddings"], bool):
    raise ValueError(f"{source}: tie_word_embeddings={hf['tie_word_embeddings']!r:.60}; "
                     "true or false.")
  if hf["num_attention_heads"] % hf["num_key_value_heads"] or hf["head_dim"] % 2:
    raise ValueError(
        f"{source}: num_key_value_heads={hf['num_key_value_heads']} must divide "
        f"num_attention_heads={hf['num_attention_heads']}, and 2 head_dim={hf['head_dim']}.")
  theta, scaling = _rope(hf, source, family)
  return transformer.DecoderConfig(
      **{ours: hf[theirs] for theirs, ours in _FIELDS.items()},
      rope_theta=theta, rope_scaling=scaling, qkv_bias=qkv_bias, qk_norm=qk_norm)


def refuse_window(hf, source, *, family):
  """ValueError if attention is to a window shorter than the context."""
  window, context = hf.get("sliding_window"), hf.get("max_position_embeddings")
  if window is None: return
  if _number(hf, "sliding_window", source, int) < _number(
      hf, "max_position_embeddings", source, int):
    raise ValueError(f"{source}: sliding_window={window}; for {family} only null or at "
                     f"least max_position_embeddings={context} is supported.")


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


def _rope(hf, source, family):
  """(theta, rope_scaling); transformers 5 writes rope_parameters instead."""
  rope = {}
  for key in ("rope_scaling", "rope_parameters"):
    more = hf.get(key) or {}
    if not isinstance(more, dict):
      raise ValueError(f"{source}: {key}={more!r:.60}; null or an object.")
    rope |= more
  theta = rope.get("rope_theta")
  theta = {"rope_theta": hf.get("rope_theta", 10000.0) if theta is None else theta}
  theta = _number(theta, "rope_theta", source, float)
  kind = rope.get("rope_type") or rope.get("type") or "default"
  if kind not in ("default", "linear", "llama3"):
    raise ValueError(f"{source}: rope_type={kind!r:.60} is not supported for "
                     f"{family}; default, linear and llama3 are.")
  known = {"rope_theta", "rope_type", "type", *_LLAMA3}
  for key in sorted(set(rope) - known):
    if rope[key] not in _ONLY.get(key, (None,)):
      raise ValueError(f"{source}: rope {key}={rope[key]!r:.60} is not supported for "
                       f"{family}.")
  if kind == "default": return theta, None
  if kind == "linear": return theta, ("linear", _number(rope, "factor", source, float))
  numbers = [_number(rope, key, source, float) for key in _LLAMA3]
  if numbers[1] >= numbers[2]:
    raise ValueError(f"{source}: low_freq_factor={numbers[1]} must be below "
                     f"high_freq_factor={numbers[2]}.")
  return theta, ("llama3", *numbers)


def _number(values, key, source, kind):
  """values[key] as `kind`, int or float, if it is a number above 0."""
  x = values.get(key)
  # Sizes fit an int32, real numbers a float32; NaN is not below anything.
  if (isinstance(x, bool) or not isinstance(x, (int, kind))
      or not 0 < x < (2**31 if kind is int else 1e38)):
    raise ValueError(f"{source}: {key}={x!r:.60}; a {'whole ' * (kind is int)}number "
                     "above 0 is needed.")
  return kind(x)
