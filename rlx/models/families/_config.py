"""A family of models: its Hugging Face config.json <-> DecoderConfig."""
import dataclasses
import math
from collections.abc import Callable, Set

from rlx.models import transformer, value as value_model

_FIELDS = {  # config.json -> DecoderConfig
    "vocab_size": "vocab_size", "hidden_size": "d_model",
    "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads", "head_dim": "head_dim",
    "intermediate_size": "d_ff", "rms_norm_eps": "norm_eps",
    "tie_word_embeddings": "tied_head", "max_position_embeddings": "context"}

# The only values that the decoder supports. The first is named in messages.
_ONLY = {
    "attention_bias": (False, None), "full_attn_mod": (1, None), "hidden_act": ("silu",),
    "interpolate_factor": (1, None), "is_encoder_decoder": (False, None),
    "lm_head_bias": (False, None), "mlp_bias": (False, None),
    "partial_rotary_factor": (1.0, None), "use_bidirectional_attention": (False, None),
    "use_mrope": (False, None), "use_sliding_window": (False, None)}

# Keys that do not change the forward pass. Any other key that is not null is refused.
_IGNORED = {
    "_attn_implementation_autoset", "_model_name_or_path", "_name_or_path",
    "architectures", "attention_dropout", "bos_token_id", "cache_implementation",
    "chunk_size_feed_forward", "dtype", "eos_token_id", "id2label", "initializer_range",
    "is_llama_config", "label2id", "layer_types", "max_sequence_length", "model_type", "num_labels",
    "output_attentions", "output_hidden_states", "pad_token_id", "pretraining_tp",
    "problem_type", "return_dict", "rope_interleaved", "rope_parameters", "rope_scaling",
    "rope_theta", "score_head", "tokenizer_class", "torch_dtype", "transformers.js_config",
    "transformers_version", "unk_token_id", "unsloth_fixed", "unsloth_version", "use_cache",
    # Sampling options, which transformers 4 stored here; a run has its own.
    "do_sample", "length_penalty", "max_length", "max_new_tokens", "min_length", "num_beams",
    "repetition_penalty", "temperature", "top_k", "top_p"}

