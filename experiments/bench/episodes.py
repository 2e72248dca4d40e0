"""How fast are episodes sampled? Compared with one turn of as many tokens, TRL and Tunix.

  python -m experiments.bench.episodes --model DIR [--trl PYTHON] [--tunix PYTHON] [--out FILE]

The model is an HF directory, such as `small` of the page docs/performance.md. All actions have
--action tokens (there is no EOS), all observations --read. Repetitions of all systems take turns in
one run; the table has medians of tokens per second, action tokens alone.

  one turn   `rollouts.sampler`, turns x action + (turns - 1) x read tokens, in --slots slots
  instant    episodes whose environments answer at once, in --slots slots, and in one for each
  slow       answers take a log-normal time, --slow-low to --slow-high s in 95% of cases. The share
             of the time in which the device is busy is that of its programs, from their start until
             their results are on the host
  trl        GRPOTrainer's loop of multi-turn rollouts (its `environment_factory`), which generates
             each turn of all episodes together after their earlier turns
  tunix      what produces the trajectories of the agentic GRPOLearner; it generates each turn of
             each episode by itself

--group episodes have the same prompt.
"""
import argparse
import contextlib
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import time

import jax
import numpy as np

from experiments.bench import bench, roofline, speed_tables
from rlx.core import rng
from rlx.io import weights
from rlx.models import decode
from rlx.rollouts import episodes, sampler


# experiments/episodes_NAME.py, each in an environment of its own, and the packages in it.
_PEERS = dict(trl=("torch", "transformers", "trl"),
              tunix=("google-tunix", "jax", "jaxlib", "flax", "optax", "qwix"))


class Answers:
  """Answers of `read` tokens that arrive after a time drawn for each."""

  def __init__(self, vocabulary, read, seconds):
    self.vocabulary, self.read, self.seconds = vocabulary, read, seconds
    self.draw, self.waiting = random.Random(0), {}

  def submit(self, row, ids):
    answer = [self.draw.randrange(4, self.vocabulary) for _ in range(self.read)]
    self.waiting[row] = time.monotonic() + self.seconds(self.draw), episodes.Answer(answer)

  def take(self, rows):
    time.sleep(max(max(self.waiting[row][0] for row in rows) - time.monotonic(), 0))
    return [(row, self.waiting.pop(row)[1]) for row in rows]


def log_normal(low, high):
  """Draws seconds of which 95% are between low and high."""
  mean, spread = math.log(low * high) / 2, math.log(high / low) / (2 * 1.96)
  return lambda draw: draw.lognormvariate(mean, spread)


def systems(a):
  """{name: () -> (seconds, seconds in which the device is busy)}."""
  config, params, _ = weights.load(a.model)
  laid_out, busy = decode.lay_out(params, config), [0.0]
  draw = np.random.default_rng(0)
  p = a.episodes // a.group
  tokens_PX = draw.integers(4, config.vocab_size, (p, a.prompt)).astype(np.int32)
  len_P, ids_P = np.full(p, a.prompt, np.int32), np.arange(p, dtype=np.uint32)
  total = a.turns * a.action + (a.turns - 1) * a.read
  asked = (params, tokens_PX, len_P, ids_P, rng.key(0, "sample", 0))

  def watched(fn):
    def call(*args, **static):
      start = time.perf_counter()
      out = fn(*args, **static)
      busy[0] += time.perf_counter() - start
      return out
    return call

  # Programs run while they are called, or until their results are fetched.
  fetch = watched(jax.device_get)
  for name in ("_start", "_read", "_advance"):
    setattr(episodes, name, watched(getattr(episodes, name)))

  def one_turn():
    sample = sampler.make(config, group=a.group, max_tokens=total, chunk=a.chunk, slots=a.slots)
    return lambda: jax.block_until_ready(sample(*asked, weights=laid_out))

  def played(seconds, slots):
    sample = episodes.make(config, group=a.group, max_tokens=total, turn_tokens=a.action,
                           turns=a.turns, answer_tokens=a.read, chunk=a.chunk, slots=slots,
                           fetch=fetch)
    return lambda: sample(*asked, Answers(config.vocab_size, a.read, seconds), weights=laid_out)

  def timed(call):
    def rep():
      busy[0], start = 0.0, time.perf_counter()
      call()
      return time.perf_counter() - start, busy[0]
    return rep
  return {name: timed(call) for name, call in {
      "one turn": one_turn(), f"instant, {a.slots} slots": played(lambda _: 0.0, a.slots),
      f"instant, {a.episodes} slots": played(lambda _: 0.0, None),
      f"slow, {a.slots} slots": played(log_normal(a.slow_low, a.slow_high), a.slots)}.items()}


