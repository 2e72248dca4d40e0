"""What the programs of attacks_sandbox.py get: nothing, a verdict of 0, and the host as it was."""
import ctypes
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import types

import pytest

from rlx.verifiers import _sandbox
from rlx.verifiers import _seccomp
from rlx.verifiers import code_tests
from rlx.verifiers import errors
from tests.verifiers import attacks_sandbox
from tests.verifiers import sandbox

CANARY = "the-expected-output-4711"
TESTS = [dict(input="3\n", output=CANARY), f"assert f(3) == {CANARY!r}"]
ATTACKS = {f"{family}-{name}": source for family, attacks in attacks_sandbox.FAMILIES.items()
           for name, source in attacks.items()}
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: who loses its parent becomes this process's child.

pytestmark = sandbox.needed


def outside():
  """Of the host, all that an attack could have changed."""
  devices = {d: os.stat(f"/dev/{d}") for d in DEVICES if os.path.exists(f"/dev/{d}")}
  library = pathlib.Path(os.__file__)
  files = [p.stat() for p in (library, library.parent, pathlib.Path(sys.executable), pathlib.Path.cwd(),
                              pathlib.Path("/"), pathlib.Path("/usr/lib"))]
  return ({d: (s.st_mode, s.st_uid, s.st_gid, s.st_rdev) for d, s in devices.items()},
          [(s.st_mode, s.st_uid, s.st_gid, s.st_size) for s in files],
          sorted(os.listdir("/dev")), socket.gethostname(), os.getpriority(os.PRIO_PROCESS, 0),
          os.sched_getaffinity(0), pathlib.Path("/proc/self/mountinfo").read_text())


def children():
  """Process ids; those that have ended are taken note of and left out."""
  path, alive = pathlib.Path(f"/proc/self/task/{os.getpid()}/children"), set()
  for pid in map(int, path.read_text().split()):
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None: alive.add(pid)
  return alive


@pytest.fixture(scope="module")
def host(tmp_path_factory):
  """Names for the attacks; at the end compares devices, files, processes and disk."""
  folder = tmp_path_factory.mktemp("host")
  secret, temporary = folder / "secret", folder / "tmp"
  secret.write_text("LEAK")
  temporary.mkdir()
  before, old, known = outside(), tempfile.tempdir, children()
  os.environ["RLX_TEST_KEY"], tempfile.tempdir = "LEAK", str(temporary)
  ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
  try:
    with socket.create_server(("127.0.0.1", 0)) as server:
      server.settimeout(0)
      yield dict(SECRET=str(secret), OUT=str(folder / "out"), ROOT=str(pathlib.Path.cwd()),
                 HOST=os.getpid(), PORT=server.getsockname()[1])
      with pytest.raises(BlockingIOError): server.accept()
    end = time.monotonic() + 5
    while (left := children() - known) and time.monotonic() < end: time.sleep(0.01)
    after = outside()
  finally:
    ctypes.CDLL(None).prctl(_SUBREAPER, 0, 0, 0, 0)
    tempfile.tempdir = old
    del os.environ["RLX_TEST_KEY"]
    for device, (mode, *_) in before[0].items():
      if os.stat(f"/dev/{device}").st_mode != mode: os.chmod(f"/dev/{device}", mode & 0o7777)
  assert after == before and not left
  assert sorted(os.listdir(folder)) == ["secret", "tmp"] and not os.listdir(temporary)
  assert secret.read_text() == "LEAK"


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_leaks_or_earns(name, host, monkeypatch, request):
  """With `--soak` both as a program and as a module whose function is called."""
  is_long = request.config.getoption("--soak")
  printed, run = [], _sandbox.run
  monkeypatch.setattr(_sandbox, "run", lambda *a, **k: printed.append(run(*a, **k)) or printed[-1])
  names = "\n".join(f"{k} = {v!r}" for k, v in host.items())
  prompt = types.SimpleNamespace(meta=dict(
      tests=TESTS if is_long else TESTS[:1],
      code=dict(unsafe=False, test_s=1, test_mb=512, total_s=6.0 if is_long else 1.0)))
  start = time.monotonic()
  verdict = code_tests.fraction(prompt, f"{names}\n{attacks_sandbox.BEFORE}{ATTACKS[name]}")
  assert time.monotonic() - start < 15
  assert verdict == 0.0 and printed and not any(b"LEAK" in (p or b"") for p in printed)


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user runs all attacks so")
@pytest.mark.parametrize("family", ["devices", "files", "space", "privileges"])
def test_no_attack_leaks_from_a_user_namespace(family, host, monkeypatch):
  """As where root may not mount: bwrap itself runs as an ordinary user, who maps to root inside."""
  monkeypatch.setattr(_sandbox, "_capabilities", lambda: {_sandbox._SETUID, _sandbox._SETGID})
  monkeypatch.setattr(_sandbox, "_PYTHON", os.path.realpath("/usr/bin/python3"))
  monkeypatch.setattr(_sandbox, "_readable", _sandbox._readable.__wrapped__)
  monkeypatch.setattr(sys, "base_prefix", "/usr")
  names = "\n".join(f"{k} = {v!r}" for k, v in host.items()) + attacks_sandbox.BEFORE
  limits = dict(cpu_s=1, wall_s=2, memory_mb=512, unsafe=False)
  try:
    assert _sandbox.run(dict(source=f"{names}\nprint(os.getuid())"), b"", **limits) == b"0\n"
  except errors.Unknown as e:
    pytest.skip(f"no bubblewrap and interpreter that any user may run: {e}")
  for attack, source in attacks_sandbox.FAMILIES[family].items():
    assert b"LEAK" not in (_sandbox.run(dict(source=names + source), b"", **limits) or b""), attack


