"""Writes small GGUF files for tests."""
import gguf
import numpy as np


def write(path, arch, keys, tensors, *, alignment=None):
  """Writes a .gguf file and returns its path.

  Args:
    keys: {name: value}; a name that starts with "." is below `arch`, and None is left out.
    tensors: {name: array, or (raw bytes, GGMLQuantizationType)}.
    alignment: general.alignment; None: the default, which is not written.
  """
  w = gguf.GGUFWriter(path, arch)
  if alignment is not None: w.add_custom_alignment(alignment)
  for name, value in keys.items():
    if value is None: continue
    w.add_key_value(arch + name if name.startswith(".") else name, value,
                    gguf.GGUFValueType.get_type(value))
  for name, x in tensors.items():
    raw, kind = x if isinstance(x, tuple) else (x, None)
    w.add_tensor(name, np.ascontiguousarray(raw), raw_dtype=kind)
  w.write_header_to_file()
  w.write_kv_data_to_file()
  w.write_tensors_to_file()
  w.close()
  return path


def quantized(x, kind):
  """A tensor for `write` in a quantised type, given by its name."""
  kind = gguf.GGMLQuantizationType[kind]
  return gguf.quantize(x, kind), kind


def letters():
  """The 256 letters of byte-level BPE, in the order of the bytes."""
  # transformers has a function of the module's name too.
  from transformers.convert_slow_tokenizer import bytes_to_unicode
  letter_of = bytes_to_unicode()
  return [letter_of[b] for b in range(256)]


def tokenizer_keys(model="gpt2", **keys):
  """Keys below tokenizer.ggml."""
  return {f"tokenizer.ggml.{key}": value for key, value in dict(keys, model=model).items()}
