"""Qwen2, Qwen2.5 and Qwen3: Llama with biases on queries, keys and values (2) or an RMSNorm on
each query and key head (3), and a window on the upper layers if use_sliding_window is true."""
from rlx.models.families import _config, _names, llama

WINDOW_KEYS = {"max_window_layers", "sliding_window", "use_sliding_window"}
_DEFAULTS = {"num_key_value_heads": 32, "sliding_window": 4096, "max_window_layers": 28}


def _switches(hf, source):
  if not _config.flag(hf, "use_sliding_window", source): return {}
  first = hf["max_window_layers"]
  if first != 0: first = _config.number(hf, "max_window_layers", source, int)
  return dict(windows=_config.windows(hf, source, is_local=lambda i: i >= first))


def window_keys(config):
  """The keys of config.json for a window that use_sliding_window turns on."""
  if config.windows is None: return {"use_sliding_window": False}
  return _config.layer_window_keys(config) | {"use_sliding_window": True}


QWEN2 = _config.Family(
    "qwen2", "Qwen2ForCausalLM", *_names.tables(llama.LAYER), defaults=_DEFAULTS,
    reads=WINDOW_KEYS, fixed=dict(qkv_bias=True), switches=_switches, keys=window_keys)

QWEN3 = _config.Family(
    "qwen3", "Qwen3ForCausalLM", *_names.tables(llama.LAYER, _names.HEAD_NORMS),
    defaults=_DEFAULTS | {"head_dim": 128}, biases=("attention_bias",), reads=WINDOW_KEYS,
    fixed=dict(qk_norm="head"), switches=_switches, keys=window_keys)


def _mixture(hf, source):
  if hf.get("mlp_only_layers") or hf["decoder_sparse_step"] != 1:
    raise ValueError(
        f"{source}: mlp_only_layers={hf.get('mlp_only_layers')!r:.60}, decoder_sparse_step="
        f"{hf['decoder_sparse_step']!r:.60}; only [] and 1, experts in every layer, are "
        "supported for qwen3_moe.")
  # The published files have num_experts, those of transformers 5 num_local_experts.
  key, other = "num_experts", "num_local_experts"
  if hf.get(key) is None: key, other = other, key
  if hf.get(other) is not None:
    raise ValueError(f"{source}: {key}={hf[key]!r:.60} and {other}={hf[other]!r:.60}; only one of "
                     "them is supported for qwen3_moe.")
  return llama.experts(hf, source, key) | dict(norm_topk=_config.flag(hf, "norm_topk_prob", source))


QWEN3_MOE = _config.Family(
    "qwen3_moe", "Qwen3MoeForCausalLM",
    *_names.tables(_names.NORMS, _names.ATTENTION, _names.HEAD_NORMS,
                   _names.experts("mlp", "gate_proj", "up_proj", "down_proj")),
    biases=("attention_bias",), fixed=dict(qk_norm="head"), d_ff="moe_intermediate_size",
    defaults={
        "num_key_value_heads": 4, "num_experts_per_tok": 8, "norm_topk_prob": False,
        "decoder_sparse_step": 1, "moe_intermediate_size": 768},
    reads={"decoder_sparse_step", "mlp_only_layers", "moe_intermediate_size", "norm_topk_prob",
           "num_experts", "num_local_experts", "num_experts_per_tok", *llama.MIXTURE_TRAINING,
           # use_sliding_window is refused: transformers 4 and 5 mean other layers by it.
           "max_window_layers", "sliding_window"},
    switches=_mixture,
    keys=lambda config: dict(
        num_experts=config.n_experts, num_experts_per_tok=config.experts_per_token,
        moe_intermediate_size=config.d_ff, norm_topk_prob=config.norm_topk,
        decoder_sparse_step=1, mlp_only_layers=[]))
