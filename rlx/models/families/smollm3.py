"""SmolLM3: Llama with layers that do not rotate, and a window on those if
use_sliding_window says so."""
from rlx.models.families import _config
from rlx.models.families import llama
from rlx.models.families import qwen2

KEYS = llama.KEYS
GGUF_KEYS = llama.GGUF_KEYS

# What a file without them means.
_DEFAULTS = {"num_key_value_heads": 4, "rope_theta": 2e6, "tie_word_embeddings": True,
             "no_rope_layer_interval": 4}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  hf = _DEFAULTS | hf
  n = _config.layers(hf, source)
  rotates = hf.get("no_rope_layers")  # 1 where a layer does, whatever the name says.
  if rotates is None:
    every = _config.number(hf, "no_rope_layer_interval", source, int)
    rotates = [int((i + 1) % every != 0) for i in range(n)]
  if (not isinstance(rotates, list) or len(rotates) < n  # More are of layers that were cut off.
      or any(x not in (0, 1) for x in rotates)):
    raise ValueError(f"{source}: no_rope_layers={rotates!r:.60}; {n} times 0 or 1 is needed.")
  windows = _config.windows(
      hf, source, is_local=lambda i: not rotates[i],
      window="sliding_window" if _config.flag(hf, "use_sliding_window", source) else None)
  return _config.to_decoder(
      hf, source, family="smollm3", biases=("attention_bias", "mlp_bias"), windows=windows,
      reads={"no_rope_layers", "no_rope_layer_interval", *qwen2.WINDOW_KEYS},
      no_rope=tuple(i for i in range(n) if not rotates[i]))


def hf_config(config):
  """The config.json of `config`."""
  return _config.to_hf(
      config, architecture="SmolLM3ForCausalLM", model_type="smollm3",
      no_rope_layers=[int(i not in config.no_rope) for i in range(config.n_layers)],
      **qwen2.of_windows(config))
