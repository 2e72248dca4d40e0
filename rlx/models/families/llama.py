"""Llama 2, 3, 3.1 and 3.2, Mistral, Mixtral, and models of their shape."""
from rlx.models.families import _config, _names

LAYER = _names.NORMS | _names.ATTENTION | _names.MLP
TABLES = _names.tables(LAYER, interleaved=True)

LLAMA = _config.Family("llama", "LlamaForCausalLM", *TABLES, biases=("attention_bias", "mlp_bias"))

# Llama with a window. GGUF files of Mistral have the architecture "llama".
MISTRAL = _config.Family(
    "mistral", "MistralForCausalLM", *TABLES, reads={"sliding_window"},
    defaults={"num_key_value_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131072},
    switches=lambda hf, source: dict(windows=_config.windows(hf, source)), keys=_config.window_keys)

# Keys of training: an auxiliary loss and noise in the router, which rlx does not have.
MIXTURE_TRAINING = {"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"}


def experts(hf, source, key="num_local_experts"):
  """The fields of a mixture of experts; `key` holds how many experts there are."""
  n, k = (_config.number(hf, name, source, int) for name in (key, "num_experts_per_tok"))
  if k > n: raise ValueError(f"{source}: num_experts_per_tok={k}; there are {key}={n}.")
  return dict(n_experts=n, experts_per_token=k)


MIXTRAL = _config.Family(
    "mixtral", "MixtralForCausalLM",
    *_names.tables(_names.NORMS, _names.ATTENTION,
                   _names.experts("block_sparse_moe", "w1", "w3", "w2"), interleaved=True),
    reads={"num_experts_per_tok", "num_local_experts", "sliding_window", *MIXTURE_TRAINING},
    defaults={"num_key_value_heads": 8, "num_experts_per_tok": 2, "num_local_experts": 8,
              "rope_theta": 1e6, "sliding_window": None},
    switches=lambda hf, source: experts(hf, source) | dict(
        windows=_config.windows(hf, source, by_layer=False)),
    keys=lambda config: _config.window_keys(config) | dict(
        num_local_experts=config.n_experts, num_experts_per_tok=config.experts_per_token))
