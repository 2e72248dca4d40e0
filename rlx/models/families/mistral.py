"""Mistral: Llama, with a window where the file asks for one, which is refused.

GGUF files of Mistral say architecture "llama".
"""
from rlx.models.families import _config
from rlx.models.families import llama

KEYS = llama.KEYS
GGUF_KEYS = llama.GGUF_KEYS
hf_config = llama.hf_config  # The same function: what is written is a Llama.

# What a file without them means.
_DEFAULTS = {"num_key_value_heads": 8, "sliding_window": 4096,
             "max_position_embeddings": 131072}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  _config.refuse_window({**_DEFAULTS, **hf}, source, family="mistral")
  return _config.to_decoder(hf, source, family="mistral", defaults=_DEFAULTS,
                            ignored={"sliding_window"})
