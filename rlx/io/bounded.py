"""What files ask to be run, chat templates and tokenizers, in processes with limits.

A template is a program in Jinja's language: its sandbox keeps it from the machine, not from
time and memory. A tokenizer is run by native code, which nothing can interrupt. So templates
are rendered in a process of their own, and a tokenizer is tried in one before it is used.
"""
import json
import os
import subprocess
import sys
import weakref

from rlx.io import _bounded

_COMMAND = (sys.executable, "-c", "from rlx.io import _bounded; _bounded.main()")
SECONDS = 5  # For a question; a template takes a thousandth.
LONGEST = _bounded.LONGEST
_LINE = 16 * LONGEST  # Bytes of an answer: each character may be escaped.


class Process:
  """Answers one kind of question; after one that it does not survive, it answers none."""

  def __init__(self, kind, megabytes):
    """`kind`: render or probe, as _bounded.py has them."""
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    # A session of its own: Ctrl-C is for the run, which closes this when it ends.
    self._process = subprocess.Popen(
        [*_COMMAND, kind, str(megabytes), str(SECONDS)],
        env=dict(os.environ, PYTHONPATH=paths, TOKENIZERS_PARALLELISM="false"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True)
    self._end = weakref.finalize(self, _end, self._process)
    self._limits, self._fault = f"{SECONDS} s or {megabytes} MB", None

  def send(self, **question):
    """Asks; `receive` has the answer."""
    if self._fault is not None: return
    try:
      self._process.stdin.write(json.dumps(question, default=str).encode() + b"\n")
      self._process.stdin.flush()
    except BrokenPipeError:
      pass  # `receive` says that it is gone.

  def receive(self):
    """The answer.

    Raises:
      ValueError: there is none, with why.
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

  def ask(self, **question):
    """Sends and receives; raises as `receive`."""
    self.send(**question)
    return self.receive()

  def close(self):
    """Ends the process."""
    self._end()


def _end(process):
  process.kill()
  for pipe in (process.stdin, process.stdout): pipe.close()
  process.wait()
