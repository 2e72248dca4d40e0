"""Mistral: Llama with a window.

GGUF files of Mistral say architecture "llama".
"""
from rlx.models.families import _config
from rlx.models.families import llama

KEYS = llama.KEYS
GGUF_KEYS = llama.GGUF_KEYS

# What a file without them means.
_DEFAULTS = {"num_key_value_heads": 8, "sliding_window": 4096,
             "max_position_embeddings": 131072}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  hf = _DEFAULTS | hf
  return _config.to_decoder(hf, source, family="mistral", reads={"sliding_window"},
                            windows=_config.windows(hf, source))


def hf_config(config):
  """The config.json of `config`."""
  return _config.to_hf(config, architecture="MistralForCausalLM", model_type="mistral",
                       **_config.of_windows(config, by_layer=False))
