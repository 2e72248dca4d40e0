"""The picture of a run: curves.png from metrics.jsonl."""
import json
import pathlib

from rlx.io import metrics as io_metrics

# Title -> {metric: label}. A panel without any of its metrics is left out.
PANELS = {
    "reward (sampled accuracy)": {"rollouts/accuracy": "all groups drawn",
                                  "rewards/outcome": "groups trained on"},
    "held-out accuracy": {"eval/sampled": "sampled", "eval/greedy": "greedy"},
    "PRM accuracy": {"prm/accuracy": "pairs ranked right", "prm/correlation":
                     "correlation with verdict"},
    "PRM loss": {"prm/loss": "loss"},
    "entropy (nats per token)": {"policy/entropy": "policy"},
    "KL (nats per token)": {"prm/kl_policy": "policy to the PRM's reference",
                            "policy/kl_ref": "policy to its start"},
    "completion length (tokens)": {"rollouts/length": "mean",
                                   "rollouts/length_max": "longest"},
    "seconds per step": {"seconds/sample": "sample", "seconds/verify": "verify",
                         "seconds/score": "score", "seconds/prm": "prm",
                         "seconds/policy": "policy"},
}
_STYLES = ("-", "--", ":", "-.", (0, (1, 3)))  # Legible without colour.


def draw(workdir):
  """Writes <workdir>/curves.png; returns its path, or None without metrics."""
  import matplotlib  # pylint: disable=g-import-not-at-top
  matplotlib.use("Agg")
  from matplotlib import pyplot as plt  # pylint: disable=g-import-not-at-top
  lines = io_metrics.read(workdir) + _after(pathlib.Path(workdir))
  known = set().union(*lines) if lines else set()
  panels = {t: {k: v for k, v in keys.items() if k in known}
            for t, keys in PANELS.items()}
  panels = {t: keys for t, keys in panels.items() if keys}
  if not panels: return None
  columns = min(4, len(panels))
  rows = -(-len(panels) // columns)
  fig, grid = plt.subplots(rows, columns, figsize=(4 * columns, 3 * rows),
                           squeeze=False, layout="constrained")
  for axis, (title, keys) in zip(grid.flat, panels.items()):
    for style, (key, label) in zip(_STYLES, keys.items()):
      points = [(l["step"], l[key]) for l in lines if key in l]
      axis.plot(*zip(*points), linestyle=style, label=label,
                marker="o" if len(points) < 15 else None, markersize=3)
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("step", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.3)
    if title == "seconds per step": axis.set_ylim(0, _typical(lines, keys))
    if len(keys) > 1: axis.legend(fontsize=7)
  for axis in grid.flat[len(panels):]:
    axis.set_visible(False)
  path = pathlib.Path(workdir) / "curves.png"
  fig.savefig(path, dpi=100)
  plt.close(fig)
  return path


def _after(workdir):
  """The accuracy after the last step, which the summary has."""
  if not (workdir / "summary.json").exists(): return []
  summary = json.loads((workdir / "summary.json").read_text())
  return [{"step": summary["steps"]} | {
      f"eval/{k}": v["mean"] for k, v in summary["after"].items()}]


def _typical(lines, keys):
  """An upper limit that the first step's compilation does not decide."""
  later = [l[k] for l in lines[1:] for k in keys if k in l] or [
      l[k] for l in lines for k in keys if k in l]
  return 1.3 * sorted(later)[int(0.98 * (len(later) - 1))] or 1.0
