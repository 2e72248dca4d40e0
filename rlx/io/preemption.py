"""SIGTERM, which a machine that is taken away sends: noted, so that the step can end."""
import signal
import sys
import threading


class Notice:
  """Whether SIGTERM came. A second one ends the process, as without this.

  Only the main thread hears signals; made in another it never says yes.
  """

  def __init__(self):
    self.is_given, self._before = False, None
    if threading.current_thread() is threading.main_thread():
      self._before = signal.signal(signal.SIGTERM, self._note)

  def close(self):
    """What SIGTERM did before, it does again."""
    if self._before is not None: signal.signal(signal.SIGTERM, self._before)

  def _note(self, *_):
    self.is_given = True
    self.close()
    print("rlx: SIGTERM: this step is finished and saved; again to end at once.",
          file=sys.stderr, flush=True)
