"""Families of tests/io/fuzz.py: models, tokenizers, prompts, and conversions."""
import json
import math
import os
import shutil
import struct
import zipfile

import gguf  # pylint: disable=unused-import
import jinja2.sandbox  # pylint: disable=unused-import
import tokenizers
import transformers

from tests import conftest  # Devices, before jax starts. pylint: disable=unused-import
from configs import base
from rlx import build
from rlx.io import bounded
from rlx.io import hf
from rlx.io import tokenizer
from rlx.io import weights
from rlx.loops import stored
from rlx.tools import convert
from tests import test_convert
from tests.io import fuzz
from tests.io import test_damaged

_ = transformers.AutoTokenizer, transformers.GPT2Tokenizer  # transformers imports them on access.
bounded.SECONDS = 2  # For templates and tokenizers that never end.


# Models in Hugging Face directories.


def start_model(folder):
  """A Llama of two layers with a tokenizer of 61 characters."""
  test_damaged.copy_llama(folder)


def start_shards(folder):
  start_model(folder)
  hf.save(folder, *hf.load(folder), shard_bytes=30_000)
  (folder / "model.safetensors").unlink()


def load(name="."):
  """Loads the model in a folder and uses its tokenizer."""
  def call(folder):
    config, _, text = weights.load(folder / name)
    assert 0 < config.rope_theta < math.inf and 0 < config.norm_eps < math.inf
    assert max(text.eos_ids) < config.vocab_size
    use(text)
  return call


_SIZES = (0, 1, 2, 200_000_000, 2**31 - 8)
_ROPES = [(kind, *numbers) for numbers in (
    (1, 1, 4), (8.0, 64, 4), (0.5, 2**31 - 1, 0), (1e-38, 1, 10_000)) for kind in (
        "default", "linear", "dynamic", "yarn", "longrope", "su", "llama3", "x", 3, None)]
CONFIGS = [
    *fuzz.CORPUS["configs"], {"layer_types": ["full_attention"] * 10_000},
    *({key: n} for n in _SIZES for key in (
        "head_dim", "hidden_size", "intermediate_size", "vocab_size", "num_attention_heads",
        "num_key_value_heads", "num_hidden_layers", "max_position_embeddings")),
    *({key: {"rope_type": kind, "factor": factor, "original_max_position_embeddings": original,
             "short_factor": [1.0] * n, "long_factor": [1.0] * n, "beta_fast": 1, "beta_slow": 32,
             "low_freq_factor": 1, "high_freq_factor": 4, "attention_factor": factor}}
      for key in ("rope_scaling", "rope_parameters") for kind, factor, original, n in _ROPES),
    *({"model_type": name} for name in (
        "qwen2", "qwen3", "mistral", "gemma2", "gemma3_text", "olmo2", "phi3", "mixtral",
        "qwen3_moe", "smollm3", "gpt2", "", "Llama"))]


def change_header(rng, folder):
  """The header of a safetensors file: its length, or its JSON."""
  file = rng.choice(sorted(folder.glob("*.safetensors")) or [folder / "model.safetensors"])
  if not fuzz.is_own(file): return f"{file.name} is gone"
  data = file.read_bytes()
  end = 8 + int.from_bytes(data[:8], "little")
  try:
    header, kind = json.loads(data[8:end]), rng.randrange(6)
  except ValueError:  # An earlier change left no header.
    return fuzz.change_bytes(rng, file)
  if kind == 0:
    n = rng.choice((0, 1, 7, end - 9, end - 7, len(data), len(data) - 8, 2**31, 2**63, 2**64 - 1,
                    99_999_999))
    file.write_bytes(n.to_bytes(8, "little") + data[8:])
    return f"{file.name}: a header of {n}"
  part, names = folder / "header.json", [n for n in header if n != "__metadata__"]
  a, b = rng.choice(names), rng.choice(names)
  size = len(data) - end
  numbers = (0, 1, -1, size, size - 1, size + 1, 2**31, 2**63 - 1, 2**64, 1.0, "8", None,
             *header[b]["data_offsets"])
  if kind == 1:
    header[a]["data_offsets"] = [rng.choice(numbers) for _ in range(rng.choice((2, 2, 2, 1, 3)))]
  elif kind == 2:
    header[a]["shape"] = rng.choice((
        [], [0], [1] * 4, [1] * 10**5, [2**62] * 4, [-1, -1], header[b]["shape"][::-1],
        [rng.choice(numbers)], [0, 2**62], [math.prod(header[a]["shape"])], 3, [[1]]))
  elif kind == 3:
    header[a]["dtype"] = rng.choice(("F64", "F16", "BF16", "I64", "U8", "BOOL", "", "f32", 3, None,
                                     ["F32"], "F8_E5M2"))
  elif kind == 4:
    header[rng.choice(("x", "", "a\nb", "__metadata__", "a" * 10**5))] = header.pop(a)
  part.write_text(json.dumps(header))
  change = f"{file.name}: {kind} of {a}"
  if kind == 5: change = fuzz.change_json(rng, part, name=f"{file.name}: header")
  text = part.read_bytes()
  part.unlink()
  file.write_bytes(len(text).to_bytes(8, "little") + text + data[end:])
  return change


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


