"""SIGTERM, which a scheduler sends before it stops a machine, and Ctrl-C: the step is finished."""
import signal
import sys
import threading

SIGNALS = (signal.SIGTERM, signal.SIGINT)
STATUSES = tuple(128 + number for number in SIGNALS)  # Exit statuses of a run that one stopped.


class Notice:
  """Records which of the SIGNALS was received first. A second one acts as without a Notice.

  Only the main thread receives signals; a Notice of another thread is never given.

  Attributes:
    number: of the signal; 0 before it.
    stopped_by: number of the signal, to this or another process of the run, that stopped the last
      run of this process; 0 if none did.
  """
  stopped_by = 0

  def __init__(self):
    self.number, self._before = 0, {}
    if threading.current_thread() is threading.main_thread():
      self._before = {number: signal.signal(number, self._note) for number in SIGNALS}

  def close(self) -> None:
    """Restores the previous handlers."""
    for number, handler in self._before.items(): signal.signal(number, handler)

  def _note(self, number, _):
    self.number = number
    self.close()
    name = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
    print(f"rlx: {name}: this step is finished and saved; again to end at once.",
          file=sys.stderr, flush=True)
