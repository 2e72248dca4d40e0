"""Runs chat templates and tokenizers of untrusted files in processes with limits.

A template is a program in Jinja's language, whose sandbox limits neither time nor memory. A
tokenizer runs native code, which cannot be interrupted. So templates are rendered in a process of
their own, and a tokenizer is tested in one before it is used.
"""
import json
import os
import subprocess
import sys
import weakref

from rlx.io import _bounded

_COMMAND = (sys.executable, "-c", "from rlx.io import _bounded; _bounded.main()")
SECONDS = 5  # For a request; a usual template takes a thousandth of that.
LONGEST = _bounded.LONGEST
_LINE = 16 * LONGEST  # Bytes of a reply: each character may be escaped.


class Process:
  """A process that answers requests of one kind until one of them exceeds the limits."""

  def __init__(self, kind, megabytes):
    """`kind`: render or probe, see _bounded.py."""
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    # A session of its own, which Ctrl-C does not reach: the run ends this process.
    self._process = subprocess.Popen(
        [*_COMMAND, kind, str(megabytes), str(SECONDS)],
        env=dict(os.environ, PYTHONPATH=paths, TOKENIZERS_PARALLELISM="false"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True)
    self._end = weakref.finalize(self, _end, self._process)
    self._limits, self._fault = f"{SECONDS} s or {megabytes} MB", None

  def send(self, **request):
    """Sends a request; `receive` returns the reply."""
    if self._fault is not None: return
    try:
      self._process.stdin.write(json.dumps(request, default=str).encode() + b"\n")
      self._process.stdin.flush()
    except BrokenPipeError:
      pass  # `receive` reports it.

  def receive(self):
    """Returns the reply.

    Raises:
      ValueError: with the reason why there is none.
    """
    if self._fault is None:
      line = self._process.stdout.readline(_LINE)
      if line.endswith(b"\n"):
        reply = json.loads(line)
        if "error" in reply: raise ValueError(reply["error"])
        return reply["value"]
      self._end()
      self._fault = f"it takes more than {self._limits}"
    raise ValueError(self._fault)

  def ask(self, **request):
    """Sends a request and returns its reply; raises as `receive`."""
    self.send(**request)
    return self.receive()

  def close(self):
    """Ends the process."""
    self._end()


def _end(process):
  process.kill()
  for pipe in (process.stdin, process.stdout): pipe.close()
  process.wait()