CHAT = ("{{ bos_token or '' }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m['content'] }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def _byte_level():
  """A byte-level BPE as GPT-2's, with a few merges."""
  pre, letters = tokenizers.pre_tokenizers, sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
  pairs = [("h", "e"), ("l", "l"), ("he", "ll"), ("Ġ", "w"), ("a", "b")]
  vocabulary = {t: i for i, t in enumerate([*letters, *("".join(p) for p in pairs)])}
  core = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=pairs))
  core.pre_tokenizer = pre.Sequence([
      pre.Split(tokenizers.Regex(r"\p{N}{1,3}|\p{L}+|[^\p{N}\p{L}]+"), "isolated"),
      pre.ByteLevel(add_prefix_space=False, use_regex=False)])
  core.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFC()])
  core.decoder = tokenizers.decoders.ByteLevel()
  core.post_processor = tokenizers.processors.TemplateProcessing(single=["$A"], special_tokens=[])
  core.add_special_tokens(SPECIAL)
  return core, vocabulary, pairs


def _write(folder, **files):
  for name, value in files.items(): (folder / f"{name}.json").write_text(json.dumps(value))


def start_tokenizer(folder):
  text = transformers.PreTrainedTokenizerFast(
      tokenizer_object=_byte_level()[0], eos_token="<|im_end|>", pad_token="<|endoftext|>")
  text.chat_template = CHAT
  text.save_pretrained(folder)
  _write(folder, generation_config=dict(eos_token_id=[258]),
         special_tokens_map=dict(eos_token="<|im_end|>"),
         added_tokens={t: 261 + i for i, t in enumerate(SPECIAL)})


def start_parts(folder):
  """vocab.json and merges.txt, as Qwen2's and SmolLM2's checkpoints also have them."""
  _, vocabulary, pairs = _byte_level()
  added = {str(261 + i): dict(content=t, special=True, lstrip=False, rstrip=False,
                              normalized=False, single_word=False) for i, t in enumerate(SPECIAL)}
  (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in pairs))
  _write(folder, vocab=vocabulary | {t: 261 + i for i, t in enumerate(SPECIAL)}, added_tokens={},
         special_tokens_map=dict(eos_token="<|im_end|>"),
         config=dict(model_type="qwen2", eos_token_id=263),
         tokenizer_config=dict(
             tokenizer_class="GPT2Tokenizer", eos_token="<|im_end|>", bos_token=None,
             unk_token="<|endoftext|>", add_prefix_space=False, model_max_length=1000,
             chat_template=CHAT, clean_up_tokenization_spaces=False, added_tokens_decoder=added))


def _replace(old, new, times=40):
  return {"type": "Sequence", "normalizers": [
      {"type": "Replace", "pattern": old, "content": new}] * times}


_A = {"String": "a"}
_TEMPLATE_OF_ENDS = {
    "type": "TemplateProcessing", "pair": [],
    "single": [{"SpecialToken": {"id": "<|im_end|>", "type_id": 0}}] * 10**5 + [
        {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<|im_end|>": {"id": "<|im_end|>", "ids": [263] * 1000,
                                      "tokens": ["x"] * 1000}}}
_ADDED = [dict(id=264 + i, content="ab" * i, single_word=False, lstrip=False, rstrip=False,
               normalized=True, special=False) for i in range(1, 2000)]
