"""Hugging Face directories: config.json and *.safetensors, read and written."""
import dataclasses
import functools
import pathlib

import jax.numpy as jnp
import numpy as np

from rlx.io import shards, strict_json, tables, tokenizer as tokenizer_io
from rlx.models import families, transformer
from rlx.models.families import _config

SHARD_BYTES = 5 * 10**9
# Fields of DecoderConfig that belong to a run, not to a model.
_RUN_FIELDS = ("dtype", "param_dtype", "outside", "length", "lora_scale", "kv_copies", "attention",
               "decoding", "remat", "matmul_precision", "platform", "rows", "heads")


class _NoBias(np.ndarray):
  """The bias of a head for scores of transformers, which has none."""
  file = "no file"


def load(path: str | pathlib.Path,
         dtype: str = "float32") -> tuple[transformer.DecoderConfig, dict]:
  """(DecoderConfig, params) of a local directory.

  Args:
    path: holds config.json and model.safetensors or its shards with an index.
    dtype: of the parameters and, until replaced, of the activations.
  Raises:
    ValueError: a file is damaged, the model family is unknown, the config asks for what the
      decoder does not support, or the tensors do not fit; names file and tensor.
  """
  config, _, leaves = open_model(path)
  return tables.load(config, leaves, dtype)


def open_model(path: str | pathlib.Path) -> tuple[
    transformer.DecoderConfig, dict, dict[str, tables.Leaf]]:
  """(DecoderConfig, config.json, {path: tables.Leaf}) of a directory; reads no tensor yet.

  param_dtype is the narrowest that holds all tensors. Raises as `load`.
  """
  config, hf = config_of(path)
  source, tensors = shards.tensors(pathlib.Path(path))
  # Old files have the rotary frequencies of each layer too, which follow from the config.
  tensors = {name: x for name, x in tensors.items() if not name.endswith("rotary_emb.inv_freq")}
  more = ({"score.bias": np.zeros(config.outputs, np.float32).view(_NoBias)} if config.has_head else
          {})
  leaves = tables.leaves({**more, **tensors}, families.find_family(hf["model_type"]).tensors,
                         config, source)
  dtype = functools.reduce(jnp.promote_types, {np.dtype(x.dtype) for x in tensors.values()})
  return dataclasses.replace(config, param_dtype=dtype.name), hf, leaves


def config_of(path: str | pathlib.Path) -> tuple[transformer.DecoderConfig, dict]:
  """(DecoderConfig, config.json) of a directory."""
  file = pathlib.Path(path) / "config.json"
  hf = strict_json.read(file)
  family = families.find_family(hf.get("model_type"), f"{file}: model_type")
  return dataclasses.replace(family.decoder_config(hf, file), dtype="float32",
                             param_dtype="float32"), hf


def save(path: str | pathlib.Path, config: transformer.DecoderConfig, params: dict,
         tokenizer: tokenizer_io.Tokenizer | None = None, *, hf: dict | None = None,
         shard_bytes: int = SHARD_BYTES) -> None:
  """Writes a directory that `load` and transformers read. Streams one tensor at a time.

  If config.vocab_size is larger than the number of rows of the model, embedding and head are
  filled up with the mean of their rows. A row of zeros would have logit 0, which makes a token
  likely if the other logits are negative. The logit of the mean is the mean logit, and
  exp(mean) <= mean(exp): such a row is never more likely than a token is on average,
  1 / vocabulary (approximately so with a soft cap of the logits).

  Args:
    path: created if absent.
    config, params: what to write, in config.param_dtype; params as in `tables.write`.
    tokenizer: io/tokenizer.py Tokenizer, written too.
    hf: the config.json that the model came with: its family and all that the decoder ignores
      are kept. None: of `family_of(config)`, which makes a Mistral or Phi-3 a Llama that
      computes the same function.
    shard_bytes: see `shards.write`.
  """
  hf = hf_of(config, hf)
  path, table = pathlib.Path(path), families.find_family(hf["model_type"]).tensors
  tensors = tables.write(params, table, config)
  for name in [name for name, tensor in table.items()
               if name in tensors and "V" in tables.pairs(tensor)[0][1]]:
    tensors[name] = _fill_rows(tensors[name], config.vocab_size)
  path.mkdir(parents=True, exist_ok=True)
  shards.write(path, tensors, config.param_dtype, shard_bytes)
  if tokenizer is not None: tokenizer.save(path)
  strict_json.write(path / "config.json", hf)


def hf_of(config: transformer.DecoderConfig, hf: dict | None = None) -> dict:
  """The config.json of a decoder; `hf` is the one that the model came with, if any."""
  if hf is None: hf = family_of(config).hf_config(config)
  dtypes = {"torch_dtype", "dtype"} & set(hf) or {"torch_dtype"}
  return (hf | dict.fromkeys(dtypes, config.param_dtype) | {"vocab_size": config.vocab_size}
          | families.find_family(hf["model_type"]).head_keys(config))


def family_of(config: transformer.DecoderConfig) -> _config.Family:
  """The first model family that can express this decoder.

  Raises:
    ValueError: no family can.
  """
  run = {field: getattr(config, field) for field in _RUN_FIELDS}
  for family in families.FAMILIES.values():
    try:
      expressed = family.decoder_config(family.hf_config(config))
    except ValueError:
      continue
    if dataclasses.replace(expressed, **run) == config: return family
  raise ValueError(f"No family's checkpoints hold {config}.")


def _fill_rows(tensor, rows):
  """A tensor with `rows` rows: its own, then copies of their mean."""
  def parts():
    total = 0.0
    for x in tensor.parts():
      total += x.sum(axis=0, dtype=np.float64)
      yield x
    if missing := rows - tensor.shape[0]:
      yield np.broadcast_to(total / tensor.shape[0], (missing, *tensor.shape[1:]))
  return tables.Tensor((rows, *tensor.shape[1:]), parts)
