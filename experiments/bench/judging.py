"""What does a rubric judge cost in a training step: at an endpoint, and beside the policy?

  python -m experiments.bench.judging quickstart --judge WHEEL
  python -m experiments.bench.judging smollm2_prime:word_problems-outcome --policy WHEEL \
      --judge policy --arms none 'P(yes)' replies
  python -m experiments.bench.judging      # writes the table of docs/verifiers.md alone

A step has 16 completions with a rubric of three items, all in one request. The arms:

  none       no judge; the verdicts of the task are the rewards
  endpoint   a stub on loopback that replies at once, with yes to every item: what the client,
             the templates and the reading cost
  replies    the judge in process writes its reply, at most 48 tokens
  P(yes)     the judge in process states no more than its verdicts: a forward pass for each item

The arms take turns. Each turn is the first step from the initial policy, with the same completions
in all arms; the first turn of an arm compiles and is not recorded. As other work may share the
machine, CPU seconds of this process, of all of its threads, stand beside wall seconds. The record
is docs/judge_cost.jsonl, a line for each turn.
"""
import argparse
import collections
import contextlib
import http.server
import json
import os
import pathlib
import re
import statistics
import threading
import time

import jax

from rlx import build
from rlx.build import load
from rlx.grids import tables
from rlx.loops import rl
from rlx.stages import host_state

ROOT = pathlib.Path(__file__).parents[2]
RECORDED, PAGE = ROOT / "docs/judge_cost.jsonl", ROOT / "docs/verifiers.md"
RUBRIC = tuple(dict(name=text) for text in (
    "The answer is right.", "Each step follows from the one before.", "Nothing is repeated."))
IN_PROCESS = dict(prompt_tokens=768, max_tokens=48)
ARMS = {"none": None, "endpoint": dict(url="", model="stub"), "replies": IN_PROCESS,
        "P(yes)": dict(IN_PROCESS, probability=True)}
COUNTS = ("requests", "prompt_tokens", "completion_tokens")
# What the table calls them: (policy, judge, arm).
SHOWN = {
    ("quickstart", "", "none"): ("quickstart's", "none"),
    ("quickstart", "", "endpoint"): ("quickstart's", "a stub endpoint that replies at once"),
    ("quickstart", "SmolLM2", "P(yes)"): ("quickstart's", "SmolLM2, by P(yes)"),
    ("quickstart", "SmolLM2", "replies"): ("quickstart's", "SmolLM2, replies of at most 48 tokens"),
    ("SmolLM2", "", "none"): ("SmolLM2", "none"),
    ("SmolLM2", "policy", "P(yes)"): ("SmolLM2", "itself, by P(yes)"),
    ("SmolLM2", "policy", "replies"): ("SmolLM2", "itself, replies of at most 48 tokens"),
}


