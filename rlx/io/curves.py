"""Plots of a run: curves.png from metrics.jsonl, and SVGs for a page."""
from collections.abc import Mapping, Sequence
import contextlib
import functools
import io
import math
import pathlib
import re
from typing import Any

from rlx.io import metrics as io_metrics

TIME = "seconds per step"
# Title -> {metric: label}. Panels without metrics are left out.
PANELS = {
    "reward (sampled accuracy)": {"rollouts/accuracy": "all groups drawn",
                                  "rewards/outcome": "groups trained on"},
    "held-out accuracy": {"eval/sampled": "sampled", "eval/greedy": "greedy"},
    "PRM accuracy": {"prm/accuracy": "pairs ranked right", "prm/correlation":
                     "correlation with verdict"},
    "PRM loss": {"prm/loss": "loss"},
    "PRM, held out": {"eval/best/min": "best of n by the lowest step",
                      "eval/best/sum": "by the sum", "eval/f1/step": "F1 of first errors"},
    "entropy (nats per token)": {"policy/entropy": "policy"},
    "KL (nats per token)": {"prm/kl_policy": "policy to the PRM's reference",
                            "policy/kl_ref": "policy to its start"},
    "completion length (tokens)": {"rollouts/length": "mean", "rollouts/length_max": "longest"},
    TIME: {"seconds/sample": "sample", "seconds/verify": "verify",
           "seconds/score": "score", "seconds/prm": "prm", "seconds/policy": "policy"}}
COMPARED = ("reward (sampled accuracy)", "held-out accuracy")  # Panels that show a baseline.
_STYLES = ("-", "--", ":", "-.", (0, (1, 3)))  # Legible without colour.


