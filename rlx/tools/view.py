"""Writes an HTML report of a run: curves, completions with token rewards, calibration, config;
and what `rlx evaluate` measured of a scorer or judge.

  rlx view runs/quickstart
  rlx view runs/grpo runs/prime serve=8080

Writes <workdir>/view.html for each folder given. The page needs neither network access nor
JavaScript. It shows the content of the workdir's files, for finished and unfinished runs.
With serve=PORT it is shown at http://127.0.0.1:PORT instead, to this machine alone, and loads
itself again while a run goes on; several runs stand side by side.
"""
import contextlib
import functools
import html
import http
import http.server
import itertools
import json
import math
import os
import pathlib
import statistics
from typing import Any

import numpy as np

from rlx.configs import base  # type: ignore[attr-defined]  # Found by its __path__.
from rlx.core import options
from rlx.evals import calibration
from rlx.io import curves, metrics as io_metrics, refusals, report as report_lib, run_folder

NUMBERS = {"log_ratio": "log-ratio", "advantages": "advantage"}  # Numbers shown for each token.
ENDS = dict(eos="ended", length="cut off at rollouts.max_tokens",
            stop="ended by rollouts.stops or rollouts.stop_ids",
            environment="the environment failed")
LEVELS = 4       # Shades of colour for each sign.
TOKENS = 30_000  # Tokens on a page, about 100 bytes each, so that the page opens on a phone.
LONGEST = 2_000  # Tokens of a completion that are shown.
UNFOLDED = 6     # Turns of an episode that is shown unfolded.
REFRESH = 5      # Seconds after which the page of an unfinished run is loaded again.


def view(workdir: str | os.PathLike) -> pathlib.Path:
  """Writes <workdir>/view.html; returns its path.

  Raises:
    ValueError: the folder is not the workdir of a run.
  """
  path = pathlib.Path(workdir) / "view.html"
  path.write_text(render(pathlib.Path(workdir)), encoding="utf-8", errors="replace")
  return path


