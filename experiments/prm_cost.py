"""What does PRIME cost? Seconds of a training step of several forms of it, against RLOO.

  rlx sft sft_chain workdir=runs/small_chain sft.fresh.d_model=48 sft.fresh.n_heads=2 \
      sft.fresh.n_kv_heads=1 sft.fresh.d_ff=144
  python -m experiments.prm_cost quickstart --small runs/small_chain/model

All forms sample the same completions in the same steps, because their learning rates are 0; they
take turns, and each step is timed again after everything is compiled. Verdicts of steps in which
nothing is right or wrong train nothing, so groups are not filtered. With S the seconds of sampling,
F of a forward pass and G of a gradient,

  RLOO     S + G
  floor    (S + F + 2 G) / (S + G): a forward pass of the PRM's reference and a gradient of the PRM

The table has the median over steps of each form's seconds divided by RLOO's in the same step, with
the quartiles.
"""
import argparse
import contextlib
import importlib
from unittest import mock

import jax
import numpy as np

from experiments import plots
from rlx import build
from rlx import methods
from rlx.io import progress
from rlx.loops import rl
from rlx.loops import session

OWN_PASS = "scored in a pass of its own"
LORA = {"lora.rank": 16}


def forms(small):
  """{name: (changes of the config, whether the PRM learns)}."""
  return {
      "RLOO": ({}, False),
      "PRIME": ({}, True),
      OWN_PASS: ({}, True),
      "4 PRM steps, scored between them": ({"prm.minibatches": 4, "prm.snapshot": False}, True),
      "4 PRM steps, scored before them": ({"prm.minibatches": 4}, True),
      "RLOO, LoRA": (LORA, False),
      "PRIME, PRM and policy as LoRA": (LORA, True)} | ({} if small is None else {
          "PRIME, PRM of half the width": ({"prm.path": small, "prm.reference": "self"}, True)})


def made(name, module, changes, is_prime):
  """Returns (run, state) of a form."""
  c = importlib.import_module(f"configs.{module}").get_config()
  c.update_from_flattened_dict(changes)
  c.learner.optimizer.lr = c.prm.optimizer.lr = 0.0
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  if not is_prime: del c.rewards.process, c.advantages.process
  patch = (mock.patch.object(methods.Methods, "given_by_prm", lambda *_: ()) if name == OWN_PASS
           else contextlib.nullcontext())
  with patch: run = build.build(c)
  return run, run.init()


def timed(run, state, step):
  """Returns (state, {stage: seconds}) of a training step."""
  clock = progress.Clock()
  state, *_ = rl.iteration(run, state, session.HostState(rehearsed={}), step, clock)
  jax.block_until_ready(state)
  return state, {k.removeprefix("seconds/"): v for k, v in clock.metrics().items()}


def measure(module, small, steps):
  """Returns {form: [{stage: seconds} of each step]}."""
  runs = {name: made(name, module, *form) for name, form in forms(small).items()}
  seconds = {name: [] for name in runs}
  start = {name: run.prompts.state() for name, (run, _) in runs.items()}
  for is_warm in (False, True):
    for name, (run, _) in runs.items(): run.prompts.restore(start[name])
    for step in range(steps):
      for name, (run, state) in runs.items():
        state, laps = timed(run, state.replace(step=step), step)
        runs[name] = run, state
        if is_warm: seconds[name].append(laps)
  return seconds


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("config", nargs="?", default="quickstart")
  args.add_argument("--small", help="a PRM of another size")
  args.add_argument("--steps", type=int, default=6)
  args = args.parse_args()
  seconds = measure(args.config, args.small, args.steps)
  median = lambda name, stage: np.median([laps[stage] for laps in seconds[name]])
  sampling, gradient = median("RLOO", "sample"), median("RLOO", "policy")
  forward = median("PRIME", "score")
  print(f"S = {sampling:.3f} s, F = {forward:.3f} s, G = {gradient:.3f} s, floor "
        f"{(sampling + forward + 2 * gradient) / (sampling + gradient):.2f}")
  rows = []
  for name, laps in seconds.items():
    base = "RLOO, LoRA" if "LoRA" in name else "RLOO"
    ratios = [a["step"] / b["step"] for a, b in zip(laps, seconds[base])]
    rows.append((name, *(f"{np.median([x.get(k, 0) for x in laps]):.3f}" for k in (
        "sample", "score", "prm", "policy", "step")),
        "{1:.2f} [{0:.2f}, {2:.2f}]".format(*np.quantile(ratios, [0.25, 0.5, 0.75]))))
  print(plots.table(("form", "sample", "score", "PRM", "policy", "step, s", "ratio to RLOO"), rows))


if __name__ == "__main__":
  main()
