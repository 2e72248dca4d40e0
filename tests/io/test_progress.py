"""Seconds of the stages of a run, and what the progress bar shows."""
import itertools
import types

from rlx.io import progress


def test_seconds_of_a_step_and_of_the_run_before(monkeypatch):
  """Neither compilation nor evaluation is part of a step's speed."""
  seconds = itertools.count(0.0)
  monkeypatch.setattr(progress, "time", types.SimpleNamespace(perf_counter=lambda: next(seconds)))
  clock = progress.Clock()
  for stage in ("compile", "sample", "eval"): clock.lap(stage)
  assert clock.metrics(tokens=8) == {"seconds/sample": 1, "seconds/eval": 1, "seconds/step": 1,
                                     "rollouts/tokens_per_s": 8}
  clock.end_step()
  assert clock.total(dict(total=10, sample=2, to_first_step=3)) == dict(
      total=15, to_first_step=3, compile=1, sample=3, eval=1, log=1)


def test_the_bar_has_the_newest_known_values(capsys):
  bar = progress.Bar(total=4, done=1)
  bar.show({"rollouts/accuracy": 0.25, "rollouts/tokens_per_s": 123.4, "policy/loss": 7})
  bar.show({"rollouts/accuracy": 0.5})
  bar.close()
  shown = capsys.readouterr().err
  assert "3/4" in shown and "reward=0.50, tok/s=123]" in shown
