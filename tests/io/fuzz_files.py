"""The families of files of tests/io/fuzz.py."""
import functools
import importlib
import json
import math
import os
import pathlib
import struct
import sys
import tempfile

import gguf
import jinja2.sandbox  # pylint: disable=unused-import
import matplotlib.pyplot  # pylint: disable=unused-import
import numpy as np
import transformers

from tests import conftest  # Devices, before jax starts. pylint: disable=unused-import

from configs import base
from rlx import cli
from rlx.build import keys, methods as build_methods, prompts as build_prompts, validation
from rlx.core import options
from rlx.io import (
    bounded, checkpoint, curves, metrics as io_metrics, run_folder, strict_json, tokenizer, weights)
from rlx.loops import record, stored
from rlx.tools import convert, view
from tests import test_convert
from tests.io import fuzz, test_damaged, test_tokenizer

_ = transformers.AutoTokenizer, transformers.GPT2Tokenizer  # transformers imports them on access.
bounded.SECONDS = 10  # For templates and tokenizers that never end.
CORPUS, json_with, some_bytes = fuzz.CORPUS, fuzz.json_with, fuzz.some_bytes
CHAT = test_tokenizer.CHAT


# Models in Hugging Face directories.


def load(name="."):
  """Loads the model in a folder and uses its tokenizer."""
  def call(folder):
    config, _, text = weights.load(folder / name)
    assert 0 < config.rope_theta < math.inf and 0 < config.norm_eps < math.inf
    assert max(text.eos_ids) < config.vocab_size
    use(text)
  return call


def change_header(rng, data):
  """The header of a safetensors file: its length, or its JSON."""
  end = 8 + int.from_bytes(data[:8], "little")
  if rng.random() < 0.2:
    n = rng.choice((0, 1, 7, end - 9, end - 7, len(data), len(data) - 8, 2**31, 2**63, 2**64 - 1,
                    99_999_999))
    return n.to_bytes(8, "little") + data[8:], f"a header of {n}"
  text, said = json_with()(rng, data[8:end])
  return len(text).to_bytes(8, "little") + text + data[end:], f"header: {said}"


# Tokenizers.

TEXTS = ("", "a", "Hello, world 12", " \n\t", "0" * 3000, "a b" * 1000, "é\u0301ß😀\ufdfa",
         "<|im_end|>\0")
TURNS = [dict(role="system", content="be brief"), dict(role="user", content="7 + 5?")]


def use(text):
  """What a run does with a tokenizer; it may refuse to encode a text."""
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
  """Reads, writes and reads a tokenizer."""
  tokenizer.load(folder).save(folder / "out")
  use(tokenizer.load(folder / "out"))


def start_tokenizer(folder):
  """A byte-level BPE with a normalizer, a rule that cuts, and a BOS."""
  gguf_file, ids = test_tokenizer.write_gguf(folder / "m.gguf", pre="qwen2", add_bos=True)
  tokenizer.load(gguf_file).save(folder)
  gguf_file.unlink()
  _write(folder, special_tokens_map=dict(eos_token="<|im_end|>"),
         added_tokens={t: ids[t] for t in test_tokenizer.SPECIAL})


def start_parts(folder):
  """vocab.json and merges.txt, as Qwen2's and SmolLM2's checkpoints also have them."""
  gguf_file, ids = test_tokenizer.write_gguf(folder / "m.gguf")
  tokenizer.load(gguf_file).hf.backend_tokenizer.model.save(str(folder))
  gguf_file.unlink()
  added = {str(ids[t]): dict(content=t, special=True, lstrip=False, rstrip=False,
                             normalized=False, single_word=False) for t in test_tokenizer.SPECIAL}
  _write(folder, added_tokens={}, special_tokens_map=dict(eos_token="<|im_end|>"),
         config=dict(model_type="qwen2", eos_token_id=ids["<|im_end|>"]),
         tokenizer_config=dict(
             tokenizer_class="GPT2Tokenizer", eos_token="<|im_end|>", bos_token=None,
             unk_token="<|endoftext|>", add_prefix_space=False, model_max_length=1000,
             chat_template=CHAT, clean_up_tokenization_spaces=False, added_tokens_decoder=added))


def _write(folder, **files):
  for name, value in files.items(): (folder / f"{name}.json").write_text(json.dumps(value))


_ADDED = [dict(id=264 + i, content="ab" * i, single_word=False, lstrip=False, rstrip=False,
               normalized=True, special=False) for i in range(1, 2000)]
TOKENIZERS = [*CORPUS["tokenizers"], {"added_tokens": _ADDED, "normalizer": {
    "type": "Replace", "pattern": {"String": "a"}, "content": "a" * 64}}]
