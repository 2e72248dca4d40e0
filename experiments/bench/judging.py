"""What does a rubric judge cost in a step: at an endpoint, and beside the policy?

  python -m experiments.bench.judging quickstart --judge WHEEL
  python -m experiments.bench.judging smollm2_prime:word_problems-outcome --policy WHEEL \
      --judge policy

A step has 16 completions with a rubric of three items, all in one request. The arms:

  endpoint   a stub on loopback that replies at once, with yes to every item: what the client,
             the templates and the reading cost
  replies    the judge in process writes its reply, at most 48 tokens
  P(yes)     the judge in process states no more than its verdicts: a forward pass for each item

Sampling and judging of one batch are timed after each has been done once, which compiles. Figures
are wall seconds and, as other work may share the machine, CPU seconds of this process.
"""
import argparse
import contextlib
import http.server
import json
import re
import threading
import time

from rlx import build
from rlx.build import load
from rlx.core import rng
from rlx.grids import tables

RUBRIC = tuple(dict(name=text) for text in (
    "The answer is right.", "Each step follows from the one before.", "Nothing is repeated."))
IN_PROCESS = dict(prompt_tokens=768, max_tokens=48)
ARMS = {"endpoint": dict(url="", model="stub"), "replies": IN_PROCESS,
        "P(yes)": dict(IN_PROCESS, probability=True)}
COUNTS = ("requests", "prompt_tokens", "completion_tokens")


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
  c.learner.microbatches = c.learner.minibatches = c.prm.microbatches = c.prm.minibatches = 1
  c.eval.prompts, c.eval.batch = 4, 4
  c.rewards = dict(outcome=dict(name="items.weighted", coef=1.0, kind="mean"))
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=False)
  c.verifier.by_item, c.verifier.default_items, c.verifier.workers = "judge.rubric", RUBRIC, 1
  c.verifier.judge.update(dict(model=judge) | ARMS[arm])
  if arm == "endpoint": c.verifier.judge.url = url
  if policy: c.model.path = policy
  return c


def measure(config):
  """[figures] of a batch of a run."""
  with contextlib.closing(build.build(config)) as run:
    state, prompts = run.init(), run.prompts.take(run.sizes.draw)
    run.outcomes.hold(state)
    sample = lambda: run.sampling.train(state.policy, prompts, rng.key(0, "sample"))
    rollouts = sample()
    texts = run.texts.completions(rollouts)
    rows = run.outcomes.prompt_rows(prompts, rollouts, texts)
    judge = lambda: run.outcomes.verifiers.lists("judge.rubric", rows, texts)
    judge()
    run.pool.take_usage()
    figures = [x for part in (sample, judge) for x in time_of(part)]
    counts = run.pool.take_usage()
  return figures + [counts.get(f"judge/{name}", 0) for name in COUNTS]


def time_of(fn):
  """(wall seconds, CPU seconds of this process) of a call."""
  start = time.perf_counter(), time.process_time()
  fn()
  return time.perf_counter() - start[0], time.process_time() - start[1]


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("config")
  args.add_argument("--policy", help="path of the policy; that of the config without it")
  args.add_argument("--judge", required=True, help="path of the judge's model, or policy")
  args.add_argument("--arms", nargs="*", default=list(ARMS))
  args = args.parse_args()
  rows = []
  with serve() as url:
    for arm in args.arms:
      found = measure(configure(args.config, arm, args.judge, policy=args.policy, url=url))
      rows.append([arm, *(f"{x:.3g}" for x in found[:4]), *found[4:]])
      print(rows[-1], flush=True)
  print(tables.markdown(["judge", "sampling, s", "CPU s", "judging, s", "CPU s", "requests",
                         "request tokens", "reply tokens"], rows))


if __name__ == "__main__": main()
