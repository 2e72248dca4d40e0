"""Mixtral: Mistral with a mixture of experts."""
from rlx.models.families import _config
from rlx.models.families import llama

_MOE = "model.layers.{L}.block_sparse_moe"
KEYS = {k: v for k, v in llama.KEYS.items() if ".mlp." not in k} | {
    f"{_MOE}.gate.weight": ("layers.mlp.router_LDE", "ED"),
    f"{_MOE}.experts.{{E}}.w1.weight": ("layers.mlp.gate_LEDF", "FD"),
    f"{_MOE}.experts.{{E}}.w3.weight": ("layers.mlp.up_LEDF", "FD"),
    f"{_MOE}.experts.{{E}}.w2.weight": ("layers.mlp.down_LEFD", "DF"),
}

GGUF_EXPERTS = {  # One tensor holds the experts of a layer.
    "blk.{L}.ffn_gate_inp.weight": ("layers.mlp.router_LDE", "ED"),
    "blk.{L}.ffn_gate_exps.weight": ("layers.mlp.gate_LEDF", "EFD"),
    "blk.{L}.ffn_up_exps.weight": ("layers.mlp.up_LEDF", "EFD"),
    "blk.{L}.ffn_down_exps.weight": ("layers.mlp.down_LEFD", "EDF"),
}
GGUF_KEYS = {k: v for k, v in llama.GGUF_KEYS.items()
             if not v[0].startswith("layers.mlp.")} | GGUF_EXPERTS

# What a file without them means.
_DEFAULTS = {"num_key_value_heads": 8, "num_experts_per_tok": 2, "num_local_experts": 8,
             "rope_theta": 1e6, "sliding_window": None}
# Of training: a loss beside the policy's, and noise, which rlx has neither of.
TRAINING = {"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"}


def experts(hf, source, key="num_local_experts"):
  """The switches of a mixture; `key` says how many experts there are."""
  n, k = (_config.number(hf, name, source, int) for name in (key, "num_experts_per_tok"))
  if k > n: raise ValueError(f"{source}: num_experts_per_tok={k}; there are {key}={n}.")
  return dict(n_experts=n, experts_per_token=k)


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  hf = _DEFAULTS | hf
  return _config.to_decoder(
      hf, source, family="mixtral", windows=_config.windows(hf, source, by_layer=False),
      reads={"num_experts_per_tok", "num_local_experts", "sliding_window", *TRAINING},
      **experts(hf, source))


def hf_config(config):
  """The config.json of `config`."""
  return _config.to_hf(
      config, architecture="MixtralForCausalLM", model_type="mixtral",
      num_local_experts=config.n_experts, num_experts_per_tok=config.experts_per_token,
      **_config.of_windows(config, by_layer=False))
