"""What does PRIME cost? Seconds of a training step of several forms of it, against RLOO.

  rlx sft sft_chain workdir=runs/small_chain sft.fresh.d_model=48 sft.fresh.n_heads=2 \
      sft.fresh.n_kv_heads=1 sft.fresh.d_ff=144
  python -m experiments.bench.prm_cost quickstart --small runs/small_chain/model

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
import time
import types
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from rlx.grids import tables
from rlx import build
from rlx.build import memory as run_memory, updates
from rlx.core import records, resolve
from rlx.io import progress
from rlx.learner import step as learner_step
from rlx.loops import rl
from rlx.models import logps
from rlx.stages import host_state, learner as learner_lib, update_policy

OWN_PASS = "scored in a pass of its own"
MOVING = "PRIME, reference is the policy"
LORA = {"lora.rank": 16}


def forms(small):
  """{name: (changes of the config, whether the PRM learns)}."""
  return {
      "RLOO": ({}, False),
      "PRIME": ({}, True),
      OWN_PASS: ({}, True),
      "4 PRM steps, scored between them": ({"prm.minibatches": 4, "prm.snapshot": False}, True),
      "4 PRM steps, scored before them": ({"prm.minibatches": 4}, True),
      MOVING: ({"prm.reference": "policy"}, True),
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
  patch = (mock.patch.object(updates, "uses_own_pass", lambda *_: False) if name == OWN_PASS
           else contextlib.nullcontext())
  with patch: run = build.build(c)
  return run, run.init()


def shared(run):
  """A program in which policy and PRM learn from one pass, where prm.reference=policy.

  The forward passes of both models come first, then rewards and advantages of the whole batch from
  their log-probs, then both backward passes: S + 2 G, for which what the backward passes
  need of both models is kept at once.

  Returns:
    (params of both, optimizer state, part) -> ..., jitted; and the function that makes its
    arguments of a state and a Placed.
  """
  o, config = run.passes, run.passes.models["policy"]
  loss_of = update_policy.PolicyLoss(
      methods=run.methods, aggregation="token-mean", max_tokens=run.sizes.completion_tokens,
      entropy_coef=0.0, auxiliary_coef=0.0, kl_kind="k3")
  fixed = types.SimpleNamespace(kl_coef=jnp.float32(0), step=0)

  def loss(params, part):
    rollouts, batch, plan = part.rollouts, part.batch, part.plan
    forward = lambda name, **more: logps.of_rollouts(params[name], config, rollouts, plan, **more)
    logps_BT, entropy_BT = forward("policy", temperature=o.temperature)[:2]
    prm_BT = forward("prm", with_entropy=False)[0]
    reference_BT, scored_BT = jax.lax.stop_gradient((logps_BT, prm_BT))
    batch = batch.replace(prm_ref_logps_BT=reference_BT)
    advantages = run.rewards_advantages.compute_from_batch(fixed, batch.replace(
        prm_logps_BT=scored_BT, prm_old_logps_BT=scored_BT))[0]
    total, _ = loss_of(advantages.replace(logps_BT=logps_BT, entropy_BT=entropy_BT), part.kl_coef_B)
    own, _ = resolve.split_metrics(run.methods.prm(batch.replace(prm_logps_BT=prm_BT)))
    both = total.mean() + own.mean()
    return records.Weighted(both, jnp.float32(1)), {}, None

  learner = run.update_policy.learner
  step = learner_step.make(loss, learner.optimizer, group=run.sizes.group)

  def arguments(state, placed):
    params = jax.tree.map(jnp.copy, dict(policy=state.policy, prm=state.prm))
    part = learner_lib.Minibatch(placed.rollouts.rows(), placed.batch, placed.plan(config, 1),
                                 jnp.zeros_like(placed.batch.outcome_B))
    return params, learner.optimizer.init(params), part
  return step, arguments


def timed(run, state, step):
  """Returns (state, {stage: seconds}) of a training step."""
  clock = progress.Clock()
  state, *_ = rl.iteration(run, state, host_state.HostState(rehearsed={}), step, clock)
  jax.block_until_ready(state)
  return state, {k.removeprefix("seconds/"): v for k, v in clock.metrics().items()}


def measure_shared(module, steps):
  """Measures the shared pass beside the stages that it replaces, on padded batches.

  Returns:
    [{stage: seconds} of each step], and {program: bytes besides its arguments}.
  """
  run, state = made(MOVING, module, {"prm.reference": "policy", "learner.pack": False}, True)
  step, arguments = shared(run)
  seconds, silent = [], types.SimpleNamespace(lap=lambda *_: None)
  for i in range(steps + 1):
    laps = {}
    def lap(name, fn, laps=laps):
      start = time.perf_counter()
      out = fn()
      jax.block_until_ready(getattr(out, "batch", out))  # A Placed is no tree.
      laps[name] = time.perf_counter() - start
      return out
    collected = lap("sample", lambda: run.collect(
        state, host_state.HostState(rehearsed={}), i, silent)[0])
    given = run.place(run.annotate(state, collected))
    placed = lap("score", lambda: run.score(state, given))
    parts = arguments(state, placed)
    lap("shared", lambda: step(*parts))
    state, placed, _ = lap("prm", lambda: run.update_prm(state, placed))
    placed, _ = run.rewards_advantages(state, placed)
    state, *_ = lap("policy", lambda: run.update_policy(state, placed, i))
    if i: seconds.append(laps)  # The first step compiles.
  temporary = step.lower(*arguments(state, placed)).compile().memory_analysis()
  return seconds, {"shared pass": temporary.temp_size_in_bytes} | run_memory.measure_compiled_bytes(
      run, run.shapes())


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
  print(tables.markdown(
      ("form", "sample", "score", "PRM", "policy", "step, s", "ratio to RLOO"), rows))
  laps, needed = measure_shared(args.config, args.steps)
  median = lambda stage: np.median([x[stage] for x in laps])
  floor = median("sample") + median("score") + median("prm") + median("policy")
  ratios = [(x["sample"] + x["shared"]) / (x["sample"] + x["policy"]) for x in laps]
  print(f"with {MOVING}, padded: score {median('score'):.3f} s, PRM {median('prm'):.3f} s, policy "
        f"{median('policy'):.3f} s apart ({floor:.3f} s with sampling), {median('shared'):.3f} s in "
        "one pass; divided by RLOO "
        "{1:.2f} [{0:.2f}, {2:.2f}]".format(*np.quantile(ratios, [0.25, 0.5, 0.75])))
  print("MB besides arguments: " + ", ".join(f"{k} {v / 1e6:.1f}" for k, v in needed.items()))


if __name__ == "__main__":
  main()
