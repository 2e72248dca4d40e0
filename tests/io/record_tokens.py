"""Records what others make of tests/io/strings.py with small vocabularies and SmolLM2's.

  python -m tests.io.record_tokens hf qwen2=tokenizer.json gemma=tokenizer.json ...
  python -m tests.io.record_tokens smollm2 WHEEL.gguf      # needs llama_cpp
  python -m tests.io.record_tokens llama_cpp               # needs llama_cpp

`hf` takes published tokenizer.json of models that use a rule (of Mistral's: tekken.json)
and puts the small vocabulary into them, but for smollm2=, which stays as it is. Writes
tests/io/fixtures/tokens.npz, for each case and reference a checksum of the ids of each string.
The vocabulary is in that file too: `merges` of bytes and `pieces` of characters, made by merging
the most frequent pairs over whole strings. Merges cross what a rule cuts, so that a wrong cut
shows.
"""
import ctypes
import json
import pathlib
import sys
import zlib

import numpy as np

from tests.io import gguf_files, strings

FILE = pathlib.Path(__file__).parent / "fixtures" / "tokens.npz"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"]
RUNS = ["  ", "   ", "    ", "\n\n", "\t\t"]  # Matched whole, as in Gemma.
CASES = ["smollm", "qwen2", "llama-bpe", "dbrx", "gpt-4o", "tekken", "llama", "gemma", "phi3"]


def checksums(ids):
  """16 bits for each list of ids."""
  return np.array([zlib.crc32(np.array(x, np.int32).tobytes()) for x in ids]).astype(np.uint16)


def vocabulary(case):
  """(tokens, token types, merges or scores) of a small vocabulary."""
  fixture = np.load(FILE)
  if case in ("llama", "gemma", "phi3"):
    runs = RUNS if case == "gemma" else []
    pieces = [p for p in fixture["pieces"].tolist() if p.replace("▁", " ") not in runs]
    tokens = ["<unk>", "<s>", "</s>", *SPECIAL, *runs, *(f"<0x{b:02X}>" for b in range(256)),
              *pieces]
    types = [2, 3, 3] + [3] * 3 + [4] + [4] * len(runs) + [6] * 256 + [1] * len(pieces)
    return tokens, types, [-float(max(i, 0)) for i in range(len(pieces) - len(tokens), len(pieces))]
  merges = fixture["merges"].tolist()
  tokens = SPECIAL + gguf_files.letters() + [m.replace(" ", "") for m in merges] + [
      "camelCase", "ĠcamelCase"]  # No merge makes these.
  return tokens, [3] * 3 + [4] + [1] * (len(tokens) - 4), merges


def write(path, case, **more):
  """A .gguf file with that tokenizer; more are keys below tokenizer.ggml."""
  tokens, types, rest = vocabulary(case)
  is_spm = case in ("llama", "gemma", "phi3")
  keys = gguf_files.tokenizer_keys(
      "llama" if is_spm else "gpt2", pre="default" if is_spm else case, tokens=tokens,
      token_type=types, bos_token_id=1, eos_token_id=tokens.index("<|im_end|>"),
      add_space_prefix=False if case == "gemma" else None,
      **{"scores" if is_spm else "merges": rest}, **more)
  return gguf_files.write(path, case if case == "phi3" else "llama",
                          keys | {"general.name": case.replace("phi3", "phi-3")},
                          {"a": np.ones(3, np.float32)})


def hf(case, path):
  """ids of `tokenizers` by a published file, with the small vocabulary."""
  import tokenizers
  if case == "smollm2":
    core = tokenizers.Tokenizer.from_file(path)
    return [core.encode(s, add_special_tokens=False).ids for s in strings.varied()]
  published = json.loads(pathlib.Path(path).read_text())
  tokens, types, rest = vocabulary(case)
  if "config" in published:  # tekken.json
    published = {"version": "1.0", "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": published["config"]["pattern"]},
         "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
         "use_regex": False}]}, "model": {"type": "BPE", "ignore_merges": True}}
  tokens = [t.replace(" ", "▁") for t in tokens]
  if case in ("llama", "gemma", "phi3"):
    from transformers import tokenization_utils_base as base
    ids = {t: i for i, t in enumerate(tokens)}
    # Runs of spaces have the best score in Gemma, the longest first.
    score = {t: 1e3 + len(t) if types[i] == 4 else rest[i] for t, i in ids.items()
             if types[i] not in (2, 3)}
    rest = base.generate_merges(ids, score)
  published["model"] |= {"vocab": {t: i for i, t in enumerate(tokens)},
                         "merges": [m.split(" ") if isinstance(m, str) else m for m in rest]}
  strips = case == "phi3"
  published["added_tokens"] = [
      dict(id=i, content=t, special=types[i] != 4, normalized=False, single_word=False,
           lstrip=False, rstrip=strips and t not in ("<unk>", "<s>", "<|endoftext|>"))
      for i, t in enumerate(tokens) if types[i] in (2, 3, 4)]
  core = tokenizers.Tokenizer.from_str(json.dumps(published))
  return [core.encode(s, add_special_tokens=False).ids for s in strings.varied()]


def llama_cpp(path):
  import llama_cpp as lib
  silent = lib.llama_log_callback(lambda *_: None)
  lib.llama_log_set(silent, ctypes.c_void_p(0))
  model = lib.Llama(str(path), vocab_only=True, verbose=False)
  return [model.tokenize(s.encode(), add_bos=False, special=True) for s in strings.varied()]


if __name__ == "__main__":
  what, *args = sys.argv[1:]
  recorded = dict(np.load(FILE)) if FILE.exists() else {}
  if what == "hf":
    for case, _, source in (x.partition("=") for x in args):
      recorded[f"hf/{case}"] = checksums(hf(case, source))
  elif what == "smollm2": recorded["llama_cpp/smollm2"] = checksums(llama_cpp(args[0]))
  else:
    for case in CASES:
      file = write(pathlib.Path("/tmp") / f"{case}.gguf", case)
      recorded[f"llama_cpp/{case}"] = checksums(llama_cpp(file))
  FILE.parent.mkdir(exist_ok=True)
  np.savez_compressed(FILE, **recorded)
  print({key: len(x) for key, x in recorded.items()})
