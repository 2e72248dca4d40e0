"""Hugging Face config.json <-> DecoderConfig, the part that families share."""
import math

from rlx.models import transformer

_FIELDS = {  # config.json -> DecoderConfig
    "vocab_size": "vocab_size", "hidden_size": "d_model",
    "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads", "head_dim": "head_dim",
    "intermediate_size": "d_ff", "rms_norm_eps": "norm_eps",
    "tie_word_embeddings": "tied_head", "max_position_embeddings": "context"}

# Where the decoder has one way only, or the feature is off. Absent is one of them.
_ONLY = {
    "attention_bias": (False, None), "full_attn_mod": (1, None), "hidden_act": ("silu",),
    "interpolate_factor": (1, None), "is_encoder_decoder": (False, None),
    "lm_head_bias": (False, None), "mlp_bias": (False, None),
    "partial_rotary_factor": (1.0, None), "use_bidirectional_attention": (False, None),
    "use_mrope": (False, None), "use_sliding_window": (False, None)}

# Keys that do not change the forward pass. A null is as good as absent.
_IGNORED = {
    "_attn_implementation_autoset", "_model_name_or_path", "_name_or_path",
    "architectures", "attention_dropout", "bos_token_id", "cache_implementation",
    "chunk_size_feed_forward", "dtype", "eos_token_id", "id2label", "initializer_range",
    "is_llama_config", "label2id", "layer_types", "max_sequence_length", "model_type",
    "output_attentions", "output_hidden_states", "pad_token_id", "pretraining_tp",
    "problem_type", "return_dict", "rope_interleaved", "rope_parameters", "rope_scaling",
    "rope_theta", "tokenizer_class", "torch_dtype", "transformers.js_config",
    "transformers_version", "unk_token_id", "unsloth_fixed", "unsloth_version", "use_cache",
    # Of sampling, which transformers 4 kept here once; a run has its own.
    "do_sample", "length_penalty", "max_length", "max_new_tokens", "min_length", "num_beams",
    "repetition_penalty", "temperature", "top_k", "top_p"}

# Rope kind -> its keys in config.json, in the order of DecoderConfig.rope_scaling.
_ROPE = {
    "linear": ("factor",), "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor",
               "original_max_position_embeddings"),
    "yarn": ("factor", "beta_fast", "beta_slow", "original_max_position_embeddings",
             "attention_factor", "truncate"),
    "longrope": ("original_max_position_embeddings", "attention_factor", "short_factor",
                 "long_factor")}
_ROPE_OTHERS = {"yarn": ("finetuned", "mscale", "mscale_all_dim"), "longrope": ("factor",)}


