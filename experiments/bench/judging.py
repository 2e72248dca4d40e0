"""What does a rubric judge cost in a training step: at an endpoint, and beside the policy?

  python -m experiments.bench.judging quickstart --judge WHEEL
  python -m experiments.bench.judging smollm2_prime:word_problems-outcome --policy WHEEL \
      --judge policy

A step has 16 completions with a rubric of three items, all in one request. The arms:

  none       no judge, the verdict of the task alone
  endpoint   a stub on loopback that replies at once, with yes to every item: what the client,
             the templates and the reading cost
  replies    the judge in process writes its reply, at most 48 tokens
  P(yes)     the judge in process states no more than its verdicts: a forward pass for each item

Each arm makes STEPS + 1 steps of a run of its own; the first one, which compiles, is left out. The
table has medians over the others. Learning rates are 0, so that all arms sample the same.
"""
import argparse
import contextlib
import http.server
import json
import pathlib
import re
import tempfile
import threading

import numpy as np

import rlx
from rlx.build import load
from rlx.grids import tables
from rlx.io import metrics as io_metrics

RUBRIC = tuple(dict(name=text) for text in (
    "The answer is right.", "Each step follows from the one before.", "Nothing is repeated."))
IN_PROCESS = dict(prompt_tokens=768, max_tokens=48)
ARMS = {"none": None, "endpoint": dict(url="", model="stub"), "replies": IN_PROCESS,
        "P(yes)": dict(IN_PROCESS, probability=True)}
COLUMNS = {"s/step": "seconds/step", "s of verifying": "seconds/verify",
           "requests": "judge/requests", "request tokens": "judge/prompt_tokens",
           "reply tokens": "judge/completion_tokens"}


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


def configure(name, arm, judge, *, policy=None, steps=3, url=""):
  """The config of an arm."""
  c = load.load_config(name)
  c.steps, c.prompts.per_step, c.rollouts.per_prompt = steps + 1, 4, 4
  c.rollouts.max_draws, c.rollouts.oversample, c.rollouts.fill = 1, 1.0, "failed"
  c.learner.microbatches = c.learner.minibatches = 1
  c.learner.optimizer.lr = 0.0
  c.eval.every, c.eval.prompts, c.eval.batch, c.eval.final_samples = 0, 4, 4, 1
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=False)
  c.log.baseline = None
  if ARMS[arm] is not None:
    c.verifier.by_item, c.verifier.default_items, c.verifier.workers = "judge.rubric", RUBRIC, 1
    c.verifier.max_error_rate = 1.0  # A small model may write no verdict; its time counts.
    c.verifier.judge.update(dict(model=judge) | ARMS[arm])
    if arm == "endpoint": c.verifier.judge.url = url
    c.rewards["rubric"] = dict(name="items.weighted", coef=1.0, kind="mean")
    c.advantages["rubric"] = dict(name="group.rloo")
  if policy: c.model.path = policy
  return c


def measure(config, workdir):
  """{name: median over the steps but the first} of a run."""
  rlx.train(config, workdir=str(workdir))
  lines = io_metrics.read(workdir)[1:]
  return [float(np.median([line.get(name, 0) for line in lines])) for name in COLUMNS.values()]


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("config")
  args.add_argument("--policy", help="path of the policy; that of the config without it")
  args.add_argument("--judge", required=True, help="path of the judge's model, or policy")
  args.add_argument("--steps", type=int, default=3)
  args.add_argument("--arms", nargs="*", default=list(ARMS))
  args = args.parse_args()
  rows = []
  with serve() as url, tempfile.TemporaryDirectory() as folder:
    for arm in args.arms:
      found = measure(configure(args.config, arm, args.judge, policy=args.policy,
                                steps=args.steps, url=url),
                      pathlib.Path(folder, re.sub(r"\W", "", arm)))
      rows.append([arm, *(f"{x:.3g}" for x in found)])
      print(rows[-1], flush=True)
  print(tables.markdown(["judge", *COLUMNS], rows))


if __name__ == "__main__": main()