TOKENIZERS = [
    *fuzz.CORPUS["tokenizers"], *({"normalizer": _replace(*args)} for args in (
        (_A, "aa"), ({"Regex": "."}, "ab"), ({"String": "@"}, "@@"), (_A, "a" * 10**5, 2),
        ({"Regex": ""}, "x"))),
    {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "a" * 10**6}] * 50}},
    {"decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": _A, "content": "aa"}] * 40}},
    {"post_processor": _TEMPLATE_OF_ENDS}, {"model": {"merges": [["a", "b"]] * 10**5}},
    {"model": {"continuing_subword_prefix": "#" * 10**6}},
    {"added_tokens": _ADDED, "normalizer": _replace(_A, "aaaa", 3)}]
TOKENIZER_CONFIGS = [*fuzz.CORPUS["tokenizer_configs"],
                     {"added_tokens_decoder": {"261": {"content": "y" * 10**5}}}]
TEMPLATES = [
    *fuzz.CORPUS["templates"], *("{{ " + x + " }}" for x in (
        "(" * 300 + "1" + ")", "-" * 5000 + "1", "1 + " * 20000 + "1", "9" * 5001)),
    "{% if 1 %}" * 50, "{% for i in range(99999) %}x{% endfor %}" * 300,
    "{% if 1 %}" * 2000 + "{% endif %}" * 2000, "{# " + "x" * 10**6 + " #}x",
    "{% raw %}" + "{" * 10**6 + "{% endraw %}", "{% macro x() %}" + CHAT, CHAT * 2,
    CHAT[:len(CHAT) // 2], CHAT.replace("content", "nothing"), CHAT.replace("messages", "message")]
MERGES = [*fuzz.CORPUS["merges"], "x y\n" * 10**5, "a b\n" * 10**5]


def text_of(name, texts):
  """Writes one of some texts into a file."""
  def change(rng, folder):
    text = rng.choice(texts)
    if (folder / name).exists() and not fuzz.is_own(folder / name): return f"{name} is gone"
    (folder / name).write_text(text)
    return f"{name}: {text!r:.120}"
  return change


# GGUF.


def start_gguf(folder):
  test_damaged.write_gguf(folder / "m.gguf")


_FORMS = dict(zip(range(13), ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")))


def _spans(data):
  """(description, start, form) of the fields of a GGUF file; form "s" is a text with a length."""
  at = 24
  yield from (("version", 4, "I"), ("tensors", 8, "Q"), ("keys", 16, "Q"))
  n_tensors, n_keys = struct.unpack_from("<QQ", data, 8)
  def text(what):
    nonlocal at
    start, at = at, at + 8 + struct.unpack_from("<Q", data, at)[0]
    return what, start, "s"
  def number(what, form):
    nonlocal at
    start, at = at, at + struct.calcsize("<" + form)
    if at > len(data): raise struct.error("an earlier change claims more fields than there are")
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


NUMBERS = (0, 1, 2, 3, 4, 7, 8, 9, 11, 13, 31, 32, 33, 64, 255, 2**15, 2**16, 2**20, 2**24,
           2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
STRINGS = (b"\xff", b"a" * 10**6, *(text.encode() for text in fuzz.CORPUS["gguf_strings"]))


def _string(raw):
  return struct.pack("<Q", len(raw)) + raw


def change_gguf(rng, folder):
  """One to three fields of a GGUF file: numbers, types, counts, texts."""
  file, changes = folder / "m.gguf", []
  for _ in range(rng.choice((1, 1, 2, 3))):
    data = file.read_bytes()
    try:
      spans = list(_spans(data))
    except (struct.error, KeyError, TypeError, MemoryError, OverflowError):
      return "; ".join([*changes, fuzz.change_bytes(rng, file)])
    kind = rng.choice(sorted({what for what, *_ in spans}))
    what, start, form = rng.choice([s for s in spans if s[0] == kind])
    if form == "s":
      end = start + 8 + struct.unpack_from("<Q", data, start)[0]
      text = data[start + 8:end]
      new = (struct.pack("<Q", rng.choice(NUMBERS)) + text if rng.random() < 0.3 else
             _string(rng.choice((*STRINGS, text[::-1], text + b"x"))))
    else:
      end = start + struct.calcsize("<" + form)
      n = rng.choice((*NUMBERS, struct.unpack_from("<" + form, data, start)[0]))
      new = (struct.pack("<" + form, rng.choice(
          (0.0, -1.0, math.nan, math.inf, -math.inf, 1e-45, 1e38, 0.5))) if form in "fd" else
             (int(n) % 2**(8 * (end - start))).to_bytes(end - start, "little"))
    file.write_bytes(data[:start] + new + data[end:])
    changes.append(f"{what} at {start}: {new[:40]!r}")
  return "; ".join(changes)


def more_keys(rng, folder):
  """One more key: a number, a text, an array, an array of arrays, a long array."""
  file = folder / "m.gguf"
  data, pack = file.read_bytes(), struct.pack
  key = rng.choice((b"x", b"llama.x", *STRINGS))
  value = rng.choice((
      pack("<IIQIQ", 9, 9, 1, 9, 2**60), pack("<IIQ", 9, 8, 200_000) + _string(b"") * 200_000,
      pack("<IIQ", 9, 0, 10**6) + bytes(10**6), pack("<IIQ", 9, 3, 10**6) + b"\x01\x7f" * 10**6,
      pack("<If", 6, math.nan), pack("<Iq", 11, -1), pack("<I?", 7, True),
      pack("<I", 8) + _string(b"yarn"), pack("<IB", 7, 7), pack("<Id", 12, 1e300),
      pack("<IIQ", 9, 6, 4) + pack("<4f", 1, 0, -1, math.inf)))
  n, = struct.unpack_from("<Q", data, 16)
  file.write_bytes(data[:16] + pack("<Q", (n + 1) % 2**64) + _string(key) + value + data[24:])
  return f"key {key!r:.60}: {value[:20]!r}"


def _zip(folder, names, data):
  with zipfile.ZipFile(folder / "m.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as f:
    for name in names: f.writestr(name, data)


def start_wheel(folder):
  start_gguf(folder)
  _zip(folder, ["m/m.gguf"], (folder / "m.gguf").read_bytes())


def change_wheel(rng, folder):
  """The contents of a wheel: inflated, with other names, more files; or any of its bytes."""
  kind, names = rng.randrange(4), ["m.gguf"]
  if kind == 0: return fuzz.change_bytes(rng, folder / "m.whl")
  data = (folder / "m.gguf").read_bytes()
  if kind == 1: data = rng.choice((data[:200], b"", b"GGUF" + bytes(300 * 10**6)))
  if kind == 2: data += bytes(rng.choice((1, 10**6, 500 * 10**6)))
  if kind == 3:
    names = rng.choice((["../../m.gguf"], ["/m.gguf"], ["a.gguf", "b.gguf"], ["m/"],
                        ["m.gguf" * 100], ["\x1b.gguf"], [".gguf"]))
  _zip(folder, names, data)
  return f"{names!r:.80} of {len(data)} bytes"


# Prompts.

ROW = dict(question="12+7=?", answer="19", split="train", prompt="12=", completion="3;4", verdict=1,
           group="g", values=[0.5, None], finish="eos", sampled=9, label=-1,
           tests=["assert f(1) == 2"], level=3)
ROWS = [*fuzz.CORPUS["rows"], {"question": "a" * 3 * 10**6}, {"question": ["a"] * 10**5},
        {"prompt": "1" * 10**6}]


def start_rows(folder):
  (folder / "rows.jsonl").write_text("".join(json.dumps(ROW | dict(
      question=f"{i}+7=?", group=str(i), split="test" if i % 3 == 0 else "train")) + "\n"
                                             for i in range(30)))


def load_rows(folder):
  """The prompts as a run reads them, and completions as train_prm does."""
  c = base.get_config()
  c.prompts.source, c.prompts.dataset = f"jsonl:{folder / 'rows.jsonl'}", "jsonl"
  c.prompts.columns = dict(meta=("level", "tests"))
  c.prompts.template = dict(name="plain")
  text = tokenizer.characters("".join(map(chr, range(32, 127))))
  build.load_prompts(c, build.texts_of(c, text))
  c.prompts.max_tokens = c.rollouts.max_tokens = 9
  stored.read(folder / "rows.jsonl", build.texts_of(c, text))


# Conversions; flags.json holds the options.


def start_convert(folder):
  (folder / "m").mkdir()
  start_model(folder / "m")
  (folder / "flags.json").write_text("{}")


def start_adapters(folder):
  """The checkpoint of a run with adapters."""
  (folder / "base").mkdir()
  start_model(folder / "base")
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
  def change(rng, folder):
    given = {name: rng.choice(flags[name])
             for name in rng.sample(sorted(flags), rng.choice((1, 1, 2)))}
    (folder / "flags.json").write_text(json.dumps(given))
    return f"{given}"
  return change


def change_state(rng, folder):
  """A file of the newest checkpoint."""
  files = sorted(f for f in (folder / "m" / "checkpoints").rglob("*") if f.is_file())
  file = rng.choice([*files, *(f for f in files if f.suffix == "" and f.name.isupper())])
  name = str(file.relative_to(folder))
  is_json = file.name.isupper() or file.name.startswith("_")
  return (fuzz.json_of if is_json else fuzz.bytes_of)(name)(rng, folder)


def below(change):
  """A change to the folder m."""
  return lambda rng, folder: change(rng, folder / "m")


def then(*damages):
  """All damages, one after the other."""
  return lambda rng, folder: "; ".join(damage(rng, folder) for damage in damages)


_CONFIG, _HEADER = fuzz.json_of("config.json", CONFIGS), change_header
_TOKENIZER = [fuzz.json_of("tokenizer.json", TOKENIZERS)] * 3 + [
    fuzz.json_of("tokenizer_config.json", TOKENIZER_CONFIGS)] * 2 + [
        fuzz.json_of(f"{name}.json")
        for name in ("special_tokens_map", "added_tokens", "generation_config")]
_TOKENIZER_BYTES = [fuzz.bytes_of(name) for name in (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "generation_config.json", "chat_template.jinja")]
_INDEX = "model.safetensors.index.json"
_PARTS = [
    fuzz.json_of("vocab.json"), text_of("merges.txt", MERGES), fuzz.json_of("added_tokens.json"),
    fuzz.json_of("tokenizer_config.json", TOKENIZER_CONFIGS), fuzz.bytes_of("vocab.json"),
    fuzz.bytes_of("merges.txt"), fuzz.change_kind]
FAMILIES = {name: fuzz.Family(inputs, start, fuzz.one_of(*changes), call)
            for name, inputs, start, changes, call in (
    ("config", 450, start_model, [_CONFIG, _CONFIG, fuzz.bytes_of("config.json")], load()),
    ("safetensors", 350, start_model, [_HEADER, _HEADER, fuzz.bytes_of("model.safetensors")],
     load()),
    ("shards", 200, start_shards, [_HEADER, fuzz.json_of(_INDEX), fuzz.bytes_of(_INDEX)], load()),
    ("tokenizer", 500, start_tokenizer,
     [*_TOKENIZER, *_TOKENIZER_BYTES, *[fuzz.change_kind] * 3], load_tokenizer),
    ("tokenizer_saved", 60, start_tokenizer, _TOKENIZER, convert_tokenizer),
    ("tokenizer_parts", 200, start_parts, _PARTS, load_tokenizer),
    ("template", 240, start_tokenizer, [text_of("chat_template.jinja", TEMPLATES)],
     load_tokenizer),
    ("gguf", 450, start_gguf, [*[change_gguf] * 3, more_keys, fuzz.bytes_of("m.gguf")],
     load("m.gguf")),
    ("wheel", 50, start_wheel, [change_wheel], load("m.whl")),
    ("rows", 300, start_rows,
     [*[fuzz.line_of("rows.jsonl", ROWS)] * 9, fuzz.bytes_of("rows.jsonl")], load_rows),
    ("convert", 100, start_convert,
     [flags_of(FLAGS), *[below(x) for x in (
         fuzz.change_kind, fuzz.change_kind, fuzz.change_kind, _HEADER, _CONFIG,
         fuzz.json_of("generation_config.json"))]], convert_model),
    ("adapters", 100, start_adapters,
     [then(flags_of(RUN_FLAGS), fuzz.one_of(
         fuzz.json_of("m/config.json", fuzz.CORPUS["runs"]), change_state))], convert_model))}
