"""A model from wherever `model.path` points."""
from rlx.io import gguf
from rlx.io import hf
from rlx.io import hub
from rlx.io import tokenizer


def load(path, *, dtype="float32"):
  """(DecoderConfig, params, Tokenizer) of a model on this machine.

  Args:
    path: Hugging Face directory, .gguf file, wheel that holds one, or hf:OWNER/NAME
      (io/hub.py).
    dtype: of the parameters; activations get the same until replaced.
  Returns:
    params are host arrays; put them on devices before use in a loop.
  Raises:
    ValueError: there is nothing at `path`, nothing that can be read, or the tokenizer
      has tokens that the model does not know.
  """
  found = hub.folder(path)
  if (found / "config.json").is_file(): read = hf.load
  elif found.is_file() and found.suffix in (".gguf", ".whl"): read = gguf.load
  else:
    what = "is missing" if not found.exists() else "is something else"
    raise ValueError(
        f"model.path={str(path)!r} {what}; needed is a directory with config.json "
        "and *.safetensors, a .gguf file, or a .whl that holds one.")
  config, params = read(found, dtype)
  text = tokenizer.load(found)
  # A model may have more rows than tokens: some pad their embedding.
  last = max([*text.vocabulary.values(), *text.eos_ids])
  if last >= config.vocab_size:
    raise ValueError(f"{found}: the tokenizer has token {last}, the embedding only rows 0 "
                     f"to {config.vocab_size - 1}.")
  return config, params, text