TEMPLATES = [
    *CORPUS["templates"], "{% macro x() %}" + CHAT, CHAT * 2, CHAT[:len(CHAT) // 2],
    CHAT.replace("content", "nothing"), CHAT.replace("messages", "message")]


# GGUF.


@functools.cache
def _gguf_fields():
  """(bytes of an undamaged file, its fields); a field is a list of (start, size in bytes)."""
  fields = []
  with tempfile.TemporaryDirectory() as folder:
    test_damaged.write_gguf(pathlib.Path(folder))
    reader = gguf.GGUFReader(pathlib.Path(folder, "m.gguf"))
    for field in (*reader.fields.values(), *(x.field for x in reader.tensors)):
      start, parts = field.offset, []
      for part in field.parts[:12]:  # Of a list of tokens, the first are enough.
        parts.append((start, part.nbytes))
        start += part.nbytes
      fields.append(parts)
    return pathlib.Path(folder, "m.gguf").read_bytes(), fields


# The last are numbers as float32: infinite, -1, not a number.
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 9, 11, 13, 31, 32, 33, 64, 255, 2**15, 2**16, 2**20, 2**24,
           2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1,
           0x7f800000, 0xff800000, 0xbf800000, 0x7fc00000)
STRINGS = (b"\xff", *(text.encode() for text in CORPUS["gguf_strings"]))


def _string(raw):
  return struct.pack("<Q", len(raw)) + raw


def change_gguf(rng, data):
  """One to three fields of a GGUF file: numbers, types, counts, texts with their lengths."""
  undamaged, fields = _gguf_fields()
  if data != undamaged: return some_bytes(rng, data)
  parts = {rng.choice(rng.choice(fields)) for _ in range(rng.choice((1, 1, 2, 3)))}
  for start, size in sorted(parts, reverse=True):  # From the end: starts before it stay.
    end = start + size
    if size in (1, 2, 4, 8): new = (rng.choice(NUMBERS) % 256**size).to_bytes(size, "little")
    else: start, new = start - 8, _string(rng.choice((*STRINGS, data[start:end][::-1])))
    data = data[:start] + new + data[end:]
  return data, f"other values at {sorted(parts)}"


def more_keys(rng, data):
  """One more key: a number, a text, an array, an array of arrays, a long array."""
  pack, key = struct.pack, rng.choice((b"x", b"llama.x", *STRINGS))
  value = rng.choice((
      pack("<IIQIQ", 9, 9, 1, 9, 2**60), pack("<IIQ", 9, 8, 200_000) + _string(b"") * 200_000,
      pack("<IIQ", 9, 3, 10**6) + b"\x01\x7f" * 10**6, pack("<I", 8) + _string(b"yarn"),
      pack("<If", 6, math.nan), pack("<Iq", 11, -1), pack("<IB", 7, 7), pack("<Id", 12, 1e300)))
  n, = struct.unpack_from("<Q", data, 16)
  data = data[:16] + pack("<Q", (n + 1) % 2**64) + _string(key) + value + data[24:]
  return data, f"key {key!r:.60}: {value[:20]!r}"


# Prompts.

ROW = dict(question="12+7=?", answer="19", split="train", prompt="12=", completion="3;4", verdict=1,
           group="g", values=[0.5, None], finish="eos", sampled=9, label=-1,
           tests=["assert f(1) == 2"], level=3)


def start_rows(folder):
  (folder / "rows.jsonl").write_text("".join(json.dumps(ROW | dict(
      question=f"{i}+7=?", group=str(i), split="test" if i % 3 == 0 else "train")) + "\n"
                                             for i in range(30)))


def load_rows(folder):
  """The prompts as a run reads them, and completions as train_scorer does."""
  c = base.get_config()
  c.prompts.source, c.prompts.dataset = f"jsonl:{folder / 'rows.jsonl'}", "jsonl"
  c.prompts.columns = dict(meta=("level", "tests"))
  c.prompts.template = dict(name="plain")
  text = tokenizer.characters("".join(map(chr, range(32, 127))))
  build_prompts.load_prompts(c, build_prompts.texts_of(c, text))
  c.prompts.max_tokens = c.rollouts.max_tokens = 9
  stored.read(folder / "rows.jsonl", build_prompts.texts_of(c, text))


# Conversions; flags.json holds the options.


def start_convert(folder):
  test_damaged.write_model(folder / "m")
  (folder / "flags.json").write_text("{}")


def start_adapters(folder):
  """The checkpoint of a run with adapters."""
  test_damaged.write_model(folder / "base")
  test_convert.run_of(folder / "m", folder / "base", lora__rank=3)
  (folder / "flags.json").write_text("{}")


def convert_model(folder):
  flags, config = json.loads((folder / "flags.json").read_text()), folder / "m" / "config.json"
  (folder / "flags.json").unlink()
  if config.is_file() and not config.is_symlink():  # The folder was another when the run started.
    config.write_bytes(config.read_bytes().replace(b"/start/base", b"/m/base"))
  convert.convert(folder / "m", folder / "out", **flags)


