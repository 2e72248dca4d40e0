"""Hugging Face directories: config.json and *.safetensors, read and written."""
import contextlib
import dataclasses
import json
import pathlib

from rlx.io import tables
from rlx.models.families import llama
from rlx.models.families import qwen2
from rlx.models.families import qwen3

FAMILIES = {"llama": llama, "qwen2": qwen2, "qwen3": qwen3}  # By model_type.


def load(path, dtype="float32"):
  """(DecoderConfig, params) of a local directory.

  Args:
    path: holds config.json and model.safetensors or its shards with an index.
    dtype: of the parameters and, until replaced, of the activations.
  Raises:
    ValueError: the model is of no known family, or its tensors do not fit.
  """
  import safetensors
  path = pathlib.Path(path)
  hf = json.loads((path / "config.json").read_text())
  if hf.get("model_type") not in FAMILIES:
    raise ValueError(f"{path}/config.json: model_type={hf.get('model_type')!r} is "
                     f"not supported; {sorted(FAMILIES)} are.")
  family = FAMILIES[hf["model_type"]]
  config = dataclasses.replace(family.decoder_config(hf), dtype=dtype,
                               param_dtype=dtype)
  with contextlib.ExitStack() as stack:
    files = [stack.enter_context(safetensors.safe_open(f, framework="numpy"))
             for f in _files(path)]
    holder = {name: f for f in files for name in f.keys()}
    params = tables.read(holder, lambda name: holder[name].get_tensor(name),
                         family.KEYS, config, path)
  return config, params


def save(path, config, params, tokenizer=None):
  """Writes a directory that `load` and transformers read.

  Args:
    path: made if absent.
    config, params: what to write; which family follows from the config.
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


def _files(path):
  """The safetensors of a checkpoint."""
  index = path / "model.safetensors.index.json"
  if index.exists():
    names = set(json.loads(index.read_text())["weight_map"].values())
    return [path / name for name in sorted(names)]
  if not (path / "model.safetensors").exists():
    raise ValueError(f"{path}: no model.safetensors and no {index.name}.")
  return [path / "model.safetensors"]
