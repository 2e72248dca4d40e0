"""A lock of a folder, which the system releases when its process ends, in whatever way."""
import contextlib
import datetime
import fcntl
import os
import pathlib
import socket
from collections.abc import Iterator
from typing import TextIO


class Held(Exception):
  """Another process has the lock; the text says which one, on which host, since when."""


@contextlib.contextmanager
def hold(path: str | os.PathLike) -> Iterator[TextIO]:
  """Holds the lock of a file, which says by whom, and gives the open file.

  A file that a killed process leaves holds nothing: the lock belongs to the open file of a living
  process, also between hosts that share a file system with locks (Linux's NFS has them). On one
  without locks nothing is held and nothing is refused.

  Raises:
    Held: another process, or another `hold` of this one, has it.
  """
  with pathlib.Path(path).open("a+") as file:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      file.seek(0)
      raise Held(file.read().strip() or "another process") from None
    except OSError:
      yield file
      return
    since = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    file.truncate(0)
    print(f"{socket.gethostname()}, process {os.getpid()}, since {since}", file=file, flush=True)
    try:
      yield file
    finally:
      file.truncate(0)
