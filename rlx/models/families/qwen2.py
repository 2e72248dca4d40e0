"""Qwen2, Qwen2.5 and Qwen2.5-Math: Llama with biases on queries, keys and values, and a
window on the upper layers if use_sliding_window says so."""
from rlx.models.families import _config
from rlx.models.families import llama

KEYS = llama.KEYS
GGUF_KEYS = llama.GGUF_HALVES

WINDOW_KEYS = {"max_window_layers", "sliding_window", "use_sliding_window"}
# What a file without them means.
_OF_WINDOWS = {"sliding_window": 4096, "max_window_layers": 28}
DEFAULTS = {"num_key_value_heads": 32}


def windows(hf, source):
  """DecoderConfig.windows; also of Qwen3's files."""
  if not _config.flag(hf, "use_sliding_window", source):
    return _config.windows(hf, source, window=None)
  hf = _OF_WINDOWS | hf
  first = hf["max_window_layers"]
  if first != 0: first = _config.number(hf, "max_window_layers", source, int)
  return _config.windows(hf, source, is_local=lambda i: i >= first)


def of_windows(config):
  """The keys of config.json that say `config.windows`."""
  if config.windows is None: return {"use_sliding_window": False}
  return _config.of_windows(config) | {"use_sliding_window": True}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  return _config.to_decoder(hf, source, family="qwen2", qkv_bias=True, defaults=DEFAULTS,
                            reads=WINDOW_KEYS, windows=windows(hf, source))


def hf_config(config):
  """The config.json of `config`."""
  return _config.to_hf(config, architecture="Qwen2ForCausalLM", model_type="qwen2",
                       **of_windows(config))
