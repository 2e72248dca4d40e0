"""OLMo 2: norms after each sublayer instead of before, and of all queries and keys of a token
together."""
from rlx.models.families import _config, _names

_NORMS = _names.POST_NORMS | {
    "layers.attn.q_norm.scale_LNH": ("(NH)", "self_attn.q_norm", "attn_q_norm"),
    "layers.attn.k_norm.scale_LKH": ("(KH)", "self_attn.k_norm", "attn_k_norm")}

OLMO2 = _config.Family(
    "olmo2", "Olmo2ForCausalLM", *_names.tables(_names.ATTENTION, _names.MLP, _NORMS),
    biases=("attention_bias",), fixed=dict(norms="post", qk_norm="all"))
