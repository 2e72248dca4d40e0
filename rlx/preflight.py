"""Will the run fit? Its steps, compiled before the first one, against the device's memory.

jit keeps what compiles here, so the run finds its steps compiled. Completions are
taken at rollouts.max_tokens, the widest batch; a narrower bucket compiles when it comes.
"""
import json
import pathlib
import sys

import jax
import jax.numpy as jnp

from rlx import build
from rlx.core import records
from rlx.learner import memory
from rlx.learner import sharding
from rlx.learner import step as learner_step
from rlx.models import size


def check(run, workdir, limit=None):
  """Prints the table of terms, writes memory.json, refuses what cannot fit.

  Args:
    run: build.Run.
    workdir: folder of memory.json.
    limit: bytes of a device; None asks it.
  Raises:
    ValueError: it does not fit and memory_check is "error".
  """
  if run.config.memory_check == "off": return
  state = run.shapes()
  held, stages = held_bytes(state), cache_bytes(run, state) | activation_bytes(run, state)
  limit = device_bytes(run.mesh) if limit is None else limit
  (pathlib.Path(workdir) / "memory.json").write_text(json.dumps(
      dict(limit=limit, need=memory.need(held, stages), held=held, stages=stages), indent=2))
  print(memory.table(held, stages, limit))
  if limit is None: return
  message = memory.refusal(held, stages, limit, _advice(run.config))
  if message is None: return
  if run.config.memory_check == "error":
    raise ValueError(f"memory: {message}; or memory_check=warn to try.")
  print(f"rlx: memory: {message}.", file=sys.stderr)


def held_bytes(state):
  """{term: bytes} of what a TrainState holds from start to end."""
  terms = {"policy + optimizer": (state.policy, state.policy_opt),
           "PRM + optimizer": (state.prm, state.prm_opt),
           "value model + optimizer": (state.value, state.value_opt),
           "reference": state.reference, "PRM reference": state.prm_reference}
  return {name: n for name, tree in terms.items() if (n := memory.tree_bytes(tree))}


def cache_bytes(run, state):
  """{term: bytes} of the samplers' key-value caches, an estimate from their sizes.

  With model.frozen_dtype also the sampler's copy of the policy.
  """
  c, copy = run.config, 0
  if c.model.frozen_dtype is not None:
    copy = memory.tree_bytes(sharding.shapes(jax.eval_shape(
        lambda params: build.freeze(c, params), state.policy), run.mesh))
  def cache(prompts, group):
    tokens = prompts * c.prompts.max_tokens + prompts * group * c.rollouts.max_tokens
    return copy + (tokens * size.kv_bytes_per_token(run.model_config)
                   // sharding.row_shards(run.mesh))
  return {"KV cache of sampling": cache(build.draw_size(c), c.rollouts.per_prompt),
          "KV cache of evaluation": cache(c.eval.batch, c.eval.samples)}


def activation_bytes(run, state):
  """{term: bytes} that the compiled steps take beside the state. Compiles them."""
  c, rows = run.config, lambda tree: sharding.row_shapes(tree, run.mesh)
  b, t = c.prompts.per_step * c.rollouts.per_prompt, c.rollouts.max_tokens
  ints_B, floats_B = (jax.ShapeDtypeStruct((b,), d) for d in (jnp.int32, jnp.float32))
  rollouts = rows(records.Rollouts(
      tokens_BS=jax.ShapeDtypeStruct((b, c.prompts.max_tokens + t), jnp.int32),
      prompt_len_B=ints_B, completion_len_B=ints_B,
      sampler_logps_BT=jax.ShapeDtypeStruct((b, t), jnp.float32), finish_B=ints_B,
      prompt_P=None))
  scored = jax.eval_shape(run.measure, state, rollouts, rows(floats_B))
  if c.rollouts.step_separator is not None:
    scored = scored.replace(step_ends_BT=scored.mask_BT)
  trained = jax.eval_shape(run.advantage, state, scored)[0]

  def update(name, params, opt_state, *batch):
    part = jax.eval_shape(lambda batch: next(learner_step.minibatches(
        batch, c[name].minibatches, scored.group)), batch)
    lowered = run.updates[name].lower(params, opt_state, rows(part))
    return _compiled_bytes(lowered, (params, opt_state))

  models = (state.policy, state.reference, state.prm)
  stages = {"activations of scoring": max(
      _compiled_bytes(fn.lower(params, rollouts), params)
      for fn, params in zip(run.scorers, models) if params is not None)}
  if state.prm_opt is not None:
    stages["activations of the PRM update"] = update(
        "prm", state.prm, state.prm_opt, rollouts, scored)
  if state.value is not None:
    stages["activations of the value update"] = update(
        "value", state.value, state.value_opt, rollouts, trained)
  stages["activations of the policy update"] = update(
      "learner", state.policy, state.policy_opt, rollouts, trained, floats_B)
  return stages


def device_bytes(mesh):
  """Bytes a device may use; None if it does not say."""
  device = mesh.local_devices[0]
  if device.platform == "cpu":  # Shared by all devices that XLA makes of it.
    found = pathlib.Path("/proc/meminfo")
    lines = found.read_text().splitlines() if found.exists() else []
    free = [int(l.split()[1]) * 1024 for l in lines if l.startswith("MemAvailable:")]
    return free[0] // len(mesh.local_devices) if free else None
  return (device.memory_stats() or {}).get("bytes_limit")


def _compiled_bytes(lowered, held):
  return memory.stage_bytes(lowered.compile().memory_analysis(), memory.tree_bytes(held))


def _advice(c):
  """What to change when a term is too large."""
  remat = "" if c.model.remat == "full" else f" or model.remat={c.model.remat} to full"
  def microbatches(name):
    return f"change {name}.microbatches={c[name].microbatches} to more{remat}"
  return {
      "held": "change mesh.fsdp to spread it over devices, model.param_dtype or "
              "model.path to something smaller",
      "KV cache of sampling": "change prompts.per_step, rollouts.per_prompt, "
                              "rollouts.oversample or rollouts.max_tokens to less",
      "KV cache of evaluation": "change eval.batch or eval.samples to less",
      "activations of scoring":
          f"change learner.microbatches={c.learner.microbatches} to more",
      "activations of the PRM update": microbatches("prm"),
      "activations of the value update": microbatches("value"),
      "activations of the policy update": microbatches("learner")}
