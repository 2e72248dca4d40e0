"""Damaged files, each read by its entry point: it works, or ends in one line.

  python -m tests.io.fuzz                # all families in full
  python -m tests.io.fuzz 0.1 config     # a tenth of the inputs of one family

An input is a copy of valid files with one or two changes, which hypothesis draws. Most of them
respect the format: values of a JSON tree, the header of a safetensors file, the fields of a GGUF
file. It is read in a process forked from this one, which has imported everything. Faults are a
traceback, more than one line, a line with control characters, and more than SECONDS or MEGABYTES
above the idle process; hypothesis reports the smallest input that it finds for a fault.
"""
import collections
import gc
import json
import math
import os
import pathlib
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from typing import Callable, NamedTuple
import warnings

import hypothesis
from hypothesis import strategies

from rlx.io import refusals
from tests.io import strings

SECONDS, MEGABYTES = 100, 1000
CORPUS = strings.fixture("fuzz")
# Written as JSON that `json.dumps` does not write: deep, with many digits, wide.
_MARKS = {"@deep@": "[" * 900 + "]" * 900, "@digits@": "9" * 4300,
          "@wide@": "[" + "[]," * 400_000 + "[]]"}
_VALUES = [*CORPUS["values"], *_MARKS]


class Family(NamedTuple):
  """Inputs of one kind."""
  inputs: int        # in full
  start: Callable    # folder: writes valid files
  call: Callable     # folder: the entry point
  # (pattern, change) with equal chances. A pattern selects files of the folder, of which one is
  # changed: (rng, its bytes) -> (new bytes, description); another_kind has the path instead.
  changes: list


def run(family, share=1.0):
  """Counter of how the inputs of a family end.

  Raises:
    AssertionError: an input ends in a fault.
  """
  counts = collections.Counter()
  with tempfile.TemporaryDirectory() as folder:
    start, path, stderr = (pathlib.Path(folder, name) for name in ("start", "m", "stderr"))
    start.mkdir()
    for begin, where in ((family.start, start), (family.call, path)):
      kind, text = _attempt(begin, where, stderr)
      assert kind == "worked", f"undamaged files: {kind}: {text}"
      shutil.rmtree(path, ignore_errors=True)
      shutil.copytree(start, path, symlinks=True)

    @hypothesis.settings(max_examples=math.ceil(share * family.inputs), derandomize=True,
                         database=None, deadline=None,
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(strategies.randoms(use_true_random=False))
    def ends_well(rng):
      shutil.rmtree(path)
      shutil.copytree(start, path, symlinks=True)
      changes = [_change(rng, path, family) for _ in range(rng.choice((1, 1, 1, 2)))]
      kind, text = _attempt(family.call, path, stderr)
      counts[kind] += 1
      assert kind in ("worked", "refused"), f"{changes}: {kind}: {text}"

    ends_well()
  return counts


def _change(rng, folder, family):
  """Changes one file of a folder; returns a description."""
  pattern, change = rng.choice(family.changes)
  files = [f for f in sorted(folder.rglob(pattern)) if f.is_file() and not f.is_symlink()]
  if not files: return f"no file {pattern} is left"
  file = rng.choice(files)
  if change is another_kind: return change(rng, file)
  data = file.read_bytes()
  try:
    data, description = change(rng, data)
  except (ValueError, TypeError, LookupError, RecursionError):  # An earlier change broke it.
    data, description = some_bytes(rng, data)
  file.write_bytes(data)
  return f"{file.relative_to(folder)}: {description}"


def _attempt(call, path, stderr):
  """(how a call in a process of its own ends, its stderr)"""
  begin = time.monotonic()
  sys.stdout.flush()
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # jax warns of forks; its backend is not started here.
    pid = os.fork()
  if not pid: _child(call, path, stderr)  # Does not return; SIGALRM ends it in any case.
  _, status, usage = os.wait4(pid, 0)
  idle, *lines = stderr.read_text(errors="backslashreplace").splitlines()
  megabytes, code = usage.ru_maxrss / 1024 - float(idle), os.waitstatus_to_exitcode(status)
  is_line = bool(lines) and lines[-1].startswith("rlx: ") and all(
      line.startswith(("rlx: ", "WARNING:absl:", "[transformers] ")) and line.isprintable()
      and len(line) < 3000 for line in lines)
  kind = {0: "worked", 2: "refused" if is_line else "lines"}.get(code, f"exit {code}")
  if any(line.startswith("Traceback (") for line in lines): kind = "traceback"
  if time.monotonic() - begin > SECONDS: kind = "late"
  if megabytes > MEGABYTES: kind = f"{megabytes:.0f} MB"
  return kind, "\n".join(lines)[-3000:]


def _child(call, path, stderr):
  """Runs `call` as a command line does; exits with the code of the command."""
  code = 1
  try:
    os.setsid()
    idle, used = (int(n) * resource.getpagesize() for n in reversed(
        pathlib.Path("/proc/self/statm").read_text().split()[:2]))
    with open(stderr, "wb") as f: os.dup2(f.fileno(), 2)
    print(idle / 2**20, file=sys.stderr, flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.environ["XDG_CACHE_HOME"] = str(path / "cache")
    resource.setrlimit(resource.RLIMIT_AS, (used + (MEGABYTES + 1000) * 2**20,) * 2)
    signal.alarm(SECONDS + 1)
    refusals.run_refusing(lambda: call(path), path, again="")
    code = 0
  except SystemExit as e:
    code = e.code if isinstance(e.code, int) else 1
  except BaseException:  # pylint: disable=broad-exception-caught
    traceback.print_exc()
  finally:
    sys.stderr.flush()
    os._exit(code)


def json_with(hints=()):
  """A change of one or two places of a JSON file; often puts one of the trees `hints` over it."""
  def change(rng, data):
    tree, said = json.loads(data), []
    if hints and rng.random() < 0.5:
      said.append(f"{(hint := rng.choice(hints))!r:.200}")
      _overlay(tree, hint)
    for _ in range(rng.choice((0, 1, 1, 2)) if said else rng.choice((1, 1, 2))):
      if not (places := list(_places(tree))): break
      holder, key = rng.choice(places)
      kind = rng.choice(("value", "value", "value", "value", "drop", "swap", "rename", "near"))
      if kind == "value": holder[key] = rng.choice(_VALUES)
      elif kind == "near" and isinstance(x := holder[key], (int, float)):
        holder[key] = rng.choice((-x, x + 1, x - 1, x * 2, x / 3, str(x), [x]))
      elif kind == "drop": del holder[key]
      elif kind == "swap":
        other, at = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[at]))
      elif isinstance(holder, dict):
        holder[rng.choice(["x", "", "\n", key.upper(), key + " "])] = holder.pop(key)
      said.append(f"{kind} {key!r:.60}")
    text = json.dumps(tree)
    for mark, raw in _MARKS.items(): text = text.replace(f'"{mark}"', raw)
    return text.encode("utf-8", "surrogatepass"), ", ".join(said)
  return change