_NUMBERS = [0.0, -1.0, math.nan, math.inf, -math.inf, 1e-300, 1e308, 1e-9, 1e-5, 3.0]
FLAGS = dict(shard_gb=_NUMBERS, pad_vocab_to_multiple_of=(0, -1, 1, 7, 2**31, 2**40, 10**30),
             dtype=("", "float16", "int8", "bf16"), format=("", "rlx", "gguf"), model=("prm", ""),
             adapters=("peft", ""))
RUN_FLAGS = dict(adapters=("peft", "merged"), model=("prm",), format=("rlx",))


def flags_of(flags):
  """Options of a conversion, of the types that its flags have."""
  def change(rng, data):
    del data
    given = {name: rng.choice(flags[name])
             for name in rng.sample(sorted(flags), rng.choice((1, 1, 2)))}
    return json.dumps(given).encode(), f"{given}"
  return change


# Workdirs, checkpoints and flags.

STATE = {"a": np.arange(4.0), "b": np.zeros((2, 3), np.float32)}
ACCURACY = dict(mean=0.5, low=0.4, high=0.6)


def start_run(folder):
  """What a run of four steps leaves, without its checkpoints."""
  record.record(base.get_config(), folder, device_bytes=2**30)
  writer = io_metrics.Writer(folder)
  row = dict(prompt="3m4=", completion="3#3", finish="eos", tokens=["3#3", ""],
             log_ratio=[0.5, -1.0], beta=0.05, advantages=[1.0, -0.5])
  for step in range(4):
    writer.write(step, {"rollouts/accuracy": 0.25, "seconds/sample": 1.0 + step,
                        "prm/loss": math.nan})
    writer.table(step, [row | dict(verdict=verdict) for verdict in (0.0, 1.0, None)])
  writer.close()
  (folder / "checkpoints" / "3").mkdir(parents=True)
  strict_json.write(folder / "stopped.json", dict(step=3, steps=4))
  strict_json.write(folder / "summary.json", dict(
      before=dict(greedy=ACCURACY), after=dict(greedy=ACCURACY), steps=4, seed=0,
      prm_accuracy=0.5, seconds=dict(total=9.0, to_first_step=1.0)))
  measured, point = ACCURACY | dict(prompts=4), dict(gold=ACCURACY, proxy=ACCURACY)
  strict_json.write(folder / "judging.json", dict(
      judged="scorers.a", rows="rows.jsonl", kind="gold", count=4, metrics=dict(ece=measured),
      best_of_n=[dict(n=n, kl=0.5 * n, **point) for n in (1, 2)], best_of_n_fit=dict(alpha=1.0),
      kl=[dict(kl=1.0, **point)], published=dict(ece=[dict(value=1.0, of="a", source="b")]),
      reliability=[dict(ACCURACY, low_edge=0.0, high_edge=1.0, n=1, prompts=1, predicted=0.5,
                        right=0.5)]))


def resume(folder):
  """Reads what a start reads of its workdir."""
  recorded = run_folder.read_recorded(folder)
  record.record(base.get_config(), folder, device_bytes=recorded.get("device_bytes"))
  io_metrics.Writer(folder, first_step=3)


def show(folder):
  view.view(folder)
  curves.draw(folder)


def start_checkpoints(folder):
  checkpoints = checkpoint.Checkpoints(folder, max_to_keep=3)
  for step in (1, 2, 3):
    checkpoints.save(step, STATE, dict(step=step, buffer=[], prompts=dict(epoch=1)))
  checkpoints.close()


def go_on(folder):
  """Restores the newest intact checkpoint, which equals one that was saved, and saves another."""
  checkpoints = checkpoint.Checkpoints(folder, max_to_keep=3)
  if (newest := checkpoints.latest) is not None:
    state, host = checkpoints.restore(STATE)
    assert host["step"] == newest and all(np.array_equal(state[k], STATE[k]) for k in STATE)
  checkpoints.save((newest or 0) + 1, STATE, dict(step=(newest or 0) + 1))
  checkpoints.close()


def start_flags(folder):
  (folder / "argv.json").write_text(json.dumps(["--config=configs/quickstart.py", "--workdir=w"]))


