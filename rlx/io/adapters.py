"""Low-rank adapters of a stored model: merged while it is read, or written for PEFT.

A folder that PEFT wrote is a model, too: its adapters are added to the tensors of its base.
"""
from collections.abc import Callable
import dataclasses
import functools
import math
import pathlib
import re
from typing import Any

import jax
import numpy as np
import scipy.linalg

from rlx.io import hub, shards, strict_json, tables
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


_CONFIG, _TENSORS = "adapter_config.json", "adapter_model.safetensors"
# Entries of adapter_config.json that do not change what the adapters of the file compute.
_HARMLESS = (
    "peft_type", "task_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision",
    "inference_mode", "r", "target_modules", "exclude_modules", "lora_alpha", "lora_dropout",
    "use_rslora", "init_lora_weights", "layers_to_transform", "layers_pattern", "rank_pattern",
    "alpha_pattern", "megatron_config", "megatron_core", "loftq_config", "eva_config",
    "runtime_config", "qalora_group_size")
# Ways to begin that leave the base as it is.
_STARTS = (True, False, None, "gaussian", "orthogonal", "eva")


def is_peft(path: pathlib.Path) -> bool:
  """Whether a folder has adapters of PEFT, and no weights of a whole model."""
  return (path / _CONFIG).is_file() and not any(
      p.name != _TENSORS for p in path.glob("*.safetensors"))


def find_base(path: pathlib.Path) -> str:
  """The model.path of the base that a folder's adapter_config.json names.

  Raises:
    ValueError: none is named, or it is neither a path that exists nor a name on the hub.
  """
  config = strict_json.read(path / _CONFIG)
  name, revision = config.get("base_model_name_or_path"), config.get("revision")
  if not isinstance(name, str) or not name or "\0" in name:
    raise ValueError(f"{path / _CONFIG}: base_model_name_or_path={name!r:.200}; write the path or "
                     "hub name of the model there to which the adapters belong.")
  if name.startswith("hf:") or hub.folder(name).exists(): return name
  if re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not name.startswith("."):
    return f"hf:{name}" + (f"@{revision}" if isinstance(revision, str) and revision else "")
  raise ValueError(f"{path / _CONFIG}: base_model_name_or_path={name!r:.200}: there is no such "
                   "model here; write its path or its hub name, OWNER/NAME, there.")


@dataclasses.dataclass(frozen=True)
class _Delta:
  """scale B A: what PEFT adds to a tensor of a checkpoint."""
  file: pathlib.Path
  a: shards.Stored
  b: shards.Stored
  scale: float

  @property
  def shape(self) -> tuple[int, ...]: return self.b.shape[0], self.a.shape[1]

  def __getitem__(self, rows: slice) -> np.ndarray:
    b, a = (np.asarray(x, np.float32) for x in (self.b[rows], self.a[:]))
    return np.float32(self.scale) * (b @ a)


@dataclasses.dataclass(frozen=True)
class _Added:
  """A leaf to which adapters of PEFT are added, in float32, as it is read."""
  leaf: tables.Readable
  parts: dict[tuple[int, ...], Callable[[], np.ndarray]]

  @property
  def shape(self) -> tuple[int, ...]: return self.leaf.shape

  def __getitem__(self, index: tuple[int, ...]) -> np.ndarray:
    x = np.asarray(self.leaf[index]).astype(np.float32)
    for at, read in self.parts.items():
      if at[:len(index)] == index: x[at[len(index):]] += read()
      elif index[:len(at)] == at: x += read()[index[len(at):]]
    return x

  def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
    x = np.array(self.leaf, np.float32 if dtype is None else dtype)
    for at in self.parts: x[at] = self[at]  # A layer at a time, and rounded once.
    return x


def add_peft(path: pathlib.Path, config: transformer.DecoderConfig, hf: dict,
             leaves: Leaves) -> Leaves:
  """{path: leaf} of a base with the adapters of a folder that PEFT wrote.

    W + alpha / r B A,    alpha / sqrt(r) with use_rslora

  Args:
    config, hf, leaves: of the base: DecoderConfig, config.json, {path: leaf}.
  Raises:
    ValueError: the adapters are no LoRA of matrices of the base, or ask for more than that; names
      the file and the entry or tensor.
  """
  file, said = path / _TENSORS, strict_json.read(path / _CONFIG)
  if said.get("peft_type") != "LORA":
    raise ValueError(f"{path / _CONFIG}: peft_type={said.get('peft_type')!r:.60}; LORA is read.")
  for key, value in said.items():
    is_known = key in _HARMLESS or not value or (key, value) == ("bias", "none")
    if not is_known or key == "init_lora_weights" and value not in _STARTS:
      raise ValueError(f"{path / _CONFIG}: {key}={value!r:.60}: adapters of this kind are not "
                       "read; merge them into the base with peft's merge_and_unload.")
  if not file.is_file(): raise ValueError(f"{file}: no such file; only safetensors are read.")
  by_module: dict[str, dict[str, shards.Stored]] = {}
  for name, tensor in shards.read_file(file).items():
    match = re.fullmatch(r"(?:base_model\.model\.)?(.+)\.lora_([AB])\.weight", name)
    if match is None: raise ValueError(f"{file}: {name}: no matrix lora_A or lora_B of a module.")
    by_module.setdefault(match[1], {})[match[2]] = tensor
  deltas = {f"{module}.weight": _make_delta(file, module, pair, said)
            for module, pair in by_module.items()}
  if not deltas: raise ValueError(f"{file}: there are no adapters in it.")
  parts = tables.read_some(deltas, families.find_family(hf["model_type"]).tensors, config, file)
  return {name: _Added(leaf, parts[name]) if name in parts else leaf
          for name, leaf in leaves.items()}


def _make_delta(file, module, pair, said):
  """The _Delta of a module whose rank and alpha agree with adapter_config.json."""
  if set(pair) != {"A", "B"}: raise ValueError(f"{file}: {module} has only lora_{min(pair)}.")
  a, b = pair["A"], pair["B"]
  def find(key, default):
    pattern = said.get(key) or {}
    # As in PEFT, whose keys are the ends of names; it reads them as regular expressions.
    ends = [end for end in pattern if re.fullmatch(r"[\w.]+", end) and (
        module == end or module.endswith(f".{end}"))]
    if odd := [end for end in pattern if not re.fullmatch(r"[\w.]+", end)]:
      raise ValueError(f"{file.with_name(_CONFIG)}: {key}: {odd[0]!r:.60}: names of modules are "
                       "read, no regular expressions.")
    return pattern[ends[0]] if ends else said.get(default)
  rank, alpha = find("rank_pattern", "r"), find("alpha_pattern", "lora_alpha")
  if type(rank) is not int or rank < 1 or not isinstance(alpha, int | float):
    raise ValueError(f"{file.with_name(_CONFIG)}: r={rank!r:.60}, lora_alpha={alpha!r:.60}: "
                     "numbers are needed.")
  if len(a.shape) != 2 or len(b.shape) != 2 or {a.shape[0], b.shape[1]} != {rank}:
    raise ValueError(f"{file}: {module}: lora_A has shape {a.shape} and lora_B {b.shape}; "
                     f"{_CONFIG} has r={rank}.")
  return _Delta(file, a, b, alpha / (math.sqrt(rank) if said.get("use_rslora") else rank))


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
