"""Low-rank adapters, which are trained while the matrices of a decoder are frozen.

  w x  becomes  (w + scale a b) x,   a [in, I] random, b [I, out] zero at first

so that an adapter changes nothing at first. Adapters are leaves next to the matrix that they
change: joined with the frozen parameters they are one tree, which every forward pass reads.
w + scale a b is formed one layer at a time.

Source: Hu et al. 2021, arXiv:2106.09685. Differs from the paper: a has variance 1 / in; x is
multiplied by the sum, not by a and b in turn, so that every forward pass supports adapters, at
the cost of the gradient of w of one layer at a time.
"""
import math

import jax
import jax.numpy as jnp

# Matrix -> its a and b. I is the rank.
_LEAVES = {
    "q_LDNH": ("q_a_LDI", "q_b_LINH"), "k_LDKH": ("k_a_LDI", "k_b_LIKH"),
    "v_LDKH": ("v_a_LDI", "v_b_LIKH"), "o_LNHD": ("o_a_LNHI", "o_b_LID"),
    "gate_LDF": ("gate_a_LDI", "gate_b_LIF"), "up_LDF": ("up_a_LDI", "up_b_LIF"),
    "down_LFD": ("down_a_LFI", "down_b_LID")}
TARGETS = tuple(leaf.partition("_")[0] for leaf in _LEAVES)


def init(params, key, *, rank, targets=TARGETS):
  """Adapters for a decoder's parameters.

  Args:
    params: see `transformer.init`.
    key: for the values of a.
    rank: I, >= 1.
    targets: names of matrices, some of TARGETS. Experts of a mixture have no adapters.
  Returns:
    {"layers": {"attn": ..., "mlp": ...}} with a pair of leaves for each matrix, float32.
  Raises:
    ValueError: the decoder has none of the targets.
  """
  adapters = {}
  for name, part in params["layers"].items():
    for i, leaf in enumerate(sorted(set(part) & set(_LEAVES))):
      if leaf.partition("_")[0] not in targets: continue
      a, b = _LEAVES[leaf]
      n_in = len(a.rpartition("_")[2]) - 1  # axes of w that a reads, L included
      w = part[leaf]
      fan_in = math.prod(w.shape[1:n_in])
      # One random stream per matrix, independent of the targets.
      stream = jax.random.fold_in(key, 2 * i + (name == "mlp"))
      # Adapters are trained, and therefore float32 for narrower frozen matrices too.
      dtype = jnp.promote_types(w.dtype, jnp.float32)
      adapters.setdefault(name, {}).update({
          a: (jax.random.normal(stream, (*w.shape[:n_in], rank)) * fan_in**-0.5).astype(dtype),
          b: jnp.zeros((w.shape[0], rank, *w.shape[n_in:]), dtype)})
  if not adapters: raise ValueError(f"targets={tuple(targets)}: this decoder has none of them.")
  return {"layers": adapters}


def compute_delta(part, leaf, scale):
  """scale a b of a matrix; None if `part` has no adapters for it.

  Args:
    part: {name: array} of one layer, or of all layers stacked.
    leaf: the matrix's name.
    scale: alpha / rank.
  """
  a, b = _LEAVES.get(leaf, (None, None))
  if a is None or a not in part: return None
  a, b = part[a], part[b]
  stacked = a.ndim == len(_LEAVES[leaf][0].rpartition("_")[2])
  product = lambda a, b: jnp.tensordot(a, b, axes=1)
  return scale * (jax.vmap(product)(a, b) if stacked else product(a, b))


def merge(params, scale):
  """Parameters without adapters, which are added to their matrices in the wider dtype."""
  def part(tree):
    kept = {k: v for k, v in tree.items() if not any(k in pair for pair in _LEAVES.values())}
    return {k: v if (more := compute_delta(tree, k, scale)) is None else v + more
            for k, v in kept.items()}
  return {**params, "layers": {k: part(v) for k, v in params["layers"].items()}}
