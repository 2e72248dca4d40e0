"""What pictures of a run are drawn from."""
import json

from rlx.io import curves


def test_a_limit_of_seconds_ignores_the_first_step_and_outliers():
  assert curves._limit_axis([{"s": 100.0}, {"s": 1.0}, {"s": 9.0}], ["s"]) == 1.3


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


def test_the_accuracies_of_a_baseline_are_drawn_beside_those_of_the_run(
    tmp_path, monkeypatch, draw_curves):
  drawn = {}
  def panel(axis, title, keys, lines, baseline=()):
    draw_panel(axis, title, keys, lines, baseline)
    drawn[title] = [(l.get_label(), list(l.get_ydata())) for l in axis.get_lines()]
  draw_panel = curves._panel
  monkeypatch.setattr(curves, "_panel", panel)
  for name, accuracy in (("run", 0.5), ("baseline", 0.25)):
    (tmp_path / name).mkdir()
    (tmp_path / name / "metrics.jsonl").write_text(json.dumps(
        {"step": 0, "rollouts/accuracy": accuracy, "policy/entropy": accuracy}) + "\n")
  draw_curves(tmp_path / "run", tmp_path / "baseline")
  assert drawn == {
      "reward (sampled accuracy)": [("all groups drawn", [0.5]),
                                    ("baseline: all groups drawn", [0.25])],
      "entropy (nats per token)": [("policy", [0.5])]}


def test_the_legend_of_the_seconds_lies_outside_of_the_lines(tmp_path, monkeypatch, draw_curves):
  lines = [{"step": s, **{key: 0.1 + s % 7 for key in curves.PANELS[curves.TIME]}}
           for s in range(40)]
  (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(l) + "\n" for l in lines))
  boxes = []
  def panel(axis, *args):
    draw_panel(axis, *args)
    axis.figure.canvas.draw()
    legend = axis.get_legend().get_window_extent()
    boxes.append((legend.y1, axis.get_window_extent().y0, legend.width / axis.bbox.width))
  draw_panel = curves._panel
  monkeypatch.setattr(curves, "_panel", panel)
  draw_curves(tmp_path)
  (top, bottom, width), = boxes
  assert top < bottom and width < 1
