"""Programs that attack the sandbox get a verdict of 0 and change nothing on the host."""
import contextlib
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

import pytest

from rlx.verifiers import code_tests, errors
from rlx.verifiers.sandbox import sandbox as sandbox_lib, seccomp
from tests.verifiers import cases, sandbox

CANARY = "the-expected-output-4711"
TESTS = [dict(input="3\n", output=CANARY), f"assert f(3) == {CANARY!r}"]
CASES = cases.read("attacks_sandbox.toml")
BEFORE = CASES["before"]
FAMILIES = cases.families("attacks_sandbox.toml")
# Families whose attacks end, stop or change their process; the others share one.
ALONE = ("signals", "limits", "output", "exits", "interpreter")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: who loses its parent becomes this process's child.

pytestmark = sandbox.needed


def outside():
  """Of the host, all that an attack could have changed."""
  devices = {d: os.stat(f"/dev/{d}") for d in DEVICES if os.path.exists(f"/dev/{d}")}
  library = pathlib.Path(os.__file__)
  files = [p.stat() for p in (library, library.parent, pathlib.Path(sys.executable),
                              pathlib.Path.cwd(), pathlib.Path("/"), pathlib.Path("/usr/lib"))]
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
def names(tmp_path_factory):
  """Names for the attacks, as Python; at the end compares devices, files, processes and disk."""
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
      values = dict(SECRET=str(secret), OUT=str(folder / "out"), ROOT=str(pathlib.Path.cwd()),
                    HOST=os.getpid(), PORT=server.getsockname()[1])
      yield "".join(f"{name} = {value!r}\n" for name, value in values.items())
      with pytest.raises(BlockingIOError): server.accept()
    end = time.monotonic() + 60
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


def printed_by_all(attacks, before, **limits):
  """What attacks print that change nothing for the next one, in as few sandboxes as they allow."""
  todo, printed = dict(attacks), b""
  while todo:
    new, _ = sandbox_lib.output(before + CASES["several"].format(attacks=todo), b"3\n", **limits)
    assert (begun := re.findall(r"^begins (\w+)$", new.decode(), re.M)), todo
    todo, printed = {name: todo[name] for name in todo if name not in begun}, printed + new
  return printed


@pytest.mark.parametrize("family", FAMILIES)
def test_no_attack_leaks_or_earns(family, names, request):
  """Signals, and with `--soak` all, also from a module whose function a test calls."""
  is_soak = request.config.getoption("--soak")
  is_long = family == "signals" or is_soak
  limits = sandbox.LIMITS | dict(cpu_s=1)
  def check(name):
    source, start = names + BEFORE + FAMILIES[family][name], time.monotonic()
    short = dict(total_s=0.5 if name in CASES["endless"] else 1.0)
    if is_long: assert code_tests.fraction(sandbox.prompt(TESTS, **short), source) == 0.0, name
    printed, ends_well = sandbox_lib.output(source, b"3\n", **limits | short)
    assert time.monotonic() - start < 60, name
    assert b"LEAK" not in printed and not (ends_well and CANARY.encode() in printed), name

  if is_soak or family in ALONE: sandbox.at_once(check, FAMILIES[family])
  else:
    printed = printed_by_all(FAMILIES[family], names + BEFORE, **limits)
    assert b"LEAK" not in printed and CANARY.encode() not in printed, printed.decode()


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user runs all attacks so")
@pytest.mark.parametrize("family", ["devices", "files", "space", "privileges"])
def test_no_attack_leaks_from_a_user_namespace(family, names, monkeypatch):
  """As where root may not mount: bwrap runs as an ordinary user, who maps to root inside."""
  monkeypatch.setattr(sandbox_lib, "_capabilities",
                      lambda: {sandbox_lib._SETUID, sandbox_lib._SETGID})
  monkeypatch.setattr(sandbox_lib, "_PYTHON", os.path.realpath("/usr/bin/python3"))
  monkeypatch.setattr(sandbox_lib, "_bind_readable", sandbox_lib._bind_readable.__wrapped__)
  monkeypatch.setattr(sys, "base_prefix", "/usr")
  limits = sandbox.LIMITS | dict(cpu_s=2)
  attacks = FAMILIES[family] | dict(user="print(os.getuid())")
  try:
    printed = printed_by_all(attacks, names + BEFORE, **limits)
  except errors.Unknown as e:
    pytest.skip(f"no bubblewrap and interpreter that any user may run: {e}")
  assert b"LEAK" not in printed and printed.endswith(b"begins user\n0\n"), printed.decode()


def test_what_is_not_listed_is_refused():
  column = list(seccomp._ARCHITECTURES).index(os.uname().machine)
  allowed = {n for numbers in seccomp._ALLOWED.values() for n in numbers[column:column + 1]}
  partly = [*seccomp._ALLOWED_WITH.values(), (seccomp._CLONE, 0, ())]
  tried = [*range(64), *range(1024, 1040), 0x5412, 0x5423, 0x10000000, 0x3D0F00 & ~0x10000,
           0x3D0F00 | 0x20000, 2**32 - 1]
  with_arguments = [(numbers[column], *[0] * i, value) for numbers, i, values in partly
                    for value in tried if value not in values]
  allowed |= {numbers[column] for numbers, *_ in partly}
  # uretprobe and uprobe: the kernel ends a process that calls them, before any filter.
  if column == 0: allowed |= {335, 336}
  source = CASES["sweep"].format(allowed=allowed, with_arguments=with_arguments)
  assert sandbox_lib.output(source, b"", **sandbox.LIMITS) == (b"[] []\n", True)


