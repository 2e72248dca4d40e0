"""Worker processes: both ends of the connection through which they get requests and reply.

The trainer sends requests as pickles. Replies are lines of JSON, because a process that has read
untrusted text may send anything, and the trainer must not run any of it.
"""
import contextlib
import json
import os
import pickle
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

LIFE = 2000  # Least number of requests that a worker answers before it is replaced.
WORK = 50    # Least ratio of its time for requests to its time for imports by then.
LOST = ("timeout", "crash", "memory")  # Errors after which a worker is replaced.
_MAX_REPLY = 2**22  # Bytes.
# Environment variables that every worker gets: none that has a credential. Untrusted text runs
# there, and what an environment answers is stored with the run.
VARIABLES = frozenset("""
    PATH HOME USER LOGNAME SHELL SYSTEMROOT TMPDIR TEMP TMP TZ LANG LANGUAGE LC_ALL LC_CTYPE
    LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME
    XDG_RUNTIME_DIR LD_LIBRARY_PATH DYLD_LIBRARY_PATH VIRTUAL_ENV CONDA_PREFIX PYTHONHOME PYTHONUTF8
    PYTHONHASHSEED PYTHONIOENCODING PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX PYTHONUSERBASE
    PYTHONNOUSERSITE PYTHONWARNINGS OMP_NUM_THREADS MKL_NUM_THREADS NUMEXPR_NUM_THREADS
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE HTTP_PROXY HTTPS_PROXY ALL_PROXY
    NO_PROXY http_proxy https_proxy all_proxy no_proxy HF_HOME HF_HUB_OFFLINE HF_DATASETS_OFFLINE
    TRANSFORMERS_OFFLINE NLTK_DATA JAX_PLATFORMS CUDA_VISIBLE_DEVICES COVERAGE_PROCESS_START
""".split())
_CREDENTIALS = re.compile("://[^/]*@")  # As in the address of a proxy.


def command(module: str) -> list[str]:
  """The command of a process that runs `main` of this module, without its arguments."""
  return [sys.executable, "-c", f"import {module} as module; module.main()"]


class Process:
  """A process that answers requests: the trainer's end."""

  def __init__(self, module: str, memory_gb: float, variables: Sequence[str] = ()):
    """Starts it; `module` has a function `main`, which calls `serve`.

    Of this process's environment variables it gets those of VARIABLES and these.
    """
    self.loaded: set[str] = set()  # Paths of functions that it has imported.
    self.number = 0           # Of the newest request; the reply contains the same number.
    self._load_s = self._work_s = 0.0
    self._connection, theirs = socket.socketpair()
    # multiprocessing.Process would import the main module again, and with it jax. In a session
    # of its own, the worker is killed together with everything that its functions have started,
    # and does not receive Ctrl-C.
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    self.process = subprocess.Popen(
        [*command(module), str(theirs.fileno()), str(memory_gb)],
        env={name: x for name, x in os.environ.items()
             if name in variables or name in VARIABLES and not _CREDENTIALS.search(x)}
        | dict(PYTHONPATH=paths, OPENBLAS_NUM_THREADS="1"),
        pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True)
    theirs.close()

  @property
  def is_old(self) -> bool:
    """Whether to replace the process, so that nothing that untrusted text has left in it stays.

    A process that needs seconds for its imports lives longer. Otherwise imports could take more
    time than the requests.
    """
    return self.number >= LIFE and self._work_s >= WORK * self._load_s

  def ask(self, limit_s: float, kind: str, *args: Any,
          loads: bool = False) -> tuple[bytes, str | None]:
    """(the line of the reply to a request, None), or (b"", "timeout" or "crash").

    `loads`: whether the process imports packages for this request.
    """
    self.number += 1
    start, received = time.monotonic(), bytearray()
    try:
      # The worker may stop reading, or stop in the middle of a reply.
      self._connection.settimeout(limit_s)
      self._connection.sendall(pickle.dumps((self.number, limit_s, kind, args)))
      while not received.endswith(b"\n") and len(received) <= _MAX_REPLY:
        if (left_s := start + limit_s - time.monotonic()) <= 0: raise TimeoutError
        self._connection.settimeout(left_s)
        if not (part := self._connection.recv(2**16)): break
        received += part
    except TimeoutError:
      return b"", "timeout"
    except OSError:
      return b"", "crash"
    finally:
      seconds = time.monotonic() - start
      if loads: self._load_s += seconds
      else: self._work_s += seconds
    return bytes(received), None

  def kill(self) -> int:
    """Kills the process. Returns its exit code, which is negative for a signal."""
    with contextlib.suppress(ProcessLookupError): os.killpg(self.process.pid, signal.SIGKILL)
    code = self.process.wait()
    self._connection.close()
    return code


def serve(answer: Callable[..., list]) -> None:
  """Answers requests until the trainer closes the connection: the worker's end.

  Its arguments are on the command line: the file descriptor of the connection and the memory limit
  in GB (Linux only).

  Args:
    answer: (kind, *args) -> the items of the reply after the number of the request.
  """
  fd, memory_gb = sys.argv[1:]
  os.set_inheritable(int(fd), False)
  connection = socket.socket(fileno=int(fd))
  requests = connection.makefile("rb")
  if sys.platform == "linux":
    resource.setrlimit(resource.RLIMIT_AS, (int(float(memory_gb) * 2**30),) * 2)
  while True:
    try:
      number, limit_s, kind, args = pickle.load(requests)
    except (EOFError, OSError, pickle.UnpicklingError):
      return
    # The trainer kills a worker that is late. If the trainer has died, this alarm ends the worker,
    # even in C code that no Python thread can interrupt.
    signal.setitimer(signal.ITIMER_REAL, 2 * limit_s + 1)
    reply = answer(kind, *args)
    signal.setitimer(signal.ITIMER_REAL, 0)
    try:
      connection.sendall(json.dumps([number, *reply]).encode() + b"\n")
    except OSError:
      return
