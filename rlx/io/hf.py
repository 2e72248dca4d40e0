"""Hugging Face directories: config.json and *.safetensors, read and written."""
import dataclasses
import functools
import json
import pathlib

import jax.numpy as jnp
import numpy as np

from rlx.io import shards
from rlx.io import strict_json
from rlx.io import tables
from rlx.models import families

SHARD_BYTES = 5 * 10**9
# Fields of DecoderConfig that are of a run, not of a model.
_OF_RUNS = ("dtype", "param_dtype", "length", "lora_scale", "attention", "remat", "rows", "heads")


def load(path, dtype="float32", put=lambda path, x: x):
  """(DecoderConfig, params) of a local directory.

  Args:
    path: holds config.json and model.safetensors or its shards with an index.
    dtype: of the parameters and, until replaced, of the activations.
    put: see `tables.read`.
  Raises:
    ValueError: a file is damaged, the model is of no known family or asks for what
      the decoder does not do, or its tensors do not fit; names file and tensor.
  """
  config, hf = config_of(path, dtype)
  source, arrays, table = _tensors(path, hf)
  found = {name: x.shape for name, x in arrays.items()}
  return config, tables.read(found, arrays.get, table, config, source, put)


def stored(path):
  """(DecoderConfig, config.json, {path: tables.Leaf}) of a directory; no tensor is read yet.

  param_dtype is the narrowest that holds all tensors. Raises as `load`.
  """
  config, hf = config_of(path)
  source, arrays, table = _tensors(path, hf)
  found = {name: x.shape for name, x in arrays.items()}
  leaves = tables.leaves(found, arrays.get, table, config, source)
  dtype = functools.reduce(jnp.promote_types, {np.dtype(x.dtype) for x in arrays.values()})
  return dataclasses.replace(config, param_dtype=dtype.name), hf, leaves


def config_of(path, dtype="float32"):
  """(DecoderConfig, config.json) of a directory."""
  file = pathlib.Path(path) / "config.json"
  hf = strict_json.read(file)
  family = families.named(hf.get("model_type"), f"{file}: model_type")
  return dataclasses.replace(family.decoder_config(hf, file), dtype=dtype,
                             param_dtype=dtype), hf


def _tensors(path, hf):
  """(the file that lists them, tensors, the family's table)"""
  source, found = shards.tensors(pathlib.Path(path))
  # Old files have the rotary frequencies of each layer too, which follow from the config.
  arrays = {name: x for name, x in found.items() if not name.endswith("rotary_emb.inv_freq")}
  return source, arrays, families.named(hf["model_type"]).tensors


def save(path, config, params, tokenizer=None, *, hf=None, shard_bytes=SHARD_BYTES):
  """Writes a directory that `load` and transformers read, a tensor at a time.

  Where the model has fewer rows than config.vocab_size says, the mean of its rows
  fills the embedding and the head up. A row of zeros would have logit 0, which is
  a likely token wherever the others' logits are negative. The logit of the mean
  is the mean logit, and exp(mean) <= mean(exp): no such row is ever more likely
  than a token is on average, 1 / vocabulary (nearly so under a soft cap of the logits).

  Args:
    path: made if absent.
    config, params: what to write, in config.param_dtype; params as `tables.write`
      takes them.
    tokenizer: io/tokenizer.py Tokenizer to put beside the weights.
    hf: the config.json that the model came with: its family and all that the decoder
      has no use for are kept. None: of `family_of(config)`, which makes a Mistral or
      Phi-3 a Llama; that is the same function.
    shard_bytes: see `shards.write`.
  """
  hf = hf_of(config, hf)
  path, table = pathlib.Path(path), families.named(hf["model_type"]).tensors
  tensors = tables.write(params, table, config)
  for name in [name for name, tensor in table.items()
               if name in tensors and "V" in tables.pairs(tensor)[0][1]]:
    tensors[name] = _filled(tensors[name], config.vocab_size)
  path.mkdir(parents=True, exist_ok=True)
  shards.write(path, tensors, config.param_dtype, shard_bytes)
  if tokenizer is not None:
    tokenizer.save(path)
  (path / "config.json").write_text(json.dumps(hf, indent=2) + "\n")


def hf_of(config, hf=None):
  """The config.json of a decoder; `hf` is the one that it came with, if any."""
  if hf is None: hf = family_of(config).hf_config(config)
  dtypes = {"torch_dtype", "dtype"} & set(hf) or {"torch_dtype"}
  return hf | dict.fromkeys(dtypes, config.param_dtype) | {"vocab_size": config.vocab_size}


def family_of(config):
  """The first family whose checkpoints hold this decoder.

  Raises:
    ValueError: there is none.
  """
  run = {field: getattr(config, field) for field in _OF_RUNS}
  for family in families.FAMILIES.values():
    try:
      found = family.decoder_config(family.hf_config(config))
    except ValueError:
      continue
    if dataclasses.replace(found, **run) == config: return family
  raise ValueError(f"No family's checkpoints hold {config}.")


def _filled(tensor, rows):
  """A tensor with `rows` rows: those it has, and their mean."""
  def parts():
    total = 0.0
    for x in tensor.parts():
      total += x.sum(axis=0, dtype=np.float64)
      yield x
    if missing := rows - tensor.shape[0]:
      yield np.broadcast_to(total / tensor.shape[0], (missing, *tensor.shape[1:]))
  return tables.Tensor((rows, *tensor.shape[1:]), parts)
