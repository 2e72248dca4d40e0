"""What a judge costs: the arms, the seconds by stage, and the page that is of the record."""
import json
import time

import pytest

from experiments.bench import judging
from rlx.build import methods as build_methods, validation

LINES = [json.loads(line) for line in judging.RECORDED.read_text().splitlines()]


def test_the_page_is_of_the_recorded_lines():
  assert judging.PAGE.read_text() == judging.page(LINES)
  assert {(x["policy"], x["judge"], x["arm"]) for x in LINES} == judging.SHOWN.keys()
  assert judging.table(LINES).count("\n") == 1 + len(judging.SHOWN)


@pytest.mark.parametrize("arm", judging.ARMS)
def test_arms_are_accepted_and_ask_as_they_say(arm):
  c = judging.configure("quickstart", arm, "reference", url="http://x/v1/chat/completions")
  validation.check(c, build_methods.resolve_methods(c))
  asked = c.verifier.judge
  assert (c.verifier.by_item == "judge.rubric") == (arm != "none")
  assert bool(asked.url) == (arm == "endpoint") and asked.probability == (arm == "P(yes)")


def test_a_lap_has_the_wall_and_cpu_seconds_of_its_stage(monkeypatch):
  now = iter([(0.0, 0.0), (2.0, 1.0), (5.0, 1.5), (6.0, 2.5)])
  read = []
  def tick(i):
    if not read: read[:] = next(now)
    return read.pop(0)
  monkeypatch.setattr(time, "perf_counter", lambda: tick(0))
  monkeypatch.setattr(time, "process_time", lambda: tick(1))
  clock = judging.Clock()
  for stage in ("sample", "verify", "sample"): clock.lap(stage)
  assert clock.seconds == dict(sample=[3.0, 2.0], verify=[3.0, 0.5])
