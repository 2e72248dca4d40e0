"""Qwen3 with a mixture of experts in every layer."""
from rlx.models.families import _config
from rlx.models.families import mixtral
from rlx.models.families import qwen3

_MLP = "model.layers.{L}.mlp"
KEYS = {k: v for k, v in qwen3.KEYS.items() if ".mlp." not in k} | {
    f"{_MLP}.gate.weight": ("layers.mlp.router_LDE", "ED"),
    f"{_MLP}.experts.{{E}}.gate_proj.weight": ("layers.mlp.gate_LEDF", "FD"),
    f"{_MLP}.experts.{{E}}.up_proj.weight": ("layers.mlp.up_LEDF", "FD"),
    f"{_MLP}.experts.{{E}}.down_proj.weight": ("layers.mlp.down_LEFD", "DF"),
}

GGUF_KEYS = {k: v for k, v in qwen3.GGUF_KEYS.items()
             if not v[0].startswith("layers.mlp.")} | mixtral.GGUF_EXPERTS

# What a file without them means.
_DEFAULTS = {
    "num_key_value_heads": 4, "num_experts_per_tok": 8, "norm_topk_prob": False,
    "decoder_sparse_step": 1, "moe_intermediate_size": 768, "tie_word_embeddings": False}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  hf = _DEFAULTS | hf
  if hf.get("mlp_only_layers") or hf["decoder_sparse_step"] != 1:
    raise ValueError(
        f"{source}: mlp_only_layers={hf.get('mlp_only_layers')!r:.60}, decoder_sparse_step="
        f"{hf['decoder_sparse_step']!r:.60}; only [] and 1, experts in every layer, are "
        "supported for qwen3_moe.")
  # The published files say num_experts, transformers 5 writes the other.
  key = "num_local_experts" if "num_local_experts" in hf else "num_experts"
  # intermediate_size is of the layers without experts, which there are none of.
  return _config.to_decoder(
      hf | {"intermediate_size": hf["moe_intermediate_size"]}, source, family="qwen3_moe",
      qk_norm="head", biases=("attention_bias",),
      norm_topk=_config.flag(hf, "norm_topk_prob", source),
      reads={"decoder_sparse_step", "mlp_only_layers", "moe_intermediate_size",
             "norm_topk_prob", key, "num_experts_per_tok", *mixtral.TRAINING,
             # use_sliding_window is refused: transformers 4 and 5 mean other layers by it.
             "max_window_layers", "sliding_window"}, **mixtral.experts(hf, source, key))


def hf_config(config):
  """The config.json of `config`."""
  return _config.to_hf(
      config, architecture="Qwen3MoeForCausalLM", model_type="qwen3_moe",
      num_experts=config.n_experts, num_experts_per_tok=config.experts_per_token,
      moe_intermediate_size=config.d_ff, norm_topk_prob=config.norm_topk,
      decoder_sparse_step=1, mlp_only_layers=[])