def render(workdir: pathlib.Path, refresh: int | None = None) -> str:
  """Returns the page of a run.

  Args:
    refresh: seconds after which a browser loads the page of an unfinished run again; None: never.
  Raises:
    ValueError: as `view`.
  """
  import jinja2  # pylint: disable=g-import-not-at-top
  import markupsafe  # pylint: disable=g-import-not-at-top
  if not (workdir / "config.json").exists() and not (workdir / "judging.json").exists():
    raise ValueError(f"{workdir}: no config.json there; name the --workdir of a run.")
  page = jinja2.Environment(
      autoescape=True, trim_blocks=True, lstrip_blocks=True,
      undefined=jinja2.StrictUndefined).from_string(
          pathlib.Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
  return page.render(page_content(workdir), refresh=refresh, svg=markupsafe.Markup)


def page_content(workdir: pathlib.Path) -> dict[str, Any]:
  """Returns the values that the template shows; a section whose files are missing is None."""
  judged = judging(workdir)
  if not (workdir / "config.json").exists():
    assert judged is not None
    return dict(name=workdir.absolute().name, header=judged["header"], judging=judged,
                config=None, is_done=True, levels=())
  config, versions = run_folder.read_config(workdir), run_folder.read_versions(workdir)
  summary = io_metrics.summary(workdir)
  lines, rows = io_metrics.read(workdir), io_metrics.tables(workdir, _is_row)
  done = lines[-1]["step"] + 1 if lines else 0
  # A summary of fewer steps is from before the run was continued with more steps.
  if summary and summary["steps"] < done: summary = {}
  return dict(name=workdir.absolute().name, header=header(config, versions, done, summary),
              judging=judged, accuracy=accuracy(lines, summary), is_done=bool(summary),
              curves=curves.svgs(workdir),
              time=times(lines), time_svg=curves.time_svg(workdir), completions=completions(rows),
              calibration=measure_calibration(rows, config), levels=range(-LEVELS, LEVELS + 1),
              unfolded=UNFOLDED, config=compare_config(config))


def header(config: dict, versions: dict, done: int, summary: dict) -> list[tuple[str, str]]:
  """Returns [(name, value)]: command, model, steps, seed, commit, time and package versions."""
  fields = {"command": versions.get("command"), "model": config["model"]["path"],
            "steps": f"{done} of {config['steps']}", "seed": config["seed"],
            "commit": versions.get("commit")}
  if summary:
    fields["time"] = (f"{_duration(summary['seconds']['total'])}, first step after "
                      f"{_duration(summary['seconds']['to_first_step'])}")
  known = [(k, v) for k, v in fields.items() if v is not None]
  packages = [f"{k} {v}" for k, v in versions.items()
              if k not in ("command", "commit", "device_bytes")]
  return known + [("versions", ", ".join(packages))] * bool(packages)


def accuracy(lines: list[dict], summary: dict) -> list[tuple]:
  """Returns [(greedy or sampled, accuracy before, after)] on the held-out prompts."""
  if "after" in summary:  # The summary of train_scorer has no accuracies.
    return [(name, *(report_lib.format_interval(summary[when][name])
                     for when in ("before", "after"))) for name in summary["after"]]
  return [(name, *(f"{l[f'eval/{name}']:.3f} (step {l['step']})" for l in (seen[0], seen[-1])))
          for name in ("greedy", "sampled")
          if (seen := [l for l in lines if f"eval/{name}" in l])]


def times(lines: list[dict]) -> list[dict]:
  """Returns for each stage its seconds in the first step, and their median and share afterwards."""
  stages = [k for k in dict.fromkeys(itertools.chain(*lines))
            if k.startswith("seconds/") and k not in ("seconds/step", "seconds/eval")]
  # Not every step evaluates on held-out prompts.
  if any("seconds/eval" in l for l in lines): stages.append("seconds/eval")
  later = {k: [l[k] for l in lines[1:] if k in l] for k in stages}
  total = sum(map(sum, later.values()))
  return [dict(stage=k.removeprefix("seconds/"), first=lines[0].get(k),
               median=statistics.median(later[k]) if later[k] else None,
               times=len(later[k]), share=sum(later[k]) / total if total else None)
          for k in stages]


def completions(rows: list[dict]) -> dict | None:
  """Returns completions of some steps, grouped by prompt, with a shade for each token's numbers."""
  if not rows: return None
  scales = {key: _scale(rows, key) for key in NUMBERS}
  by_step = {s: list(g) for s, g in itertools.groupby(rows, lambda r: r["step"])}
  shown = _spread(list(by_step), [sum(min(len(r["advantages"]), LONGEST) for r in g)
                                  for g in by_step.values()])
  return dict(
      recorded=len(by_step), steps=[
          dict(step=step, right=_mean([r["verdict"] for r in by_step[step]]), groups=[
              dict(prompt=prompt.replace("\n", "↵\n"),
                   rows=[_completion(r, scales) for r in group])
              for prompt, group in itertools.groupby(
                  by_step[step], lambda r: r["prompt"])]) for step in shown],
      scales={k: [l * m / LEVELS for l in range(-LEVELS, LEVELS + 1)]
              for k, m in scales.items() if m})


def measure_calibration(rows: list[dict], config: dict) -> dict | None:
  """Computes the calibration of the PRM's probability that a completion is right.

    p = sigmoid(beta * sum_t log [ pi_phi / pi_ref ])

  Uses the second half of the recorded steps, because the PRM is trained during the run and is
  equal to its reference at the start.
  """
  rows = [r for r in rows if r["log_ratio"] and r.get("beta") and r["verdict"] is not None
          and math.isfinite(sum(r["log_ratio"]))]
  steps = sorted({r["step"] for r in rows})
  if not steps: return None
  steps = steps[len(steps) // 2:]
  rows = [r for r in rows if r["step"] >= steps[0]]
  p_B, outcome_B = [_prm_probability(r) for r in rows], [r["verdict"] for r in rows]
  prompts = list(dict.fromkeys(r["prompt"] for r in rows))
  bins = calibration.reliability(p_B, outcome_B, [prompts.index(r["prompt"]) for r in rows],
                                 bins=10 if len(rows) >= 200 else 5)
  mean = statistics.mean(outcome_B)
  return dict(bins=bins, n=len(rows), prompts=len(prompts), first=steps[0],
              last=steps[-1], beta=rows[-1]["beta"], loss=config["prm"]["loss"]["name"],
              brier=calibration.brier(p_B, outcome_B), mean=mean,
              constant=calibration.brier([mean] * len(rows), outcome_B),
              svg=curves.reliability_svg(bins))


def judging(workdir: pathlib.Path) -> dict | None:
  """Returns what was measured of a scorer or judge, with texts for numbers; None: nothing was."""
  if (result := io_metrics.judging(workdir)) is None: return None
  beside = result.get("published", {})
  return dict(
      header=[(key, str(result[key])) for key in ("judged", "rows", "count")],
      metrics=[dict(name=name, interval=report_lib.format_interval(x), n=x["prompts"],
                    beside=list(map(report_lib.format_published, beside.get(name, ()))))
               for name, x in result["metrics"].items()],
      curves=curves.judging_svgs(result))


def compare_config(config: dict) -> list[dict]:
  """Returns each key of the config with its value here and in configs/base.py."""
  here, known = ({key: json.dumps(value, ensure_ascii=False, default=list)
                  for key, value in options.flatten(entries).items()}
                 for entries in (config, base.get_config().to_dict()))
  return [dict(key=key, value=here.get(key, "not there"), base=known.get(key, "not there"),
               differs=here.get(key) != known.get(key))
          for key in sorted(here.keys() | known.keys())]


def _completion(row, scales):
  """Returns a completion's verdict in words and its parts: turns, observations, or one for all."""
  verdict, n = row["verdict"], len(row["advantages"])
  prm_probability = _prm_probability(row) if row["log_ratio"] and row.get("beta") else None
  turns, rewards = row.get("turns", [0] * n), row.get("turn_rewards", [])
  tokens = []
  for i, text in enumerate(row["tokens"][:LONGEST]):
    is_end = i == n - 1 and row["finish"] == "eos"
    is_read = turns[i] < 0  # By the policy, from its environment.
    numbers = {k: row[k][i] for k in scales if row[k] and not is_read}
    tokens.append(dict(
        text=text.replace("\n", "↵\n") or ("EOS" if is_end else "·"),
        kind="end" if is_end else "read" if is_read else "" if text else "none",
        shades=" ".join(f"{k[0]}{_level(v, scales[k])}" for k, v in numbers.items()),
        title=", ".join(f"{NUMBERS[k]} {v:+.3g}" for k, v in numbers.items())))
  parts = [dict(turn=turn, reward=rewards[turn] if 0 <= turn < len(rewards) else None,
                tokens=[token for _, token in part])
           for turn, part in itertools.groupby(zip(turns, tokens), key=lambda x: x[0])]
  return dict(kind="unknown" if verdict is None else "right" if verdict >= 0.5 else "wrong",
              verdict=verdict, finish=ENDS[row["finish"]], length=n,
              prompt_tokens=row.get("prompt_tokens"), marks=row.get("items", []),
              prm_probability=prm_probability, parts=parts, more=max(n - LONGEST, 0),
              turns=max(turns, default=-1) + 1 if "turns" in row else None)


def _scale(rows, key):
  """Returns the 98% quantile of the absolute values, for the darkest shade; None if all are 0."""
  values = np.abs(np.concatenate([r[key] for r in rows if r[key]] or [[]]))
  values = values[(values > 0) & np.isfinite(values)]
  return float(np.quantile(values, 0.98)) if len(values) else None


def _level(value, scale):
  """Returns the shade of a value, from -LEVELS to LEVELS; 0 for NaN."""
  if not scale or math.isnan(value): return 0
  return round(max(-1.0, min(1.0, value / scale)) * LEVELS)


def _prm_probability(row):
  """Returns the PRM's probability that a completion is right."""
  return 0.5 * (1 + math.tanh(row["beta"] * math.fsum(row["log_ratio"]) / 2))


def _spread(steps, sizes):
  """Selects evenly spaced steps, with the first and the last, whose tokens fit into TOKENS."""
  count = max(2, int(TOKENS * len(steps) / max(sum(sizes), 1)))
  if count >= len(steps): return steps
  return [steps[round(i)] for i in np.linspace(0, len(steps) - 1, count)]


def _mean(values):
  known = [v for v in values if v is not None]
  return statistics.mean(known) if known else None


def _is_row(row):
  """Tells whether a row has the fields and types that a run writes."""
  def is_number(x):  # NaN counts as a number.
    return isinstance(x, int | float) and not isinstance(x, bool) and not abs(x) > 1e30
  n = len(row["advantages"]) if isinstance(row.get("advantages"), list) else 0
  def has(key, test): return isinstance(row.get(key), list) and len(row[key]) == n and all(
      map(test, row[key]))
  return (all(isinstance(row.get(key), str) for key in ("prompt", "completion", "finish"))
          and has("advantages", is_number)
          and (row.get("log_ratio", "") is None or has("log_ratio", is_number))
          and row["finish"] in ENDS
          and has("tokens", lambda x: isinstance(x, str))
          and type(row.get("prompt_tokens", 0)) is int
          and ("turns" not in row or has("turns", lambda x: type(x) is int))
          and ("turn_rewards" not in row or isinstance(row["turn_rewards"], list)
               and all(x is None or is_number(x) for x in row["turn_rewards"]))
          and all(isinstance(item, dict) and isinstance(item.get("name"), str)
                  and is_number(item.get("weight"))
                  and (item.get("value", "") is None or is_number(item.get("value")))
                  for item in row.get("items", []))
          and (row.get("beta") is None or is_number(row["beta"]))
          and (row.get("verdict", "") is None or is_number(row.get("verdict"))
               and 0 <= row["verdict"] <= 1))


def _duration(seconds):
  if seconds < 120: return f"{seconds:.0f} s"
  return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def make_server(workdirs: list[pathlib.Path], port: int) -> http.server.ThreadingHTTPServer:
  """A server of the pages of runs on the loopback interface; `serve_forever` starts it.

  / is the page of a single run, or shows those of several side by side; /K is that of run K.

  Args:
    port: 0: any that is free.
  """
  server = http.server.ThreadingHTTPServer(
      ("127.0.0.1", port), functools.partial(_Handler, workdirs))
  server.daemon_threads = True
  return server


class _Handler(http.server.BaseHTTPRequestHandler):
  """Answers with pages that are made of the files as they are now."""

  def __init__(self, workdirs, *args):
    self.workdirs = workdirs
    super().__init__(*args)

  def do_GET(self):  # pylint: disable=invalid-name
    # Another name would be a page elsewhere whose name was pointed to this machine.
    host = self.headers.get("Host", "").rpartition(":")[0]
    pages = {f"/{k}": workdir for k, workdir in enumerate(self.workdirs)}
    if len(self.workdirs) == 1: pages["/"] = self.workdirs[0]
    if host not in ("127.0.0.1", "localhost"): self._answer(http.HTTPStatus.FORBIDDEN, "")
    elif self.path in pages: self._answer(*self._read(pages[self.path]))
    elif self.path == "/": self._answer(http.HTTPStatus.OK, self._frames())
    else: self._answer(http.HTTPStatus.NOT_FOUND, "")

  def _read(self, workdir):
    try:
      return http.HTTPStatus.OK, render(workdir, REFRESH)
    except (OSError, ValueError) as e:  # Such as a file that is being written.
      return http.HTTPStatus.SERVICE_UNAVAILABLE, (
          f"<meta http-equiv=refresh content={REFRESH}><p>{html.escape(str(e))}")

  def _frames(self):
    frames = "".join(f'<iframe src="/{k}" title="{html.escape(str(w), quote=True)}"></iframe>'
                     for k, w in enumerate(self.workdirs))
    return ('<!doctype html><html lang="en"><head><meta charset="utf-8"><title>runs</title><style>'
            "body { margin: 0; display: flex; height: 100vh; flex-wrap: wrap } "
            "iframe { flex: 1 1 20rem; border: 0; border-right: 1px solid #888; height: 100% }"
            f"</style></head><body>{frames}</body></html>")

  def _answer(self, status, text):
    data = text.encode("utf-8", errors="replace")
    self.send_response(status)
    self.send_header("Content-Type", "text/html; charset=utf-8")
    self.send_header("Content-Length", str(len(data)))
    self.end_headers()
    self.wfile.write(data)

  def log_message(self, *args):
    """Prints nothing for each request."""


def main(*words: str) -> None:
  """Writes the report of each workdir and prints its path, or serves them with serve=PORT."""
  ports = [w.partition("=")[2] for w in words if w.lstrip("-").startswith("serve=")]
  workdirs = [w for w in words if not w.lstrip("-").startswith("serve=")]
  if not workdirs: raise ValueError("rlx view WORKDIR ...: a run's folder is needed.")
  if ports: return _serve([pathlib.Path(w) for w in workdirs], ports[-1])
  for workdir in workdirs:
    refusals.run_refusing(
        lambda: print(view(workdir)),  # pylint: disable=cell-var-from-loop
        workdir, again="nothing was written.")


def _serve(workdirs: list[pathlib.Path], port: str) -> None:
  """Shows the pages until Ctrl-C."""
  for workdir in workdirs: render(workdir)  # Refuses what is no run before it listens.
  if not port.isdigit() or int(port) > 65535:
    raise ValueError(f"serve={port}: a port from 0 (any that is free) to 65535.")
  try:
    server = make_server(workdirs, int(port))
  except OSError as e:
    raise ValueError(f"serve={port}: {e.strerror}; take another port.") from e
  print(f"http://127.0.0.1:{server.server_port}  (Ctrl-C ends it)", flush=True)
  with server, contextlib.suppress(KeyboardInterrupt): server.serve_forever()
