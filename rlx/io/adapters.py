"""Low-rank adapters of a stored model: merged while it is read, or written for PEFT."""
import dataclasses
import functools
import math
import pathlib
import re
from typing import Any

import jax
import numpy as np
import scipy.linalg

from rlx.io import shards, strict_json, tables
from rlx.models import families, lora, transformer

Leaves = dict[str, tables.Readable]
_compute_delta = jax.jit(lora.compute_delta, static_argnums=1)


@dataclasses.dataclass(frozen=True)
class Merged:
  """A leaf of a model to which its adapters are added as it is indexed; see models/lora.py."""
  leaf: tables.Readable
  name: str    # of the matrix
  pair: dict[str, tables.Readable]  # A and B
  scale: float
  dtype: str   # of the sum

  @property
  def shape(self) -> tuple[int, ...]: return self.leaf.shape

  def __getitem__(self, index: Any) -> np.ndarray:
    w = np.asarray(self.leaf[index]).astype(self.dtype).astype(np.float32)
    pair = {name: np.asarray(x[index]) for name, x in self.pair.items()}
    with jax.default_matmul_precision("highest"):
      return (w + np.asarray(_compute_delta(pair, self.name, self.scale))).astype(self.dtype)


def check(adapters: Leaves, leaves: Leaves, rank: int, source: object) -> None:
  """Checks that adapters belong to matrices of a model and have the rank of the config.

  Args:
    adapters: {path: leaf} of A and B.
    leaves: {path: leaf} of the model.
    source: the start of messages.
  Raises:
    ValueError: one line that names an adapter.
  """
  matrices = {path.rpartition("_")[0]: path for path in leaves}
  for path, leaf in adapters.items():
    stem, letters = path.rpartition("_")[0], path.rpartition("_")[2]
    matrix = matrices.get(stem.removesuffix("_a").removesuffix("_b"))
    if matrix is None: raise ValueError(f"{source}: {path} is of no matrix of the model.")
    sizes = dict(zip(matrix.rpartition("_")[2], leaves[matrix].shape), I=rank)
    if (wanted := tuple(sizes.get(letter) for letter in letters)) != tuple(leaf.shape):
      raise ValueError(f"{source}: {path} has shape {tuple(leaf.shape)}; lora.rank={rank} and "
                       f"the model make it {wanted}.")


def merge(leaves: Leaves, adapters: Leaves, *, scale: float, dtype: str) -> Leaves:
  """{path: leaf} of a model with its adapters.

  Args:
    leaves: {path: leaf} of the model.
    adapters: {path: leaf} of A and B.
    scale: alpha / rank.
    dtype: of the model that was trained.
  """
  out: dict[str, tables.Readable] = dict(leaves)
  for path, leaf in leaves.items():
    if (pair := _pair(path, adapters)) is not None:
      out[path] = Merged(leaf, path.rpartition(".")[2],
                         {p.rpartition(".")[2]: adapters[p] for p in pair}, scale, dtype)
  return out


def save(path: pathlib.Path, config: transformer.DecoderConfig, hf: dict, adapters: Leaves, *,
         rank: int, alpha: float, base: str) -> None:
  """Writes adapter_config.json and adapter_model.safetensors, which peft loads over the base.

  A tensor of a checkpoint may concatenate several of our matrices (Phi-3's qkv_proj). Then the A's
  are concatenated too and the B's are blocks of a diagonal: an adapter whose rank and alpha are the
  sums of those of its parts.

  Args:
    path: created if absent.
    config: DecoderConfig; param_dtype is the dtype of the file.
    hf: the base's config.json.
    adapters: {path: leaf} of A and B.
    base: the name of the model in adapter_config.json.
  """
  table: dict[str, tuple] = {}
  rows, ranks, tensors = {}, {}, dict[str, tables.Tensor]()
  for pattern, parts in families.find_family(hf["model_type"]).tensors.items():
    parts = [(_pair(p, adapters), p, *re.findall(r"\(\w+\)|\w", layout))
             for p, layout in tables.pairs(parts)]
    trained = [part for part in parts if part[0]]
    if not trained: continue
    module = pattern.removesuffix(".weight")
    table[f"{module} A"] = tuple((pair[0], f"I{x}") for pair, _, _, x in trained)
    table |= {f"{module} {pair[1]}": (pair[1], f"{y}I") for pair, _, y, _ in trained}
    rows[module] = [(pair and pair[1], _size(p, y, config)) for pair, p, y, _ in parts]
    if len(trained) > 1: ranks[module.rpartition(".")[2]] = len(trained)
  written = tables.write(adapters, table, config)
  for pattern, blocks in rows.items():
    for layer in range(config.n_layers):
      module = pattern.replace("{L}", str(layer))
      a, name = written[f"{module} A"], f"base_model.model.{module}.lora_"
      tensors |= {f"{name}A.weight": a, f"{name}B.weight": tables.Tensor(
          (sum(n for _, n in blocks), a.shape[0]), functools.partial(
              _diagonal, [(p and written[f"{module} {p}"], n) for p, n in blocks]))}
  path.mkdir(parents=True, exist_ok=True)
  shards.write_file(path / "adapter_model.safetensors", tensors, config.param_dtype)
  strict_json.write(path / "adapter_config.json", dict(
      peft_type="LORA", task_type="CAUSAL_LM", base_model_name_or_path=base, r=rank,
      lora_alpha=alpha, target_modules=sorted({m.rpartition(".")[2] for m in rows}),
      rank_pattern={m: n * rank for m, n in ranks.items()},
      alpha_pattern={m: n * alpha for m, n in ranks.items()},
      bias="none", lora_dropout=0.0, fan_in_fan_out=False, inference_mode=True))


def _pair(path, adapters):
  """The paths of A and B of a matrix, or None."""
  by_stem = {p.rpartition("_")[0]: p for p in adapters}
  stem = path.rpartition("_")[0]
  return (by_stem[f"{stem}_a"], by_stem[f"{stem}_b"]) if f"{stem}_a" in by_stem else None


def _size(path, group, config):
  """The size of a group of axes of a matrix."""
  sizes = dict(zip(path.rpartition("_")[2], tables.paths(config)[path]))
  return math.prod(sizes[axis] for axis in group.strip("()"))


def _diagonal(blocks):
  """Rows of a matrix with blocks along its diagonal; blocks: (tensor or None, rows)."""
  yield scipy.linalg.block_diag(*[
      np.zeros((rows, 0)) if tensor is None else next(tensor.parts()) for tensor, rows in blocks])
