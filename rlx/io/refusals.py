"""Ends a command with one line where the user can fix the error."""
import dis
import errno
import os
import pathlib
import signal
import sys
import traceback
from typing import Any, Callable, NoReturn

import jax

from rlx.io import terminal

_PACKAGE = pathlib.Path(__file__).parent.parent


def run_refusing(call: Callable[[], Any], folder: str | os.PathLike | None = None, *,
                 again: str) -> None:
  """Runs call(); an error that the user can fix ends the program with one line.

  The exit code says whether the same command may succeed later:

    2  no: the command, its config or its files have to change (ValueError, a path)
    1  yes: something failed that the run depends on, such as a judge, a verifier or an environment
       that is down (RuntimeError), or a full disk. The run goes on where it stopped.

  Errors of the program itself keep their traceback, of which the exit code is 1, too.

  Args:
    folder: the path that a message about the disk names if the error has none.
    again: the end of a message about the disk: what was kept, or how to continue.
  """
  try:
    call()
  except OSError as e:
    if e.errno not in _DISK: _end(e)
    refuse(f"{e.filename or folder}: {e.strerror}; {again}", 1 if e.errno in _FULL else 2)
  except (ValueError, RuntimeError) as e:
    if not _is_raised_here(e): _end(e)
    refuse(e, 1 if isinstance(e, RuntimeError) else 2)
  except KeyboardInterrupt:
    # At once: a regular exit would wait for a checkpoint under way, whose thread then fails and
    # prints a traceback.
    for stream in (sys.stdout, sys.stderr): stream.flush()
    os._exit(128 + signal.SIGINT)
  except BaseException as e:  # pylint: disable=broad-exception-caught
    _end(e)


# Disk full, quota, read errors; read-only, no permission, or a file where a folder is expected.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_DISK = (*_FULL, errno.EROFS, errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENOTDIR, errno.EISDIR,
         errno.ELOOP, errno.ENAMETOOLONG)


def _end(error):
  """Raises the error; one process of several prints it and exits, so that the others end too."""
  if isinstance(error, SystemExit) or not jax.distributed.is_initialized(): raise error
  traceback.print_exception(error)
  sys.stderr.flush()
  os._exit(1)  # A regular exit would wait for all other processes.


def refuse(error: Any, status: int = 2) -> NoReturn:
  """Prints an error in one line and exits with a code, see `run_refusing`.

  Of an error that wraps another, the message of the innermost one is printed.
  """
  # str() of a KeyError is the repr of its argument, also inside another error.
  while isinstance(error, BaseException) and error.args and not isinstance(error, OSError):
    error = error.args[0]
  text = str(error)
  lines = [line.strip() for line in text.splitlines() if line.strip()]
  wrapped = any(sign in text for sign in ("Traceback", "Failed loading"))
  print("rlx: " + terminal.line(lines[-1] if wrapped else " ".join(lines)), file=sys.stderr,
        flush=True)
  _exit(status)


def _exit(status: int) -> NoReturn:
  """Ends this process, also where a regular exit would wait for all other ones of the run."""
  sys.stdout.flush()
  if jax.distributed.is_initialized(): os._exit(status)
  sys.exit(status)


def _is_raised_here(error):
  """Tells whether a `raise` in rlx raised the error; a bug's ValueError keeps its traceback."""
  last = error.__traceback__
  while last.tb_next: last = last.tb_next
  code = last.tb_frame.f_code  # A call that fails inside of C code has another instruction.
  return (pathlib.Path(code.co_filename).is_relative_to(_PACKAGE)
          and code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"])