class _Stub(http.server.BaseHTTPRequestHandler):
  """An OpenAI-compatible endpoint that says yes to each item."""

  def do_POST(self):
    question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
    question = question["messages"][0]["content"]
    nonce = re.search("carry the code ([0-9a-f]{12})", question)[1]
    reply = "\n".join(f"Verdict {nonce} {n}: yes" for n in range(1, 1 + len(RUBRIC)))
    body = json.dumps(dict(choices=[dict(message=dict(content=reply))], usage=dict(
        prompt_tokens=len(question) // 4, completion_tokens=len(reply) // 4))).encode()
    self.send_response(200)
    self.send_header("Content-Length", str(len(body)))
    self.end_headers()
    self.wfile.write(body)

  def log_message(self, *args): pass


@contextlib.contextmanager
def serve():
  """Yields the address of the stub."""
  with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Stub) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    server.shutdown()


def configure(name, arm, judge, *, policy=None, url=""):
  """The config of an arm."""
  c = load.load_config(name)
  c.prompts.per_step, c.rollouts.per_prompt, c.rollouts.oversample = 4, 4, 1.0
  c.rollouts.filter_groups, c.rollouts.max_draws = dict(name="filter_groups.with_verdict"), 1
  c.rollouts.fill = "failed"
  c.learner.microbatches = c.learner.minibatches = c.prm.microbatches = c.prm.minibatches = 1
  c.eval.prompts, c.eval.batch = 4, 4
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=False)
  c.verifier.workers, c.verifier.max_error_rate = 1, 1.0
  if arm != "none":
    c.rewards = dict(outcome=dict(name="items.weighted", coef=1.0, kind="mean"))
    c.verifier.by_item, c.verifier.default_items = "judge.rubric", RUBRIC
    c.verifier.judge.update(dict(model=judge) | ARMS[arm])
  if arm == "endpoint": c.verifier.judge.url = url
  if policy: c.model.path = policy
  return c


class Clock:
  """Wall seconds and CPU seconds of this process by stage, in the place of `progress.Clock`."""

  def __init__(self):
    self.seconds = collections.defaultdict(lambda: [0.0, 0.0])
    self._last = self._now()

  def _now(self): return time.perf_counter(), time.process_time()

  def lap(self, stage, arrays=None):
    if arrays is not None: jax.block_until_ready(arrays)
    now = self._now()
    for i in range(2): self.seconds[stage][i] += now[i] - self._last[i]
    self._last = now


def take_turn(run):
  """{figure: number} of the first step of a run."""
  state, host = run.init(), host_state.HostState(rehearsed={})
  jax.block_until_ready(state)
  run.pool.take_usage()
  clock, unknown = Clock(), run.pool.errors["unknown"]
  *_, metrics = rl.iteration(run, state, host, 0, clock)
  figures = {}
  for i, kind in enumerate(("wall", "cpu")):
    figures |= {f"step_{kind}_s": sum(x[i] for x in clock.seconds.values()),
                f"verify_{kind}_s": clock.seconds["verify"][i]}
  return {k: round(v, 4) for k, v in figures.items()} | {
      name: int(metrics.get(f"judge/{name}", 0)) for name in COUNTS} | dict(
          unknown=run.pool.errors["unknown"] - unknown)


def measure(name, arms, judge, policy, turns):
  """Adds lines to the record: the arms in turns."""
  with contextlib.ExitStack() as stack:
    url = stack.enter_context(serve())
    runs = {}
    for arm in arms:
      run = build.build(configure(name, arm, judge, policy=policy, url=url))
      runs[arm] = stack.enter_context(contextlib.closing(run))
    for turn in range(1 + turns):
      for arm, run in runs.items():
        figures = take_turn(run)
        judged_by = "policy" if judge == "policy" else "SmolLM2"
        row = dict(
            policy="SmolLM2" if policy else name, arm=arm, turn=turn,
            judge="" if arm in ("none", "endpoint") else judged_by,
            **figures, load=round(os.getloadavg()[0], 1), date=time.strftime("%Y-%m-%d"))
        print(row, flush=True)
        if turn:
          with RECORDED.open("a") as f: f.write(json.dumps(row) + "\n")


def table(lines):
  """The table of docs/verifiers.md: medians over the turns of an arm."""
  rows = []
  for key, shown in SHOWN.items():
    turns = [x for x in lines if (x["policy"], x["judge"], x["arm"]) == key]
    if not turns: continue
    median = lambda name, turns=turns: statistics.median(x[name] for x in turns)
    rows.append((*shown, len(turns), *(
        f"{median(f'{part}_{kind}_s'):.3g}" for part in ("step", "verify")
        for kind in ("cpu", "wall")), *(f"{median(name):,.0f}" for name in (*COUNTS, "unknown"))))
  return tables.markdown((
      "policy", "judge", "turns", "step, CPU s", "wall s", "judging, CPU s", "wall s", "requests",
      "their tokens", "tokens of replies", "unknown verdicts"), rows)


def page(lines):
  """docs/verifiers.md with the table between its marks."""
  before, after = re.fullmatch(r"(.*<!-- judges -->\n).*(<!-- end judges -->.*)",
                               PAGE.read_text(), re.DOTALL).groups()
  return before + table(lines) + "\n" + after


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("config", nargs="?", help="whose policy and task are measured")
  args.add_argument("--policy", help="path of the policy; that of the config without it")
  args.add_argument("--judge", default="policy", help="path of the judge's model, or policy")
  args.add_argument("--arms", nargs="*", default=list(ARMS))
  args.add_argument("--turns", type=int, default=3)
  args = args.parse_args()
  if args.config: measure(args.config, args.arms, args.judge, args.policy, args.turns)
  PAGE.write_text(page([json.loads(line) for line in RECORDED.read_text().splitlines()]))


if __name__ == "__main__": main()
