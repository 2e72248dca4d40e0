"""Phi-3 and Phi-4: Llama with fused projections and, in some, a window, a part of each head
without rotary angles (Phi-4-mini) or longrope."""
from rlx.models import transformer
from rlx.models.families import _config, _names, llama


def _fuse(table, attention, mlp):
  """`table` with one tensor for queries, keys and values, and one for gate and up.

  Args:
    table: of separate projections.
    attention, mlp: the tensors' names.
  """
  qkv, gate_up = (tuple((path, layout) for path, layout in table.values() if path in paths)
                  for paths in (("layers.attn.q_LDNH", "layers.attn.k_LDKH", "layers.attn.v_LDKH"),
                                ("layers.mlp.gate_LDF", "layers.mlp.up_LDF")))
  return {k: v for k, v in table.items() if v not in qkv + gate_up} | {attention: qkv, mlp: gate_up}


_HF, _GGUF = _names.tables(llama.LAYER)


def _keys(config):
  original = {transformer.ORIGINAL: config.rope_scaling[1]} if config.rope_scaling else {}
  return _config.window_keys(config) | original


PHI3 = _config.Family(
    "phi3", "Phi3ForCausalLM",
    _fuse(_HF, "model.layers.{L}.self_attn.qkv_proj.weight",
          "model.layers.{L}.mlp.gate_up_proj.weight"),
    _fuse(_GGUF, "blk.{L}.attn_qkv.weight", "blk.{L}.ffn_up.weight"),
    ropes=("longrope",), keys=_keys,
    # A file without it means 4096, also where its rotary scaling has a number of that name.
    defaults={transformer.ORIGINAL: 4096},
    # auto_map names code that Phi's files came with; none is run.
    reads={"auto_map", "embd_pdrop", transformer.ORIGINAL, "partial_rotary_factor", "resid_pdrop",
           "sliding_window"},
    switches=lambda hf, source: dict(windows=_config.windows(hf, source, by_layer=False)))
