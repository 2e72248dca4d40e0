"""SmolLM3: Llama with layers without rotary angles, and a window on those if
use_sliding_window is true."""
from rlx.models.families import _config, llama, qwen


def _switches(hf, source):
  n = _config.layers(hf, source)
  rotates = hf.get("no_rope_layers")  # 1 where a layer rotates, in spite of the name.
  if rotates is None:
    every = _config.number(hf, "no_rope_layer_interval", source, int)
    rotates = [int((i + 1) % every != 0) for i in range(n)]
  if (not isinstance(rotates, list) or len(rotates) < n  # More are of layers that were cut off.
      or any(x not in (0, 1) for x in rotates)):
    raise ValueError(f"{source}: no_rope_layers={rotates!r:.60}; {n} times 0 or 1 is needed.")
  window = "sliding_window" if _config.flag(hf, "use_sliding_window", source) else None
  return dict(no_rope=tuple(i for i in range(n) if not rotates[i]),
              windows=_config.windows(hf, source, is_local=lambda i: not rotates[i], window=window))


SMOLLM3 = _config.Family(
    "smollm3", "SmolLM3ForCausalLM", *llama.TABLES, biases=("attention_bias", "mlp_bias"),
    reads={"no_rope_layers", "no_rope_layer_interval", *qwen.WINDOW_KEYS},
    defaults={"num_key_value_heads": 4, "rope_theta": 2e6, "tie_word_embeddings": True,
              "no_rope_layer_interval": 4},
    switches=_switches,
    keys=lambda config: qwen.window_keys(config) | dict(
        no_rope_layers=[int(i not in config.no_rope) for i in range(config.n_layers)]))