_SCORES = "ForSequenceClassification"  # The end of an architecture with a head for scores.
_ORIGINAL, _ROPE = transformer.ORIGINAL, transformer.ROPE_SCALING
_ROPE_KEYS = {  # all that are read or known not to matter
    "rope_theta", "rope_type", "type", "partial_rotary_factor", "finetuned", "mscale",
    "mscale_all_dim", *(key for keys in _ROPE.values() for key in keys)}


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
  """The checkpoints of one `model_type`: their tensors and what config.json means.

  Attributes:
    model_type, architecture: as in config.json.
    tensors: {Hugging Face name: (our path, layout)}, see `_names.py`.
    gguf_tensors: the same with GGUF names.
    defaults: values of keys that config.json may leave out.
    reads: keys that only this family has: `switches` reads them, or they do not change
      the forward pass.
    biases: attention_bias and mlp_bias, if models of this family may have them.
    ropes: kinds of rotary scaling that config.json may ask for.
    fixed: fields of DecoderConfig that all models of this family have in common.
    switches: (config.json, its name) -> fields of DecoderConfig that follow from `reads`.
    keys: DecoderConfig -> the keys of config.json that `switches` reads.
    d_ff: the key that holds the width of an MLP.
  """
  model_type: str
  architecture: str
  tensors: dict
  gguf_tensors: dict
  defaults: dict = dataclasses.field(default_factory=dict)
  reads: Set[str] = frozenset()
  biases: tuple = ()
  ropes: tuple = tuple(_ROPE)
  fixed: dict = dataclasses.field(default_factory=dict)
  switches: Callable = lambda hf, source: {}
  keys: Callable = lambda config: {}
  d_ff: str = "intermediate_size"

  def decoder_config(self, hf, source="config.json"):
    """DecoderConfig of a parsed config.json.

    Args:
      hf: the parsed config.json.
      source: what messages call it.
    Raises:
      ValueError: a key is missing, unknown, or asks for what the decoder does not
        compute, or a value is of the wrong type or out of range.
    """
    hf = {"tie_word_embeddings": False, **self.defaults, **hf}
    switches = self.fixed | self.switches(hf, source)
    if self.d_ff in hf: hf["intermediate_size"] = hf[self.d_ff]
    for key in sorted(set(hf) - set(_FIELDS) - _IGNORED - {*self.reads, *self.biases}):
      if hf[key] not in (allowed := _ONLY.get(key, (None,))):
        raise ValueError(f"{source}: {key}={hf[key]!r:.60} is not supported for {self.model_type}"
                         + (f"; only {allowed[0]!r} is." if key in _ONLY else "."))
    if hf.get("num_key_value_heads") is None:
      hf["num_key_value_heads"] = hf.get("num_attention_heads")
    if hf.get("head_dim") is None:
      hf["head_dim"] = (number(hf, "hidden_size", source, int)
                        // number(hf, "num_attention_heads", source, int))
    hf.setdefault("max_position_embeddings", None)
    if missing := sorted(set(_FIELDS) - set(hf)):
      raise ValueError(f"{source}: {missing} missing; {self.model_type} needs it.")
    for key in _FIELDS:
      if key == "tie_word_embeddings": flag(hf, key, source)
      elif key != "max_position_embeddings" or hf[key] is not None:
        number(hf, key, source, float if key == "rms_norm_eps" else int)
    if hf["num_attention_heads"] % hf["num_key_value_heads"] or hf["head_dim"] % 2:
      raise ValueError(
          f"{source}: num_key_value_heads={hf['num_key_value_heads']} must divide "
          f"num_attention_heads={hf['num_attention_heads']}, and 2 head_dim={hf['head_dim']}.")
    if "attention_bias" in self.biases:
      switches["qkv_bias"] = switches["o_bias"] = flag(hf, "attention_bias", source)
    if "mlp_bias" in self.biases: switches["mlp_bias"] = flag(hf, "mlp_bias", source)
    if "windows" not in switches: switches["windows"] = windows(hf, source, window=None)
    fields = {ours: hf[theirs] for theirs, ours in _FIELDS.items()} | switches
    kinds = hf.get("architectures")
    if isinstance(kinds, list) and any(str(kind).endswith(_SCORES) for kind in kinds):
      fields |= dict(has_head=True, tied_head=True)  # There is none for tokens.
      if "score_head" in hf:  # Of rlx: a head of several numbers, see models/value.py.
        kind, n = hf["score_head"], number(hf, "num_labels", source, int)
        if kind not in value_model.HEADS or n > 128 or n != value_model.count_outputs(kind, n // 2):
          raise ValueError(f"{source}: score_head={kind!r:.60} with num_labels={n}: one of "
                           f"{value_model.HEADS}, with 1, 2, 2 and an even number of labels.")
        fields |= dict(score_head=kind, outputs=n)
    return transformer.DecoderConfig(**fields, **_rope(self, hf, source))

  def hf_config(self, config):
    """A config.json for `config` that transformers 4 and 5 read."""
    hf = {theirs: getattr(config, ours) for theirs, ours in _FIELDS.items()}
    if config.context is None: del hf["max_position_embeddings"]
    rope = {"rope_theta": config.rope_theta, "rope_type": "default"}
    if config.rope_scaling:
      kind, *numbers = config.rope_scaling
      rope.update(zip(_ROPE[kind], [list(x) if isinstance(x, tuple) else x for x in numbers]),
                  rope_type=kind)
      if kind == "dynamic": del rope[_ORIGINAL]  # It is max_position_embeddings.
    if _ORIGINAL in rope: rope[_ORIGINAL] = int(rope[_ORIGINAL])  # transformers wants an integer.
    if config.rope_dim is not None:
      rope["partial_rotary_factor"] = config.rope_dim / config.head_dim
      hf["partial_rotary_factor"] = rope["partial_rotary_factor"]
    if config.o_bias: hf["attention_bias"] = True
    if config.mlp_bias: hf["mlp_bias"] = True
    hf |= {"architectures": [self.architecture], "model_type": self.model_type,
           "hidden_act": "silu", "pad_token_id": None, "rope_theta": config.rope_theta,
           "rope_scaling": rope if config.rope_scaling else None, "rope_parameters": rope}
    if config.local_theta is not None:
      local = {"rope_type": "default", "rope_theta": config.local_theta}
      hf["rope_parameters"] = {"full_attention": rope, "sliding_attention": local}
    return hf | self.keys(config) | self.head_keys(config)

  def head_keys(self, config):
    """The keys of config.json by which a model with a head for scores differs from others."""
    if not config.has_head: return {}
    keys = {"architectures": [self.architecture.replace("ForCausalLM", _SCORES)],
            "num_labels": config.outputs}
    return keys | ({} if config.score_head == "plain" else {"score_head": config.score_head})


def windows(hf, source, *, window="sliding_window", is_local=lambda i: True, by_layer=True):
  """DecoderConfig.windows: how far back each layer attends.

  A window as long as the context is kept: sequences may be longer where the context is
  stretched, and the rotary angles of layers with a window may differ.

  Args:
    window: the key that holds the number of positions; None: there is none.
    is_local: layer number -> whether it has the window, if layer_types does not say.
    by_layer: False for families whose layer_types transformers does not read.
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


def window_keys(config):
  """The keys of config.json for a window that all layers have, or none."""
  return {"sliding_window": config.windows and max(config.windows)}


def layer_window_keys(config):
  """The keys of config.json for a window that some layers have."""
  windows_L = config.windows or (0,) * config.n_layers
  return (window_keys(config) if config.windows else {}) | {
      "layer_types": ["sliding_attention" if w else "full_attention" for w in windows_L]}


def layers(hf, source):
  """num_hidden_layers, if it is small enough for a list of the layers."""
  n = number(hf, "num_hidden_layers", source, int)
  if n > 10_000: raise ValueError(f"{source}: num_hidden_layers={n}; at most 10000.")
  return n


def number(values, key, source, kind=float):
  """values[key] as `kind`, int or float, if it is a number above 0."""
  x = values.get(key)
  # Integers fit an int32, real numbers a float32; comparisons with NaN are false.
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


def _rope(family, hf, source):
  """The fields of DecoderConfig that describe the rotary angles.

  transformers 4 writes rope_scaling, transformers 5 rope_parameters, which Gemma 3 nests by
  the kind of layer. In a file with both, rope_scaling replaces rope_parameters; where those
  are nested, it updates those of the layers without a window.
  """
  def refuse(name, value, allowed=""):
    raise ValueError(f"{source}: {name}={value!r:.60} is not supported for {family.model_type}"
                     f"{allowed}.")
  scaling, rope = (_object(hf, key, source) for key in ("rope_scaling", "rope_parameters"))
  fields, sliding = {}, {}
  if "rope_local_base_freq" in family.reads:
    if unknown := sorted(set(rope) - {"full_attention", "sliding_attention"}):
      refuse(f"rope_parameters.{unknown[0]}", rope[unknown[0]],
             "; only full_attention and sliding_attention are")
    sliding, rope = (_object(rope, kind + "_attention", source) for kind in ("sliding", "full"))
    if scaling.get("type") not in (None, "default", scaling.get("rope_type")):
      refuse("rope_scaling type", scaling["type"],
             ", where transformers 5 does not read it; rope_type is")
    rope = rope | scaling
    theta = {"rope_local_base_freq": sliding.get("rope_theta", hf["rope_local_base_freq"])}
    fields["local_theta"] = number(theta, "rope_local_base_freq", source)
    if _kind(sliding) != "default":
      refuse("rope_parameters.sliding_attention", sliding, "; only rope_type 'default' is")
    # transformers reads it next to the two kinds of layers, where it is absent: True.
    if not rope.get("truncate", True): refuse("rope truncate", rope["truncate"], "; only True is")
  else:
    rope = scaling or rope
  theta = {"rope_theta": rope.get("rope_theta", hf.get("rope_theta", 10000.0))}
  fields["rope_theta"] = number(theta, "rope_theta", source)
  if fields["rope_theta"] <= 1:  # Frequencies fall only above 1; yarn divides by the logarithm.
    raise ValueError(f"{source}: rope_theta={fields['rope_theta']}; a number above 1 is needed.")
  part = rope.get("partial_rotary_factor")
  if part is None: part = hf.get("partial_rotary_factor")
  if part is not None and (part != 1 or isinstance(part, bool)):
    dim = int(hf["head_dim"] * number({"partial_rotary_factor": part}, "partial_rotary_factor",
                                      source))
    if ("partial_rotary_factor" not in family.reads or not 0 < dim < hf["head_dim"] or dim % 2):
      refuse("partial_rotary_factor", part, "; only 1.0 is")
    fields["rope_dim"] = dim
  kind = _kind(rope)
  if kind != "default" and kind not in family.ropes:
    refuse("rope_type", kind, f"; {', '.join(('default', *family.ropes))} are")
  for key, value in sorted({**sliding, **rope}.items()):
    if key not in _ROPE_KEYS and value is not None: refuse(f"rope {key}", value)
  if kind == "default": return fields
  dim = fields.get("rope_dim") or hf["head_dim"]
  return fields | {"rope_scaling": (kind, *_numbers(kind, rope, hf, source, dim))}


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
  get = lambda key: number(rope, key, source)
  if kind == "linear": return (get("factor"),)
  if kind == "dynamic":
    if dim == 2: raise ValueError(f"{source}: head_dim=2; 'dynamic' needs more than one frequency.")
    return get("factor"), number(hf, "max_position_embeddings", source, int)
  # Phi-3 has it outside of its rotary keys. transformers takes the context if it is absent.
  for values in (hf, rope, {_ORIGINAL: hf["max_position_embeddings"]}):
    if values.get(_ORIGINAL) is not None: break
  original = number(values, _ORIGINAL, source, int)
  if original == 1:  # Its logarithm divides.
    raise ValueError(f"{source}: {_ORIGINAL}=1; at least 2 is needed.")
  if kind == "llama3":
    factor, low, high = (get(key) for key in _ROPE[kind][:3])
    if low >= high:
      raise ValueError(f"{source}: low_freq_factor={low} must be below high_freq_factor={high}.")
    return factor, low, high, float(original)
  factor = (number(hf, "max_position_embeddings", source, int) / original
            if kind == "longrope" and rope.get("factor") is None else get("factor"))
  log = math.log(max(factor, 1))
  if rope.get("attention_factor") is not None: size = get("attention_factor")
  elif kind == "longrope": size = math.sqrt(1 + log / math.log(original))
  elif rope.get("mscale") and rope.get("mscale_all_dim"):
    size = (0.1 * get("mscale") * log + 1) / (0.1 * get("mscale_all_dim") * log + 1)
  else: size = 0.1 * log + 1
  if kind == "longrope":
    return original, size, *(_factors(rope, key, source, dim) for key in _ROPE[kind][2:])
  betas = [get(key) if rope.get(key) else default
           for key, default in (("beta_fast", 32.0), ("beta_slow", 1.0))]
  truncate = flag(rope, "truncate", source) if "truncate" in rope else True
  return factor, *betas, original, size, truncate


def _factors(rope, key, source, dim):
  """A tuple of factors of the frequencies."""
  factors = rope.get(key)
  if not isinstance(factors, list) or len(factors) != dim // 2:
    raise ValueError(f"{source}: {key}={factors!r:.60}; {dim // 2} numbers are needed.")
  return tuple(number({key: x}, key, source) for x in factors)