def change_flag(rng, data):
  """One to three flags: keys of the config with any text, and the others."""
  argv, root = json.loads(data), pathlib.Path(base.__file__).parent.parent
  config = rng.choice(sorted(p for p in (root / "configs").rglob("*.py")
                             if p.stem not in ("__init__", "base")))
  argv[0] = f"--config={config}"
  flat = options.flatten(importlib.import_module(".".join(
      config.relative_to(root).with_suffix("").parts)).get_config().to_dict())
  for _ in range(rng.choice((1, 1, 2, 3))):
    word, key = rng.choice(CORPUS["words"]), rng.choice(sorted(flat))
    if rng.random() < 0.1: key = key.rpartition(".")[0] or key  # A section.
    if rng.random() < 0.05: key += rng.choice(("x", ".x", ".", "[0]"))
    argv.append(rng.choice((f"--config.{key}={word}",) * 12 + (
        f"--hosts={word}", f"--workdir={word}", f"--config={word}", f"--{key}={word}", word,
        f"--config.{key}", f"--noconfig.{key}", f"--config={config}:{word}")))
  return json.dumps(argv).encode(), f"{argv!r:.300}"


def check_config(config, workdir):
  """What a command line checks before it reads a model."""
  del workdir
  keys.check(config)
  validation.check(config, build_methods.resolve_methods(config))


def check_flags(folder):
  """A command line whose command is `check_config`."""
  sys.argv = ["rlx", *json.loads((folder / "argv.json").read_text())]
  # Several hosts would wait for each other.
  if any(a.startswith("--hosts") and "," in a for a in sys.argv): return
  os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
  cli.COMMANDS["check"] = (f"{__name__}:check_config", "CONFIG", "")
  cli.main("check")


def _file(name, hints=()):
  """Changes of the values of a JSON file, and of its bytes."""
  return [(name, json_with(hints)), (name, json_with(hints)), (name, some_bytes)]


_CONFIG, _HEADER = _file("config.json", CORPUS["configs"]), [("*.safetensors", change_header)] * 2
_TOKENIZER = [*_file("tokenizer.json", TOKENIZERS) * 2,
              *_file("tokenizer_config.json", CORPUS["tokenizer_configs"]) * 2,
              *_file("special_tokens_map.json"), *_file("added_tokens.json"),
              *_file("generation_config.json")]
_WORKDIR = [*_file("config.json"), *_file("versions.json"), *_file("summary.json"),
            *_file("judging.json"),
            *_file("stopped.json"), ("*.jsonl", some_bytes), ("*", fuzz.another_kind)]
_CHECKPOINT = [
    *_file("CHECKSUMS"), *_file("*METADATA"), *_file("metadata"), ("*", some_bytes),
    ("*", some_bytes)]
FAMILIES = {name: fuzz.Family(*values) for name, values in dict(
    config=(450, test_damaged.write_model, load(), _CONFIG),
    safetensors=(250, test_damaged.write_model, load(), [*_HEADER, ("*.safetensors", some_bytes)]),
    shards=(200, test_damaged.write_shards, load(), [*_HEADER, *_file("*.index.json")]),
    tokenizer=(500, start_tokenizer, load_tokenizer, [
        *_TOKENIZER, ("chat_template.jinja", some_bytes), *[("*", fuzz.another_kind)] * 3]),
    tokenizer_saved=(60, start_tokenizer, convert_tokenizer, _TOKENIZER),
    tokenizer_parts=(200, start_parts, load_tokenizer, [
        *_file("vocab.json"), ("merges.txt", fuzz.one_of(CORPUS["merges"])),
        *_file("added_tokens.json"), ("merges.txt", some_bytes), ("*", fuzz.another_kind),
        *_file("tokenizer_config.json", CORPUS["tokenizer_configs"])]),
    template=(240, start_tokenizer, load_tokenizer, [
        ("chat_template.jinja", fuzz.one_of(TEMPLATES))]),
    gguf=(500, test_damaged.write_gguf, load("m.gguf"), [
        *[("m.gguf", change_gguf)] * 3, ("m.gguf", more_keys), ("m.gguf", some_bytes)]),
    rows=(300, start_rows, load_rows, [
        *[("rows.jsonl", fuzz.line_with(CORPUS["rows"]))] * 9, ("rows.jsonl", some_bytes)]),
    convert=(100, start_convert, convert_model, [
        ("flags.json", flags_of(FLAGS)), *[("m/*", fuzz.another_kind)] * 3, *_HEADER, *_CONFIG,
        *_file("generation_config.json")]),
    adapters=(100, start_adapters, convert_model, [
        *[("flags.json", flags_of(RUN_FLAGS))] * 5, *_file("m/config.json", CORPUS["runs"]),
        *_CHECKPOINT]),
    resume=(450, start_run, resume, [*_WORKDIR, *[("*.jsonl", fuzz.line_with())] * 5]),
    view=(150, start_run, show, [*_WORKDIR, *[("*.jsonl", fuzz.line_with())] * 15]),
    checkpoint=(600, start_checkpoints, go_on, [
        *_CHECKPOINT, ("*", fuzz.another_kind)]),
    flags=(600, start_flags, check_flags, [("argv.json", change_flag)])).items()}
