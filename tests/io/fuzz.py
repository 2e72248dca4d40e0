"""Damaged files, each read by its entry point: it works, or ends in one line.

  python -m tests.io.fuzz                       # all families in full
  python -m tests.io.fuzz --share=0.1 config    # a tenth of the inputs of one family
  python -m tests.io.fuzz --only=17 config      # one input again; its folder is kept

An input is a copy of valid files with one to three changes that respect the format: values of a
JSON tree, the header of a safetensors file, the fields of a GGUF file. It is read in a process
forked from this one, which has imported everything. Faults are a traceback, more than one line, a
line with control characters, and more than SECONDS or MEGABYTES above the idle process.
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
import sys
import tempfile
import time
import traceback
from typing import Callable, NamedTuple
import warnings

from rlx import cli

SECONDS, MEGABYTES = 20, 1000
ROOT = pathlib.Path(__file__).parent.parent.parent
CORPUS = json.loads((pathlib.Path(__file__).parent / "fixtures" / "fuzz.json").read_text())


class Family(NamedTuple):
  """Inputs of one kind."""
  inputs: int        # with --share=1
  start: Callable    # folder: writes valid files
  damage: Callable   # rng, folder: changes them; returns a description of the change
  call: Callable     # folder: the entry point


class Outcome(NamedTuple):
  """The result of one input."""
  kind: str          # worked, refused, or a fault
  text: str          # stderr
  seconds: float
  megabytes: float   # above the idle process
  change: str = "nothing"


def run(family, numbers, *, seed=0, keep=False):
  """(number, Outcome) of some inputs of a family, after checking that undamaged files work."""
  with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "start").mkdir()
    outcome = _attempt(family.start, folder / "start", folder / "stderr")
    assert outcome.kind == "worked", outcome
    for number in (None, *numbers):
      path, change = shutil.copytree(folder / "start", folder / "m", symlinks=True), "nothing"
      if number is not None: change = family.damage(random.Random(f"{seed} {number}"), path)
      if keep and number is not None:
        print(shutil.copytree(path, tempfile.mkdtemp(), dirs_exist_ok=True, symlinks=True))
      outcome = _attempt(family.call, path, folder / "stderr")._replace(change=change)
      shutil.rmtree(path)
      if number is not None: yield number, outcome
      else: assert outcome.kind == "worked", f"undamaged files: {outcome}"


def _attempt(call, path, stderr):
  """The Outcome of one call in a process of its own."""
  begin = time.monotonic()
  sys.stdout.flush()
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # jax warns of forks; its backend is not started here.
    pid = os.fork()
  if not pid: _child(call, path, stderr)  # Does not return; SIGALRM ends it in any case.
  _, status, usage = os.wait4(pid, 0)
  seconds = time.monotonic() - begin
  idle, *lines = stderr.read_text(errors="backslashreplace").splitlines()
  megabytes, code = usage.ru_maxrss / 1024 - float(idle), os.waitstatus_to_exitcode(status)
  is_line = bool(lines) and lines[-1].startswith("rlx: ") and all(
      line.startswith(("rlx: ", "WARNING:absl:", "[transformers] ")) and line.isprintable()
      and len(line) < 3000 for line in lines)
  kind = {0: "worked", 2: "refused" if is_line else "lines"}.get(code, f"exit {code}")
  if any(line.startswith("Traceback (") for line in lines): kind = "traceback"
  if seconds > SECONDS: kind = "late"
  if megabytes > MEGABYTES or (kind == "traceback" and "MemoryError" in lines[-1]):
    kind = "memory"
  return Outcome(kind, "\n".join(lines)[-3000:], seconds, megabytes)


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
    cli.run(lambda: call(path), path, again="")
    code = 0
  except SystemExit as e:
    code = e.code if isinstance(e.code, int) else 1
  except BaseException:  # pylint: disable=broad-exception-caught
    traceback.print_exc()
  finally:
    sys.stderr.flush()
    os._exit(code)


# Written as JSON that `json.dumps` does not write: deep, with many digits, wide.
_MARKS = {"@deep@": "[" * 900 + "]" * 900, "@digits@": "9" * 4300,
          "@wide@": "[" + "[]," * 400_000 + "[]]"}
_VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 7, 127, 2**16, 2**31 - 1, 2**31, 2**32 - 8, 2**53 + 1,
    2**63, 2**64, -2**63, 10**30, 0.0, -0.0, 0.5, 1.0, 1e-45, 1e-300, 1e38, 1e308, math.nan,
    math.inf, -math.inf, "", "a", "0", "1e9", "default", "\0", "\x1b[31mred\x1b[0m\n", "\u202e",
    "\ud800", "é" * 70, "a" * 100_000, "../../etc/passwd", [], {}, [[]], [0], [1, 2], [None],
    ["a"], [0.5] * 1000, {"a": 1}, {"": {}}, {"type": "x"}, *_MARKS]


def change_json(rng, file, hints=(), name=None):
  """Changes one or two places of a JSON file; often puts one of the trees `hints` over it first."""
  tree, changes = json.loads(file.read_text()), []
  if hints and rng.random() < 0.5:
    hint = rng.choice(hints)
    _overlay(tree, hint)
    changes.append(f"{hint!r:.200}")
  for _ in range(rng.choice((0, 1, 1, 2)) if changes else rng.choice((1, 1, 2))):
    places = list(_places(tree))
    if not places: break
    holder, key = rng.choice(places)
    kind = rng.choice(("value", "value", "value", "value", "drop", "swap", "rename", "near"))
    if kind == "value": holder[key] = rng.choice(_VALUES)
    elif kind == "near" and isinstance(holder[key], (int, float)):
      x = holder[key]
      holder[key] = rng.choice((-x, x + 1, x - 1, x * 2, x / 3, str(x), [x]))
    elif kind == "drop": del holder[key]
    elif kind == "swap":
      other, at = rng.choice(places)
      if at in other if isinstance(other, dict) else at < len(other):
        holder[key] = json.loads(json.dumps(other[at]))
    elif isinstance(holder, dict):
      holder[rng.choice(["x", "", "\n", key.upper(), key + " "])] = holder.pop(key)
    changes.append(f"{kind} {key!r:.60}")
  text = json.dumps(tree)
  for mark, raw in _MARKS.items(): text = text.replace(f'"{mark}"', raw)
  file.write_bytes(text.encode("utf-8", "surrogatepass"))
  return f"{name or file.name}: " + ", ".join(changes)


def _overlay(tree, hint):
  for key, value in hint.items():
    if isinstance(value, dict) and isinstance(tree.get(key), dict): _overlay(tree[key], value)
    else: tree[key] = json.loads(json.dumps(value))


def _places(tree):
  """(holder, key) of every value in a tree."""
  for key in tree if isinstance(tree, dict) else range(len(tree)):
    yield tree, key
    if isinstance(tree[key], (dict, list)): yield from _places(tree[key])


def change_bytes(rng, file):
  """Changes bytes of a file at any place, most often near its start."""
  data = bytearray(file.read_bytes())
  at = rng.randrange(min(len(data), rng.choice((200, 4000, 10**9))) or 1)
  kind, make = rng.choice(list({
      "cut": lambda: data[:at], "remove": lambda: data[:at] + data[at + rng.randrange(1, 40):],
      "flip": lambda: data[:at] + bytes(b ^ 1 << rng.randrange(8) for b in data[at:at + 1])
              + data[at + 1:],
      "set": lambda: data[:at] + rng.randbytes(1) + data[at + 1:],
      "insert": lambda: data[:at] + rng.randbytes(rng.randrange(1, 20)) + data[at:],
      "repeat": lambda: data[:at + rng.randrange(1, 200)] + data[at:], "empty": lambda: b"",
      "mark": lambda: b"\xef\xbb\xbf" + data, "append": lambda: data + rng.randbytes(9),
      "utf-16": lambda: data.decode("latin-1").encode("utf-16"),
      "zeros": lambda: data[:at] + bytes(64) + data[at + 64:]}.items()))
  file.write_bytes(make())
  return f"{file.name}: {kind} at {at}"


def change_kind(rng, folder):
  """Replaces a file by nothing, a folder, a pipe, or a link, most often out of the folder."""
  files = sorted(f for f in folder.rglob("*") if f.is_file())
  if not files: return "no file is left"
  file = rng.choice(files)
  file.unlink()
  kind = rng.choice(("nothing", "a folder", "a pipe", "/etc/passwd", "/dev/zero", "/dev/full",
                     "/dev/null", "/proc/self/environ", "nowhere", file.name, "..", "/dev/stdin"))
  if kind == "a folder": file.mkdir()
  elif kind == "a pipe": os.mkfifo(file)
  elif kind != "nothing": file.symlink_to(kind)
  return f"{file.relative_to(folder)} becomes {kind}"


def one_of(*changes):
  """A damage that is one of several changes, or two of them."""
  def damage(rng, folder):
    return "; ".join(rng.choice(changes)(rng, folder) for _ in range(rng.choice((1, 1, 1, 2))))
  return damage


def is_own(file):
  """Whether a file is still there and no link, through which a change would leave the folder."""
  return file.is_file() and not file.is_symlink()


def json_of(name, hints=()):
  """A change to a JSON file of the folder; to its bytes, if an earlier change left no JSON."""
  def change(rng, folder):
    if not is_own(folder / name): return f"{name} is gone"
    try:
      return change_json(rng, folder / name, hints)
    except (ValueError, OSError, RecursionError, TypeError):
      return bytes_of(name)(rng, folder)
  return change


def bytes_of(name):
  """A change to the bytes of a file of the folder, if it is still there."""
  def change(rng, folder):
    if not is_own(folder / name): return f"{name} is gone"
    return change_bytes(rng, folder / name)
  return change


def line_of(name, hints=()):
  """A change to a line of a JSONL file, as JSON or as bytes, or another line in its place."""
  def change(rng, folder):
    file, part = folder / name, folder / "line"
    if not is_own(file): return f"{name} is gone"
    lines = file.read_bytes().splitlines(keepends=True) or [b"\n"]
    at = rng.randrange(len(lines))
    part.write_bytes(lines[at].rstrip(b"\n"))
    description = json_of("line", hints)(rng, folder)
    lines[at] = part.read_bytes() + b"\n" * (rng.random() < 0.9)
    part.unlink()
    if rng.random() < 0.1:
      lines.insert(rng.randrange(len(lines)), rng.choice(
          (b"\0" * 4096, b"\n", b"[]\n", b'{"step": 1}\n', b"\xff\n")))
    file.write_bytes(b"".join(lines))
    return f"{name}, line {at + 1}: {description}"
  return change


def main():
  from tests.io import fuzz_files
  from tests.io import fuzz_runs
  families = fuzz_files.FAMILIES | fuzz_runs.FAMILIES
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("families", nargs="*", default=list(families))
  parser.add_argument("--share", type=float, default=1.0)
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--only", type=int)
  args, n_faults = parser.parse_args(), 0
  for name in args.families:
    numbers = range(math.ceil(args.share * families[name].inputs))
    if args.only is not None: numbers = [args.only]
    counts, outcomes, begin = collections.Counter(), [], time.monotonic()
    for number, outcome in run(families[name], numbers, seed=f"{args.seed} {name}",
                               keep=args.only is not None):
      counts[outcome.kind] += 1
      outcomes.append(outcome)
      if outcome.kind not in ("worked", "refused") or args.only is not None:
        n_faults += 1
        print(f"{name} {number}: {outcome.kind}, {outcome.seconds:.1f} s, "
              f"{outcome.megabytes:.0f} MB: {outcome.change}\n{outcome.text}", flush=True)
    print(f"{name:16} {len(numbers):5} inputs, {dict(counts)}, at most "
          f"{max(o.seconds for o in outcomes):.1f} s and "
          f"{max(o.megabytes for o in outcomes):.0f} MB; {time.monotonic() - begin:.0f} s",
          flush=True)
  sys.exit(n_faults > 0)


if __name__ == "__main__":
  main()