def _overlay(tree, hint):
  for key, value in hint.items():
    if isinstance(value, dict) and isinstance(tree.get(key), dict): _overlay(tree[key], value)
    else: tree[key] = json.loads(json.dumps(value))


def _places(tree):
  """(holder, key) of every value in a tree."""
  for key in tree if isinstance(tree, dict) else range(len(tree)):
    yield tree, key
    if isinstance(tree[key], (dict, list)): yield from _places(tree[key])


def line_with(hints=()):
  """A change of a line of a JSONL file, as JSON or as bytes, or another line."""
  change_json = json_with(hints)
  def change(rng, data):
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    line, said = rng.choice((change_json, change_json, some_bytes))(rng, lines[at].rstrip(b"\n"))
    lines[at] = line + b"\n" * (rng.random() < 0.9)
    if rng.random() < 0.1:
      lines.insert(at, rng.choice((b"\0" * 4096, b"\n", b"[]\n", b'{"step": 1}\n', b"\xff\n")))
    return b"".join(lines), f"line {at + 1}: {said}"
  return change


def one_of(texts):
  """Another text instead of the whole file."""
  def change(rng, data):
    del data
    text = rng.choice(texts)
    return text.encode(), f"{text!r:.120}"
  return change


def some_bytes(rng, data):
  """Changes bytes at any place, most often near the start."""
  at = rng.randrange(min(len(data), rng.choice((200, 4000, 10**9))) or 1)
  kind, make = rng.choice(list({
      "cut": lambda: data[:at], "remove": lambda: data[:at] + data[at + rng.randrange(1, 40):],
      "flip": lambda: data[:at] + bytes(b ^ 1 << rng.randrange(8) for b in data[at:at + 1])
              + data[at + 1:],
      "insert": lambda: data[:at] + rng.randbytes(rng.randrange(1, 20)) + data[at:],
      "repeat": lambda: data[:at + rng.randrange(1, 200)] + data[at:], "empty": lambda: b"",
      "mark": lambda: b"\xef\xbb\xbf" + data, "append": lambda: data + rng.randbytes(9),
      "utf-16": lambda: data.decode("latin-1").encode("utf-16"),
      "zeros": lambda: data[:at] + bytes(64) + data[at + 64:]}.items()))
  return make(), f"{kind} at {at}"


def another_kind(rng, file):
  """Replaces a file by nothing, a folder, a pipe, or a link, most often out of the folder."""
  file.unlink()
  kind = rng.choice(("nothing", "a folder", "a pipe", "/etc/passwd", "/dev/zero", "/dev/full",
                     "/dev/null", "/proc/self/environ", "nowhere", file.name, "..", "/dev/stdin"))
  if kind == "a folder": file.mkdir()
  elif kind == "a pipe": os.mkfifo(file)
  elif kind != "nothing": file.symlink_to(kind)
  return f"{file.name} becomes {kind}"


def main():
  from tests.io import fuzz  # This module as the families import it.
  from tests.io import fuzz_files
  gc.freeze()  # A collection in a forked process would copy all that is imported here.
  share, *names = sys.argv[1:] or [1.0]
  for name in names or fuzz_files.FAMILIES:
    begin = time.monotonic()
    counts = fuzz.run(fuzz_files.FAMILIES[name], float(share))
    print(f"{name:16} {dict(counts)}, {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
  main()