@pytest.mark.parametrize("column, header", [
    (0, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), (1, "/usr/include/asm-generic/unistd.h")])
def test_numbers_are_those_of_the_kernels_headers(column, header):
  if not os.path.exists(header): pytest.skip("needs linux-libc-dev")
  definitions = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", pathlib.Path(header).read_text())
  numbers = {name: [int(number)] for name, number in definitions}
  numbers.setdefault("newfstatat", numbers.get("fstatat"))
  partly = {name: numbers for name, (numbers, *_) in seccomp._ALLOWED_WITH.items()}
  listed = seccomp._ALLOWED | partly | dict(clone=seccomp._CLONE)
  assert {name: list(columns[column:column + 1]) for name, columns in listed.items()} == {
      name: numbers.get(name, []) for name in listed}


def test_an_architecture_without_a_filter_is_named(monkeypatch):
  monkeypatch.setattr(seccomp.platform, "machine", lambda: "riscv64")
  with pytest.raises(ImportError, match="no system call filter for riscv64"):
    seccomp.program.__wrapped__()


@pytest.mark.parametrize("how", ["launcher", "bwrap"])
def test_a_kill_at_any_moment_leaves_no_process(how, request):
  """1,000 kills with `--soak`; in a process of its own, whose children orphans become."""
  n = 1000 if request.config.getoption("--soak") else 32
  subprocess.run([sys.executable, "-c", KILLS, how, str(n)], check=True, timeout=2400)


# A killed bwrap ends the call of `run`, which is why its caller is not killed too.
KILLS = textwrap.dedent("""
    import ctypes, os, pathlib, random, sys, time
    from rlx.verifiers import errors
    from rlx.verifiers.sandbox import sandbox
    how, n, rng = sys.argv[1], int(sys.argv[2]), random.Random(0)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    endless = "import os, time\\nos.closerange(0, 64)\\nwhile True: time.sleep(1)"
    def children(pid): return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for i in range(n):
      launcher = os.fork()
      if not launcher:
        limits = dict(cpu_s=9, total_s=60, memory_mb=512, unsafe=False)
        try: sandbox.output(endless, b"", **limits)
        except errors.Unknown: pass
        finally: os._exit(0)
      while how == "bwrap" and not children(launcher): time.sleep(0.0005)
      time.sleep((0.6 if i % 5 == 0 else 0.04) * rng.random())  # Also long after the start.
      os.kill(launcher if how == "launcher" else int(children(launcher)[0]), 9)
      end = time.monotonic() + 60
      while True:
        try: pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError: break
        if not pid: time.sleep(0.002)
        if time.monotonic() > end: sys.exit(f"kill {i}: left {children(os.getpid())}")
    """)


def test_no_file_stays_open_whatever_its_number():
  source = ("import os\nfor fd in range(3, 4096):\n  try: os.fstat(fd); print(fd)\n"
            "  except OSError: pass")
  with contextlib.ExitStack() as stack:
    for _ in range(100): stack.enter_context(open("/dev/null"))
    assert sandbox_lib.output(source, b"", **sandbox.LIMITS) == (b"", True)


def test_programs_have_the_same_memory():
  # A second thread of the first process would reserve part of it, before or after the fork.
  source = textwrap.dedent("""
      def fits(mb):
        try: return bool(bytearray(mb << 20))
        except MemoryError: return False
      print(max(mb for mb in range(1, 128) if fits(mb)))
      """)
  ask = lambda i: sandbox_lib.output(f"{source}#{i}", b"", **sandbox.LIMITS | dict(memory_mb=128))
  assert len(set(sandbox.at_once(ask, range(48)))) == 1


# The first thread of each ends, or its files are closed: a signal at its parent's death is lost.
ENDLESS = ("import time\ntime.sleep(60)", "import os, time\nos.closerange(0, 64)\ntime.sleep(60)",
           BEFORE + FAMILIES["signals"]["leader"],
           "import threading, time\nthreading.stack_size(2**15)\nx = bytearray(2**28)\n"
           "for i in range(200): threading.Thread(target=time.sleep, args=[60]).start()")


@pytest.mark.parametrize("source", ENDLESS, ids=range(len(ENDLESS)))
def test_nothing_of_a_late_program_is_left_when_its_run_returns(source, names):
  """Not even for the moment in which the next one would share its user's threads with it."""
  before, start = children(), time.monotonic()
  assert not sandbox_lib.output(source, b"", **sandbox.LIMITS | dict(total_s=0.5))[1]
  assert children() == before and time.monotonic() - start < 50  # Of 60.
