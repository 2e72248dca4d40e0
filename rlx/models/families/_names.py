"""Names of tensors in Hugging Face and GGUF checkpoints.

A family has two tables, {name: (our path, layout)}. A layout spells the axes of the foreign
tensor in our letters, out before in; (NH) is one axis made of two. In a name, `{L}` stands for
the layer and `{E}` for the expert. Some GGUF files interleave the two halves of each head that
is rotated: there H is written hc, for H/2 pairs of c = 2.
"""

_START = {  # our path: (layout, Hugging Face name, GGUF name)
    "embed.w_VD": ("VD", "model.embed_tokens", "token_embd")}
_END = {
    "norm.scale_D": ("D", "model.norm", "output_norm"), "head.w_DV": ("VD", "lm_head", "output")}

# Tensors of a layer, whose names follow "model.layers.{L}." and "blk.{L}.".
NORMS = {
    "layers.attn_norm.scale_LD": ("D", "input_layernorm", "attn_norm"),
    "layers.mlp_norm.scale_LD": ("D", "post_attention_layernorm", "ffn_norm")}
POST_NORMS = {
    "layers.attn_post_norm.scale_LD": ("D", "post_attention_layernorm", "post_attention_norm"),
    "layers.mlp_post_norm.scale_LD": ("D", "post_feedforward_layernorm", "post_ffw_norm")}
HEAD_NORMS = {  # one scale for all heads
    "layers.attn.q_norm.scale_LH": ("H", "self_attn.q_norm", "attn_q_norm"),
    "layers.attn.k_norm.scale_LH": ("H", "self_attn.k_norm", "attn_k_norm")}
ATTENTION = {
    "layers.attn.q_LDNH": ("(NH)D", "self_attn.q_proj", "attn_q"),
    "layers.attn.k_LDKH": ("(KH)D", "self_attn.k_proj", "attn_k"),
    "layers.attn.v_LDKH": ("(KH)D", "self_attn.v_proj", "attn_v"),
    "layers.attn.o_LNHD": ("D(NH)", "self_attn.o_proj", "attn_output")}
MLP = {
    "layers.mlp.gate_LDF": ("FD", "mlp.gate_proj", "ffn_gate"),
    "layers.mlp.up_LDF": ("FD", "mlp.up_proj", "ffn_up"),
    "layers.mlp.down_LFD": ("DF", "mlp.down_proj", "ffn_down")}


def experts(prefix, gate, up, down):
  """Tensors of a mixture of experts, of which Hugging Face has one per expert, GGUF one.

  Args:
    prefix: of the mixture in Hugging Face's names.
    gate, up, down: what Hugging Face calls an expert's matrices.
  """
  names = prefix + ".experts.{E}."
  return {"layers.mlp.router_LDE": ("ED", f"{prefix}.gate", "ffn_gate_inp"),
          "layers.mlp.gate_LEDF": ("FD", names + gate, "ffn_gate_exps"),
          "layers.mlp.up_LEDF": ("FD", names + up, "ffn_up_exps"),
          "layers.mlp.down_LEFD": ("DF", names + down, "ffn_down_exps")}


def tables(*parts: dict, interleaved: bool = False) -> tuple[dict, dict]:
  """The tables of a family, for Hugging Face and for GGUF.

  Names that a checkpoint's config does not ask for, such as biases, do no harm.

  Args:
    *parts: dicts of a layer's tensors.
    interleaved: whether GGUF interleaves the halves of queries and keys.
  """
  layer = {path: tensor for part in parts for path, tensor in part.items()}
  biases = {path: layer[path] for path in (ATTENTION | MLP) if path in layer}
  hf: dict = {}
  gguf: dict = {}
  def add(path, layout, hf_name, gguf_name, kind="weight"):
    in_layer = path.startswith("layers.")
    hf["model.layers.{L}." * in_layer + f"{hf_name}.{kind}"] = path, layout
    if "{E}" in hf_name: layout = "E" + layout
    if interleaved and gguf_name in ("attn_q", "attn_k"): layout = layout.replace("H", "hc")
    gguf["blk.{L}." * in_layer + f"{gguf_name}.{kind}"] = path, layout
  for path, tensor in (_START | layer | _END).items(): add(path, *tensor)
  hf |= {"score.weight": ("value.w_D1", "1D"), "score.bias": ("value.b_1", "1")}
  for path, (layout, hf_name, gguf_name) in biases.items():
    out = layout[:layout.index(")") + 1] if layout.startswith("(") else layout[0]
    add(f"{path.rpartition('_')[0]}_bias_L{out.strip('()')}", out, hf_name, gguf_name, kind="bias")
  return hf, gguf