def test_the_verdict_of_a_right_solution_is_1(host):
  prompt = types.SimpleNamespace(meta=dict(tests=TESTS, code=dict(unsafe=False, test_s=2, total_s=20.0)))
  right = f"f = lambda x: {CANARY!r}\nif __name__ == '__main__': print(f(input()))"
  names = "\n".join(f"{k} = {v!r}" for k, v in host.items())
  assert code_tests.passed(prompt, f"{names}\n{attacks_sandbox.BEFORE}{right}") == 1.0


# Calls every number that the filter does not name, and says which are not refused.
SWEEP = """
import ctypes
C, allowed = ctypes.CDLL(None, use_errno=True), {allowed}
numbers = [n for n in range(600) if n not in allowed] + [2**30 + n for n in range(600)] + [4096, 2**31 - 1]
def errno(n, *a):
  ctypes.set_errno(0)
  return 0 if C.syscall(*map(ctypes.c_long, (n, *a, *[0] * (6 - len(a))))) >= 0 else ctypes.get_errno()
print([n for n in numbers if errno(n) != 38], [c for c in {with_arguments} if errno(*c) != 38])
"""


def test_what_is_not_listed_is_refused():
  column = list(_seccomp._ARCHITECTURES).index(os.uname().machine)
  allowed = {n for numbers in _seccomp._ALLOWED.values() for n in numbers[column:column + 1]}
  partly = {name: (numbers[column], i, values) for name, (numbers, i, values) in _seccomp._ALLOWED_WITH.items()}
  partly["clone"] = (_seccomp._CLONE[column], 0, ())
  with_arguments = []
  for number, i, values in partly.values():
    for value in [*range(64), *range(1024, 1040), 0x5412, 0x5423, 0x10000000, 0x3D0F00 & ~0x10000,
                  0x3D0F00 | 0x20000, 2**32 - 1]:
      if value not in values: with_arguments.append((number, *[0] * i, value))
  allowed |= {n for n, *_ in partly.values()}
  if column == 0: allowed |= {335, 336}  # uretprobe, uprobe: the kernel ends who calls them, before any filter.
  source = SWEEP.format(allowed=allowed, with_arguments=with_arguments)
  printed = _sandbox.run(dict(source=source), b"", cpu_s=2, wall_s=5, memory_mb=512, unsafe=False)
  assert printed == b"[] []\n"


@pytest.mark.parametrize("column, header", [
    (0, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), (1, "/usr/include/asm-generic/unistd.h")])
def test_numbers_are_those_of_the_kernels_headers(column, header):
  if not os.path.exists(header): pytest.skip("needs linux-libc-dev")
  found = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", pathlib.Path(header).read_text()))
  found.setdefault("newfstatat", found.get("fstatat"))
  listed = {**_seccomp._ALLOWED, **{k: v[0] for k, v in _seccomp._ALLOWED_WITH.items()}, "clone": _seccomp._CLONE}
  assert {k: list(v[column:column + 1]) for k, v in listed.items()} == {
      k: [int(found[k])] if k in found else [] for k in listed}


@pytest.mark.parametrize("how", ["launcher", "bwrap"])
def test_a_kill_at_any_moment_leaves_no_process(how, request):
  """1,000 kills with `--soak`; in a process of its own, whose children orphans become."""
  n = 1000 if request.config.getoption("--soak") else 30
  subprocess.run([sys.executable, "-c", KILLS, how, str(n)], check=True, timeout=1200)


# A killed bwrap ends the call of `run`, which is why its caller is not killed too.
KILLS = textwrap.dedent("""
    import ctypes, os, pathlib, random, sys, time
    from rlx.verifiers import _sandbox, errors
    how, n, rng = sys.argv[1], int(sys.argv[2]), random.Random(0)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    endless = "import os, time\\nos.closerange(0, 64)\\nwhile True: time.sleep(1)"
    def children(pid): return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for i in range(n):
      launcher = os.fork()
      if not launcher:
        try: _sandbox.run(dict(source=endless), b"", cpu_s=9, wall_s=60, memory_mb=512, unsafe=False)
        except errors.Unknown: pass
        finally: os._exit(0)
      while how == "bwrap" and not children(launcher): time.sleep(0.0005)
      time.sleep(0.04 * rng.random())
      os.kill(launcher if how == "launcher" else int(children(launcher)[0]), 9)
      end = time.monotonic() + 10
      while True:
        try: pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError: break
        if not pid: time.sleep(0.002)
        if time.monotonic() > end: sys.exit(f"kill {i}: left {[(p, open('/proc/' + p + '/stat').read()) for p in children(os.getpid())]}")
    """)


# The first thread of each ends, or its files are closed; a signal at its parent's death would be lost.
ENDLESS = ("import time\ntime.sleep(60)", "import os, time\nos.closerange(0, 64)\ntime.sleep(60)",
           attacks_sandbox.BEFORE + ATTACKS["signals-leader"],
           "import threading, time\nthreading.stack_size(2**15)\nx = bytearray(2**28)\n"
           "for i in range(200): threading.Thread(target=time.sleep, args=[60]).start()")


@pytest.mark.parametrize("source", ENDLESS, ids=range(len(ENDLESS)))
def test_nothing_of_a_late_program_is_left_when_its_run_returns(source, host):
  """Not even for the moment in which the next one would share its user's threads with it."""
  before = children()
  start = time.monotonic()
  assert _sandbox.run(dict(source=source), b"", cpu_s=2, wall_s=0.5, memory_mb=512, unsafe=False) is None
  assert children() == before and time.monotonic() - start < 5