def to_decoder(hf, source, *, family, defaults=None, reads=frozenset(), biases=(),
               ropes=tuple(_ROPE), **switches):
  """DecoderConfig of a parsed config.json.

  Args:
    hf: the parsed config.json.
    source: where it is from, for messages.
    family: its name, for messages.
    defaults: values for keys that older files leave out.
    reads: keys of this family that it has read itself, or that do not change the
      forward pass.
    biases: attention_bias and mlp_bias, if it may have them.
    ropes: kinds of rotary scaling that it may ask for.
    **switches: fields of DecoderConfig that follow from the family, or `reads`.
  Raises:
    ValueError: a key is missing, unknown, asks for something that the decoder does
      not do, or its value is none that makes sense.
  """
  hf = {"tie_word_embeddings": False, **(defaults or {}), **hf}
  for key in sorted(set(hf) - set(_FIELDS) - _IGNORED - {*reads, *biases}):
    allowed = _ONLY.get(key, (None,))
    if hf[key] not in allowed:
      raise ValueError(f"{source}: {key}={hf[key]!r:.60} is not supported for {family}"
                       + (f"; only {allowed[0]!r} is." if key in _ONLY else "."))
  if hf.get("num_key_value_heads") is None:
    hf["num_key_value_heads"] = hf.get("num_attention_heads")
  if hf.get("head_dim") is None:
    hf["head_dim"] = (number(hf, "hidden_size", source, int)
                      // number(hf, "num_attention_heads", source, int))
  hf.setdefault("max_position_embeddings", None)
  if missing := sorted(set(_FIELDS) - set(hf)):
    raise ValueError(f"{source}: {missing} missing; {family} needs it.")
  for key in _FIELDS:
    if key == "tie_word_embeddings": flag(hf, key, source)
    elif key != "max_position_embeddings" or hf[key] is not None:
      number(hf, key, source, float if key == "rms_norm_eps" else int)
  if hf["num_attention_heads"] % hf["num_key_value_heads"] or hf["head_dim"] % 2:
    raise ValueError(
        f"{source}: num_key_value_heads={hf['num_key_value_heads']} must divide "
        f"num_attention_heads={hf['num_attention_heads']}, and 2 head_dim={hf['head_dim']}.")
  if "attention_bias" in biases:
    has = flag(hf, "attention_bias", source)
    switches = dict(qkv_bias=has, o_bias=has) | switches
  if "mlp_bias" in biases: switches["mlp_bias"] = flag(hf, "mlp_bias", source)
  if "windows" not in switches: switches["windows"] = windows(hf, source, window=None)
  rope = _rope(hf, source, family, ropes, local="local_theta" in switches,
               partial="partial_rotary_factor" in reads)
  return transformer.DecoderConfig(
      **{ours: hf[theirs] for theirs, ours in _FIELDS.items()}, **switches | rope)


def to_hf(config, *, architecture, model_type, **more):
  """A config.json for `config` that transformers 4 and 5 read; `more` are the family's keys."""
  hf = {theirs: getattr(config, ours) for theirs, ours in _FIELDS.items()}
  if config.context is None: del hf["max_position_embeddings"]
  rope = {"rope_theta": config.rope_theta, "rope_type": "default"}
  if config.rope_scaling:
    kind, *numbers = config.rope_scaling
    rope.update(zip(_ROPE[kind], [list(x) if isinstance(x, tuple) else x for x in numbers]),
                rope_type=kind)
  if "original_max_position_embeddings" in rope:  # transformers wants an integer.
    rope["original_max_position_embeddings"] = int(
        rope["original_max_position_embeddings"])
  if config.rope_dim is not None:
    rope["partial_rotary_factor"] = config.rope_dim / config.head_dim
    hf["partial_rotary_factor"] = rope["partial_rotary_factor"]
  if config.o_bias: hf["attention_bias"] = True
  if config.mlp_bias: hf["mlp_bias"] = True
  return {"architectures": [architecture], "model_type": model_type,
          "hidden_act": "silu", "pad_token_id": None, **hf, "rope_theta": config.rope_theta,
          "rope_scaling": rope if config.rope_scaling else None,
          "rope_parameters": rope, **more}


def windows(hf, source, *, window="sliding_window", is_local=lambda i: True, by_layer=True):
  """DecoderConfig.windows of a file: of each layer how far back it attends.

  A window as long as the context stays: sequences may be longer, where the context is
  stretched, and layers with a window may rotate otherwise.

  Args:
    window: the key that holds the number; None: there is none.
    is_local: of a layer's number, whether the window is for it, if layer_types does not say.
    by_layer: False for a family of which transformers does not read layer_types.
  """
  n = layers(hf, source)
  kinds = default = [
      "sliding_attention" if window and hf.get(window) is not None and is_local(i)
      else "full_attention" for i in range(n)]
  if hf.get("layer_types") is not None: kinds = hf["layer_types"]
  if not by_layer and kinds != default:
    raise ValueError(f"{source}: layer_types={kinds!r:.60}; sliding_window says {default[0]} for "
                     "all layers.")
  allowed = ("full_attention", *["sliding_attention"] * (window is not None))
  if not isinstance(kinds, list) or len(kinds) != n or not set(map(str, kinds)) <= set(allowed):
    raise ValueError(f"{source}: layer_types={kinds!r:.60}; {n} of {', '.join(allowed)} are "
                     "needed.")
  if "sliding_attention" not in kinds: return None
  width = number(hf, window, source, int)
  return tuple(width if kind == "sliding_attention" else 0 for kind in kinds)


def of_windows(config, *, by_layer=True):
  """The keys of config.json that say `config.windows`.

  Args:
    by_layer: False for a family whose window is for all layers, if there is one.
  """
  if config.windows is None: return {} if by_layer else {"sliding_window": None}
  width = {"sliding_window": max(config.windows)}
  if not by_layer: return width
  return width | {"layer_types": ["sliding_attention" if w else "full_attention"
                                  for w in config.windows]}


def layers(hf, source):
  """num_hidden_layers, small enough to list them."""
  n = number(hf, "num_hidden_layers", source, int)
  if n > 10_000: raise ValueError(f"{source}: num_hidden_layers={n}; at most 10000.")
  return n


def number(values, key, source, kind=float):
  """values[key] as `kind`, int or float, if it is a number above 0."""
  x = values.get(key)
  # Sizes fit an int32, real numbers a float32; NaN is not below anything.
  if (isinstance(x, bool) or not isinstance(x, (int, kind))
      or not 0 < x < (2**31 if kind is int else 1e38)):
    raise ValueError(f"{source}: {key}={x!r:.60}; a {'whole ' * (kind is int)}number "
                     "above 0 is needed.")
  return kind(x)


def flag(values, key, source):
  """values[key] if it is true or false; False if it is absent or null."""
  x = values.get(key)
  if x is None: return False
  if not isinstance(x, bool): raise ValueError(f"{source}: {key}={x!r:.60}; true or false.")
  return x


def _rope(hf, source, family, ropes, local, partial):
  """The fields of DecoderConfig that say how heads are rotated.

  transformers 4 writes rope_scaling, transformers 5 rope_parameters, which Gemma 3 nests by
  the kind of layer. In a file with both, rope_scaling replaces rope_parameters; where those
  are nested, it updates those of the layers without a window.
  """
  scaling, rope = (_object(hf, key, source) for key in ("rope_scaling", "rope_parameters"))
  out = {}
  if local:
    if unknown := sorted(set(rope) - {"full_attention", "sliding_attention"}):
      raise ValueError(f"{source}: rope_parameters.{unknown[0]}={rope[unknown[0]]!r:.60} is not "
                       f"supported for {family}; only full_attention and sliding_attention are.")
    sliding, rope = (_object(rope, kind + "_attention", source) for kind in ("sliding", "full"))
    if scaling.get("type") not in (None, "default", scaling.get("rope_type")):
      raise ValueError(f"{source}: rope_scaling type={scaling['type']!r:.60} is not supported for "
                       f"{family}, where transformers 5 does not read it; rope_type is.")
    rope = rope | scaling
    theta = {"rope_local_base_freq": sliding.get("rope_theta", hf["rope_local_base_freq"])}
    out["local_theta"] = number(theta, "rope_local_base_freq", source)
    if _kind(sliding) != "default":
      raise ValueError(f"{source}: rope_parameters.sliding_attention={sliding!r:.60}; only "
                       f"rope_type 'default' is supported for {family}.")
    # transformers looks for it beside the two kinds of layers, and finds True, the default.
    if not rope.get("truncate", True):
      raise ValueError(f"{source}: rope truncate={rope['truncate']!r:.60} is not supported for "
                       f"{family}; only True is.")
  else:
    rope, sliding = scaling or rope, {}
  theta = {"rope_theta": rope.get("rope_theta", hf.get("rope_theta", 10000.0))}
  out["rope_theta"] = number(theta, "rope_theta", source)
  if out["rope_theta"] <= 1:  # Frequencies fall only above 1; yarn divides by the logarithm.
    raise ValueError(f"{source}: rope_theta={out['rope_theta']}; a number above 1 is needed.")
  part = rope.get("partial_rotary_factor")
  if part is None: part = hf.get("partial_rotary_factor")
  if part is not None and (part != 1 or isinstance(part, bool)):
    dim = int(hf["head_dim"] * number({"partial_rotary_factor": part}, "partial_rotary_factor",
                                      source))
    if not partial or not 0 < dim < hf["head_dim"] or dim % 2:
      raise ValueError(f"{source}: partial_rotary_factor={part!r:.60} is not supported for "
                       f"{family}; only 1.0 is.")
    out["rope_dim"] = dim
  kind = _kind(rope)
  if kind != "default" and kind not in ropes:
    raise ValueError(f"{source}: rope_type={kind!r:.60} is not supported for "
                     f"{family}; {', '.join(('default', *ropes))} are.")
  known = {"rope_theta", "rope_type", "type", "partial_rotary_factor",
           *(key for keys in (*_ROPE.values(), *_ROPE_OTHERS.values()) for key in keys)}
  for key in sorted({*rope, *sliding} - known):
    value = rope.get(key, sliding.get(key))
    if value is not None:
      raise ValueError(f"{source}: rope {key}={value!r:.60} is not supported for {family}.")
  if kind == "default": return out
  dim = out.get("rope_dim") or hf["head_dim"]
  return out | {"rope_scaling": (kind, *_numbers(kind, rope, hf, source, dim))}


def _object(values, key, source):
  """values[key] if it is an object; an empty one if it is absent or null."""
  x = values.get(key)
  if not isinstance(x, dict | None):
    raise ValueError(f"{source}: {key}={x!r:.60}; null or an object.")
  return x or {}


def _kind(rope):
  """The kind of rotary scaling."""
  kind = rope.get("rope_type") or rope.get("type") or "default"
  return "longrope" if kind == "su" else kind  # Its name in older Phi-3 files.


def _numbers(kind, rope, hf, source, dim):
  """What follows the kind in DecoderConfig.rope_scaling."""
  of = lambda key, of_kind=float: number(rope, key, source, of_kind)
  if kind == "linear": return (of("factor"),)
  if kind == "dynamic":
    if dim == 2: raise ValueError(f"{source}: head_dim=2; 'dynamic' needs more than one frequency.")
    return of("factor"), number(hf, "max_position_embeddings", source, int)
  # Phi-3 has it beside the others. transformers takes the context where it is absent.
  for values in (hf, rope, {"original_max_position_embeddings": hf["max_position_embeddings"]}):
    if values.get("original_max_position_embeddings") is not None: break
  original = number(values, "original_max_position_embeddings", source, int)
  if original == 1:  # Its logarithm divides.
    raise ValueError(f"{source}: original_max_position_embeddings=1; at least 2 is needed.")
  if kind == "llama3":
    factor, low, high = (of(key) for key in _ROPE[kind][:3])
    if low >= high:
      raise ValueError(f"{source}: low_freq_factor={low} must be below high_freq_factor={high}.")
    return factor, low, high, float(original)
  factor = (number(hf, "max_position_embeddings", source, int) / original
            if kind == "longrope" and rope.get("factor") is None else of("factor"))
  given = rope.get("attention_factor") is not None
  if kind == "longrope":
    size = (of("attention_factor") if given else 1.0 if factor <= 1 else
            math.sqrt(1 + math.log(factor) / math.log(original)))
    return original, size, *(_factors(rope, key, source, dim) for key in _ROPE[kind][2:])
  more = lambda scale: 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1
  if given: size = of("attention_factor")
  elif rope.get("mscale") and rope.get("mscale_all_dim"):
    size = more(of("mscale")) / more(of("mscale_all_dim"))
  else: size = more(1.0)
  betas = [of(key) if rope.get(key) else default
           for key, default in (("beta_fast", 32.0), ("beta_slow", 1.0))]
  truncate = flag(rope, "truncate", source) if "truncate" in rope else True
  return factor, *betas, original, size, truncate


def _factors(rope, key, source, dim):
  """A tuple of factors of the frequencies."""
  found = rope.get(key)
  if not isinstance(found, list) or len(found) != dim // 2:
    raise ValueError(f"{source}: {key}={found!r:.60}; {dim // 2} numbers are needed.")
  return tuple(number({key: x}, key, source) for x in found)
