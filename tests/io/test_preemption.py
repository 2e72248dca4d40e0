"""SIGTERM: noted once, then as before."""
import os
import signal

from rlx.io import preemption


def test_the_second_signal_is_handled_as_before(capsys):
  before = signal.getsignal(signal.SIGTERM)
  notice = preemption.Notice()
  assert not notice.is_given
  os.kill(os.getpid(), signal.SIGTERM)
  assert notice.is_given and signal.getsignal(signal.SIGTERM) == before
  assert "rlx: SIGTERM: this step is finished and saved" in capsys.readouterr().err
