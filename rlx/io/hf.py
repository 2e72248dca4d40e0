"""Hugging Face directories: config.json and *.safetensors, read and written."""
import dataclasses
import json
import pathlib

from rlx.io import shards
from rlx.io import strict_json
from rlx.io import tables
from rlx.models import families
from rlx.models.families import llama
from rlx.models.families import qwen2
from rlx.models.families import qwen3


def load(path, dtype="float32"):
  """(DecoderConfig, params) of a local directory.

  Args:
    path: holds config.json and model.safetensors or its shards with an index.
    dtype: of the parameters and, until replaced, of the activations.
  Raises:
    ValueError: a file is damaged, the model is of no known family or asks for what
      the decoder does not do, or its tensors do not fit; names file and tensor.
  """
  path = pathlib.Path(path)
  file = path / "config.json"
  hf = strict_json.read(file)
  family = families.of(hf.get("model_type"), f"{file}: model_type")
  config = dataclasses.replace(family.decoder_config(hf, file), dtype=dtype,
                               param_dtype=dtype)
  source, arrays = shards.tensors(path)
  found = {name: x.shape for name, x in arrays.items()}
  return config, tables.read(found, arrays.get, family.KEYS, config, source)


def save(path, config, params, tokenizer=None):
  """Writes a directory that `load` and transformers read.

  Args:
    path: made if absent.
    config, params: what to write; which family follows from the config. A Mistral
      or Phi-3 becomes a Llama, which is the same function.
    tokenizer: io/tokenizer.py Tokenizer to put beside the weights.
  """
  import safetensors.numpy
  family = family_of(config)
  path = pathlib.Path(path)
  path.mkdir(parents=True, exist_ok=True)
  tensors = tables.write(params, family.KEYS, config)
  safetensors.numpy.save_file(tensors, path / "model.safetensors",
                              metadata={"format": "pt"})
  hf = {**family.hf_config(config), "torch_dtype": config.param_dtype}
  (path / "config.json").write_text(json.dumps(hf, indent=2) + "\n")
  if tokenizer is not None:
    tokenizer.save(path)


def family_of(config):
  """The family whose checkpoints hold this decoder."""
  if config.qkv_bias and config.qk_norm:
    raise ValueError("No family has both qkv_bias and qk_norm.")
  return qwen2 if config.qkv_bias else qwen3 if config.qk_norm else llama
