"""SIGTERM, which a scheduler sends before it stops a machine: the current step is finished."""
import signal
import sys
import threading


class Notice:
  """Records whether SIGTERM was received. A second one ends the process.

  Only the main thread receives signals; a Notice of another thread is never given.
  """

  def __init__(self):
    self.is_given, self._before = False, None
    if threading.current_thread() is threading.main_thread():
      self._before = signal.signal(signal.SIGTERM, self._note)

  def close(self) -> None:
    """Restores the previous handler of SIGTERM."""
    if self._before is not None: signal.signal(signal.SIGTERM, self._before)

  def _note(self, *_):
    self.is_given = True
    self.close()
    print("rlx: SIGTERM: this step is finished and saved; again to end at once.",
          file=sys.stderr, flush=True)