class Worker:
  """A system in another process: (`python FILE`) that answers each line with the seconds."""

  def __init__(self, command):
    self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True)

  def __call__(self):
    with contextlib.suppress(BrokenPipeError): print(file=self.process.stdin, flush=True)
    while not (line := self.process.stdout.readline()).startswith("SECONDS "):
      if not line: raise RuntimeError(f"{self.process.args[1]}: the process has ended, see above.")
    return float(line.split()[1]), math.nan


def versions_of(python, packages):
  """{package: its version} in the environment of an interpreter."""
  program = ("import importlib.metadata, json, sys; "
             "print(json.dumps({p: importlib.metadata.version(p) for p in sys.argv[1:]}))")
  return json.loads(subprocess.check_output([python, "-c", program, *packages]))


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("--model", required=True)
  for peer in _PEERS: args.add_argument(f"--{peer}", help=f"an interpreter with {peer}; adds it")
  args.add_argument("--out", type=pathlib.Path)
  args.add_argument("--reps", type=int, default=3)
  args.add_argument("--only", nargs="+", help="of these systems; default all")
  for name, default in dict(episodes=64, group=8, turns=4, action=64, read=16, prompt=64, chunk=64,
                            slots=16).items():
    args.add_argument(f"--{name}", type=int, default=default)
  args.add_argument("--slow-low", type=float, default=0.05)
  args.add_argument("--slow-high", type=float, default=1.0)
  a = args.parse_args()
  calls = {name: call for name, call in systems(a).items() if not a.only or name in a.only}
  sizes = [str(getattr(a, k)) for k in ("episodes", "group", "turns", "action", "read", "prompt")]
  versions = {}
  for peer in filter(lambda name: getattr(a, name), _PEERS):
    versions[peer] = versions_of(getattr(a, peer), _PEERS[peer])
    program = pathlib.Path(__file__).with_name(f"episodes_{peer}.py")
    calls[peer] = Worker([getattr(a, peer), str(program), a.model, *sizes])
  first = {name: call()[0] for name, call in calls.items()}  # Compilation.
  seconds = {name: [] for name in calls}
  for _ in range(a.reps):
    for name, call in calls.items(): seconds[name].append(call())
  tokens, lines = a.episodes * a.turns * a.action, []
  for name, reps in seconds.items():
    s = statistics.median(x for x, _ in reps)
    share = statistics.median(b / x for x, b in reps)
    lines.append(dict(
        task="episodes", system=name, model=pathlib.Path(a.model).name,
        hardware=roofline.hardware(),
        size=f"{a.episodes} in groups of {a.group}, {a.turns} turns of {a.action} + {a.read}",
        time=time.strftime("%Y-%m-%d %H:%M"), versions=versions.get(name) or bench.versions(),
        tok_s=tokens / s, median_s=s, min_s=min(reps)[0], max_s=max(reps)[0], first_s=first[name],
        busy=None if math.isnan(share) or name == "one turn" else share))
  print("\n".join(speed_tables.episodes(lines)))
  if a.out:
    with a.out.open("a") as f: f.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
  sys.exit(main())
