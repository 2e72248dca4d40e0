"""Phi-3 and Phi-4 with plain rotary angles: Llama with fused projections.

The long-context files (longrope) and those that rotate a part of a head are refused.
"""
from rlx.models.families import _config
from rlx.models.families import llama

_QKV = (("layers.attn.q_LDNH", "(NH)D"), ("layers.attn.k_LDKH", "(KH)D"),
        ("layers.attn.v_LDKH", "(KH)D"))
_GATE_UP = (("layers.mlp.gate_LDF", "FD"), ("layers.mlp.up_LDF", "FD"))


def _fused(table, qkv, gate_up):
  """`table` with the separate projections replaced by two names."""
  apart = {path for path, _ in _QKV + _GATE_UP}
  return {k: v for k, v in table.items() if v[0] not in apart} | {qkv: _QKV, gate_up: _GATE_UP}


KEYS = _fused(llama.KEYS, "model.layers.{L}.self_attn.qkv_proj.weight",
              "model.layers.{L}.mlp.gate_up_proj.weight")
GGUF_KEYS = _fused(llama.GGUF_KEYS, "blk.{L}.attn_qkv.weight", "blk.{L}.ffn_up.weight")
hf_config = llama.hf_config  # The same function: what is written is a Llama.


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  _config.refuse_window(hf, source, family="phi3")
  return _config.to_decoder(hf, source, family="phi3", ignored={
      "embd_pdrop", "original_max_position_embeddings", "resid_pdrop", "sliding_window"})