def draw(workdir: str | pathlib.Path,
         baseline: str | pathlib.Path | None = None) -> pathlib.Path | None:
  """Writes <workdir>/curves.png; returns its path, or None without metrics.

  Args:
    baseline: the folder of another run, whose accuracies are drawn in the same panels.
  """
  lines = _lines(workdir)
  other = _lines(baseline) if baseline else []
  panels = _panels(lines)
  if not panels: return None
  columns = min(4, len(panels))
  rows = -(-len(panels) // columns)
  path = pathlib.Path(workdir) / "curves.png"
  with _figure(path, rows, columns, figsize=(4 * columns, 3 * rows)) as axes:
    for axis, (title, keys) in zip(axes, panels.items()):
      _panel(axis, title, keys, lines, other if title in COMPARED else [])
      axis.set_title(title, fontsize=10)
    for axis in axes[len(panels):]: axis.set_visible(False)
  return path


def draw_at_k(path: str | pathlib.Path, results: Mapping[str, Any]) -> None:
  """Plots pass@k, maj@k and best of k by the PRM against k, with 95% intervals.

  Args:
    path: of the PNG.
    results: {"KIND@K" or "KIND@K/SCORE[/VARIANT]": dict(mean, low, high)} among others.
  """
  panels: dict[str, dict] = {}
  for name, x in results.items():
    kind, is_at_k, rest = name.partition("@")
    if not is_at_k: continue
    k, score, variant = (rest.split("/", 2) + ["", ""])[:3]
    title = {"best": "best of k by the PRM", "weighted": "majority weighted by the PRM"}.get(
        kind, "without the PRM") + (variant and f", {variant}")
    panels.setdefault(title, {}).setdefault(score or f"{kind}@k", {})[int(k)] = x
  with _figure(path, 1, len(panels), figsize=(3.4 * len(panels), 3), sharey=True) as axes:
    for axis, (title, curves) in zip(axes, panels.items()):
      for style, (label, by_k) in zip(_STYLES, curves.items()):
        line, = axis.plot(list(by_k), [x["mean"] for x in by_k.values()], label=label,
                          linestyle=style, marker="o", markersize=3)
        low, high = ([x[end] for x in by_k.values()] for end in ("low", "high"))
        axis.fill_between(list(by_k), low, high, color=line.get_color(), alpha=0.12, linewidth=0)
      axis.set_title(title, fontsize=10)
      axis.set_xscale("log", base=2)
      axis.set_xticks(list(by_k), list(map(str, by_k)))
      _finish(axis, xlabel="k", legend=True)
    axes[0].set_ylabel("share of prompts right", fontsize=8)


def svgs(workdir: str | pathlib.Path) -> dict[str, str]:
  """{title: SVG} of the panels of `draw` that have metrics, without the seconds."""
  lines = _lines(workdir)
  return {title: _svg(title, lambda axis, title=title, keys=keys: _panel(axis, title, keys, lines))
          for title, keys in _panels(lines).items() if title != TIME}


def time_svg(workdir: str | pathlib.Path) -> str | None:
  """SVG of the seconds of each stage, stacked; None for fewer than two steps."""
  lines = io_metrics.read(workdir)
  keys = _panels(lines).get(TIME)
  if not keys or len(lines) < 2: return None
  def stack(axis):
    # The shades have the order of the stack, so that it is legible without colour.
    from matplotlib import colormaps  # pylint: disable=g-import-not-at-top
    seconds = [[l.get(k, 0.0) for l in lines] for k in keys]
    shades = [colormaps["cividis"]((i + 0.5) / len(keys)) for i in range(len(keys))]
    axis.stackplot([l["step"] for l in lines], *seconds, labels=keys.values(),
                   colors=shades, step="mid")
    axis.set_ylim(0, _limit_axis([{TIME: sum(s)} for s in zip(*seconds)], [TIME]))
    axis.set_ylabel("seconds", fontsize=8)
    _finish(axis)
    axis.figure.legend(loc="outside lower center", ncols=len(keys), fontsize=7,
                       frameon=False, handlelength=1, columnspacing=1)
  return _svg(TIME, stack)


def reliability_svg(bins: Sequence[Mapping[str, float]]) -> str:
  """SVG of evals/calibration.py: the predicted share that is right against the actual one."""
  return _svg("reliability", lambda axis: _plot_reliability(axis, bins, "prediction of the PRM"))


def _plot_reliability(axis, bins, what):
  used = [b for b in bins if b["n"]]
  predicted, right = ([b[k] for b in used] for k in ("predicted", "right"))
  axis.plot([0, 1], [0, 1], linestyle=":", color="0.5")
  axis.errorbar(predicted, right, fmt="o-", markersize=4, capsize=2, yerr=[
      [b["right"] - b["low"] for b in used], [b["high"] - b["right"] for b in used]])
  for b in used:
    axis.text(b["predicted"], 1.02, f"n={b['n']}", fontsize=7, ha="center",
              transform=axis.get_xaxis_transform())
  axis.set(xlim=(0, 1), ylim=(-0.05, 1.05))
  axis.set_ylabel("share right", fontsize=8)
  _finish(axis, xlabel=f"{what}, mean of the bin")


def judging_svgs(result: Mapping[str, Any]) -> dict[str, str]:
  """{title: SVG} of what was measured of a scorer or judge (tools/judging.py)."""
  return {title: _svg(title, plot, height)
          for title, (plot, height) in _plots_of_judging(result).items()}


def draw_judging(path: str | pathlib.Path, result: Mapping[str, Any]) -> bool:
  """Plots what was measured of a scorer or judge, with 95% intervals; whether there is anything."""
  plots = _plots_of_judging(result)
  if not plots: return False
  size = 4.4 * len(plots), max(height for _, height in plots.values()) + 0.6
  with _figure(path, 1, len(plots), figsize=size) as axes:
    for axis, (title, (plot, _)) in zip(axes, plots.items()):
      plot(axis)
      axis.set_title(title, fontsize=10, pad=14)
  return True


_HEIGHT = 2.6  # Of a plot, in inches.
_BIASES = ("order", "length", "format", "own")


def _plots_of_judging(result):
  """{title: (axis -> None, height)}."""
  def bars(axis, shown, zero):
    shown, ends = shown[::-1], [[], []]
    for _, x in shown:
      ends[0].append(max(x["mean"] - x["low"], 0))
      ends[1].append(max(x["high"] - x["mean"], 0))
    axis.errorbar([x["mean"] for _, x in shown], range(len(shown)), xerr=ends, fmt="o",
                  markersize=4, capsize=2)
    axis.set_yticks(range(len(shown)), [name[:40] for name, _ in shown])
    axis.axvline(zero, linestyle=":", color="0.5")
    _finish(axis, xlabel="mean, 95% interval")
  def lines(axis, key, x_key, label):
    x = [point[x_key] for point in result[key]]
    for style, name in zip(_STYLES, [n for n in result[key][0] if n not in ("n", "kl")]):
      mean, low, high = ([point[name][end] for point in result[key]]
                         for end in ("mean", "low", "high"))
      line, = axis.plot(x, mean, label=name, linestyle=style, marker="o", markersize=3)
      axis.fill_between(x, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
    if x_key == "n":
      axis.set_xscale("log", base=2)
      axis.set_xticks(x, list(map(str, x)))
    _finish(axis, xlabel=label, legend=True)
  known = [(name, x) for name, x in result["metrics"].items()
           if all(math.isfinite(x[end]) for end in ("mean", "low", "high"))]
  biases = [(name, x) for name, x in known if name in _BIASES]
  others = [(name, x) for name, x in known if name not in _BIASES]
  plots = {}
  for title, shown, zero in (("measures", others, 0.5), ("biases", biases, 0.0)):
    if shown: plots[title] = (functools.partial(bars, shown=shown, zero=zero),
                              max(_HEIGHT, 0.19 * len(shown) + 0.6))
  if len(result.get("best_of_n", ())) > 1:
    plots["best of n"] = (
        functools.partial(lines, key="best_of_n", x_key="n", label="n"), _HEIGHT)
  if result.get("kl"):
    plots["scores along KL"] = (
        functools.partial(lines, key="kl", x_key="kl", label="KL, nats"), _HEIGHT)
  if result.get("reliability"):
    plots["calibration"] = (functools.partial(
        _plot_reliability, bins=result["reliability"], what="score"), _HEIGHT)
  return plots


def _panels(lines):
  """PANELS, with the metrics that some line has."""
  known = set().union(*lines)
  panels = {t: {k: v for k, v in keys.items() if k in known} for t, keys in PANELS.items()}
  return {t: keys for t, keys in panels.items() if keys}


def _panel(axis, title, keys, lines, baseline=()):
  for style, (key, label) in zip(_STYLES, keys.items()):
    for rows, look in ((lines, dict(label=label)),
                       (baseline, dict(label=f"baseline: {label}", color="0.6"))):
      points = [(l["step"], l[key]) for l in rows if key in l]
      if points: axis.plot(*zip(*points), linestyle=style, markersize=3,
                           marker="o" if len(points) < 15 else None, **look)
  _finish(axis, legend=len(keys) > 1 and title != TIME)
  if title != TIME: return
  axis.set_ylim(0, _limit_axis(lines, keys))
  # Below the axis: lines that leave the limit cross every corner.
  axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=len(keys), fontsize=7,
              frameon=False, handlelength=1.8, handletextpad=0.4, columnspacing=1)


def _finish(axis, xlabel="step", legend=False):
  axis.set_xlabel(xlabel, fontsize=8)
  axis.tick_params(labelsize=8)
  axis.grid(alpha=0.3)
  if legend: axis.legend(fontsize=7, frameon=False)


@contextlib.contextmanager
def _figure(file, rows=1, columns=1, *, save=dict(dpi=100), **options):
  """A flat array of axes, saved to a file at the end."""
  import matplotlib  # pylint: disable=g-import-not-at-top
  matplotlib.use("Agg")
  from matplotlib import pyplot as plt  # pylint: disable=g-import-not-at-top
  figure, axes = plt.subplots(rows, columns, squeeze=False, layout="constrained", **options)
  yield axes.ravel()
  figure.savefig(file, **save)
  plt.close(figure)


def _svg(name, plot, height=_HEIGHT):
  """The SVG element of one axis for a page: text stays text, black is the colour of the page.

  Args:
    name: unlike that of other SVGs of the page; identifiers are derived from it.
    plot: axis -> None.
  """
  import matplotlib  # pylint: disable=g-import-not-at-top
  text, no_metadata = io.StringIO(), dict.fromkeys(("Creator", "Date", "Format", "Type"))
  with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), _figure(
      text, figsize=(4, height),
      save=dict(format="svg", transparent=True, metadata=no_metadata)) as axes:
    plot(axes[0])
  svg = text.getvalue()
  svg = svg[svg.index("<svg"):].replace("#000000", "currentColor")
  # The names of groups repeat from one SVG to the next; nothing refers to them.
  return re.sub(r' id="[\w.]+_\d+"', "", svg)


def _lines(workdir):
  """The lines of metrics.jsonl; those of the first and last step have the accuracies before and
  after training, which the summary has."""
  workdir, lines = pathlib.Path(workdir), io_metrics.read(workdir)
  summary = io_metrics.summary(workdir)
  if "after" not in summary: return lines  # The run is not finished, or is of train_scorer.
  first, last = ({"step": step} | {f"eval/{k}": v["mean"] for k, v in summary[when].items()}
                 for step, when in ((0, "before"), (summary["steps"], "after")))
  return [first | (lines[0] if lines else {}), *lines[1:], last]


def _limit_axis(lines, keys):
  """An upper limit of an axis that ignores the first step, which compiles, and outliers."""
  def finite(lines):
    return sorted(l[k] for l in lines for k in keys if math.isfinite(l.get(k, math.nan)))
  values = finite(lines[1:]) or finite(lines) or [0.0]
  return 1.3 * values[int(0.9 * (len(values) - 1))] or 1.0
