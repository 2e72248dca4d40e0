"""SIGTERM and Ctrl-C: the first is noted, the second acts as before."""
import os
import signal

import pytest

from rlx.io import preemption


@pytest.mark.parametrize("number, name", [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "Ctrl-C")])
def test_the_second_signal_is_handled_as_before(capsys, number, name):
  before = [signal.getsignal(n) for n in preemption.SIGNALS]
  notice = preemption.Notice()
  assert notice.number == 0
  os.kill(os.getpid(), number)
  assert notice.number == number and [signal.getsignal(n) for n in preemption.SIGNALS] == before
  assert f"rlx: {name}: this step is finished and saved" in capsys.readouterr().err
