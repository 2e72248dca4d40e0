"""What pictures of a run are drawn from."""
import json

from rlx.io import curves


def test_a_limit_of_seconds_ignores_the_first_step_and_outliers():
  assert curves._typical([{"s": 100.0}, {"s": 1.0}, {"s": 9.0}], ["s"]) == 1.3


def test_seconds_of_a_single_step_are_not_drawn(tmp_path):
  (tmp_path / "metrics.jsonl").write_text('{"step": 0, "seconds/sample": 1.0}\n')
  assert curves.time_svg(tmp_path) is None


def test_accuracies_before_and_after_stand_at_the_ends(tmp_path):
  lines = [{"step": s, "rollouts/accuracy": 0.1 * s} for s in range(3)]
  (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(l) + "\n" for l in lines))
  assert curves._lines(tmp_path) == lines  # It still runs.
  said = lambda x: {"sampled": dict(mean=x, low=0.0, high=1.0)}
  (tmp_path / "summary.json").write_text(json.dumps(dict(
      before=said(0.2), after=said(0.7), steps=3, seconds=dict(total=1, to_first_step=1))))
  assert curves._lines(tmp_path) == [
      lines[0] | {"eval/sampled": 0.2}, *lines[1:], {"step": 3, "eval/sampled": 0.7}]
  (tmp_path / "metrics.jsonl").write_text("")  # Without a single step.
  assert curves._lines(tmp_path)[0] == {"step": 0, "eval/sampled": 0.2}
