"""Phi-3 and Phi-4: Llama with fused projections and, in some, a window, a part of a head
that does not rotate (Phi-4-mini) or longrope."""
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


# What a file without it means, also where its rotary scaling has a number of that name.
_DEFAULTS = {"original_max_position_embeddings": 4096}


def decoder_config(hf, source="config.json"):
  """DecoderConfig of a parsed config.json; `source` is what messages call it."""
  return _config.to_decoder(
      hf, source, family="phi3", ropes=("longrope",), defaults=_DEFAULTS,
      windows=_config.windows(hf, source, by_layer=False),
      # auto_map names code that Phi's files came with; none is run.
      reads={"auto_map", "embd_pdrop", "original_max_position_embeddings",
             "partial_rotary_factor", "resid_pdrop", "sliding_window"})


def hf_config(config):
  """The config.json of `config`."""
  hf = _config.to_hf(config, architecture="Phi3ForCausalLM", model_type="phi3",
                     **_config.of_windows(config, by_layer=False))
  if config.rope_scaling:
    hf["original_max_position_embeddings"] = config.rope_scaling[1]
  return hf
