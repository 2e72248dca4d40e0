"""Checks before step 0 whether the run fits into device memory.

The bytes of the training state are exact; those of caches and activations are upper bounds in
closed form (models/size.py) that cost no time. Only if the sum exceeds 40% of a device are the
steps compiled, for rows of full length (the largest packing plan), and XLA's memory analysis
decides. Real batches are mostly smaller and are compiled separately, so compiling the steps here
in every run would waste time.
"""
import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from rlx import build
from rlx.core import records
from rlx.learner import hosts
from rlx.learner import memory
from rlx.learner import sharding
from rlx.loops import logps
from rlx.models import size

_SURE = 0.4  # The steps are not compiled if the estimate is below this share of the device.
_SCORING = "activations of scoring"
_UPDATE = {"prm": "activations of the PRM update",
           "value": "activations of the value update",
           "learner": "activations of the policy update"}


def check(run: build.Run, workdir: str | os.PathLike, setting: str,
          limit: int | None = None) -> None:
  """Prints the memory table, writes memory.json and refuses a run that does not fit.

  Args:
    run: build.Run.
    workdir: folder of memory.json.
    setting: memory_check: off, warn or error.
    limit: bytes of a device; None: the memory that the device reports.
  Raises:
    ValueError: it does not fit and memory_check is error.
  """
  if setting == "off": return
  limit = memory.device_bytes(run.passes.mesh) if limit is None else limit
  for held, stages, source in memory_terms(run, limit):
    if not hosts.is_first(): continue
    (pathlib.Path(workdir) / "memory.json").write_text(json.dumps(dict(
        limit=limit, need=memory.need(held, stages), source=source, held=held,
        stages=stages), indent=2))
    print(memory.table(held, stages, limit, source))
  message = refusal(run, held, stages, limit)
  if message is None: return
  if setting == "error":
    raise ValueError(f"memory: {message}; or memory_check=warn to try.")
  print(f"rlx: memory: {message}.", file=sys.stderr)


def memory_terms(run: build.Run, limit: int | None) -> Iterator[tuple[dict, dict, str]]:
  """Yields (held, stages, source) from the estimate and, if it is close, from the compiled steps.

  Args:
    limit: bytes of a device; None if it is not known, and the steps are not compiled.
  """
  state = run.shapes()
  held, caches = held_bytes(state), cache_bytes(run)
  stages = caches | estimated_bytes(run, state)
  yield held, stages, "estimated"
  if limit is not None and memory.need(held, stages) > _SURE * limit:
    yield held, caches | compiled_bytes(run, state), "compiled"


def refusal(run: build.Run, held: dict, stages: dict, limit: int | None) -> str | None:
  """Returns one line that says why the run does not fit and what to change, None if it may fit."""
  if limit is None or memory.need(held, stages) <= limit: return None
  return memory.refusal(held, stages, limit, _advice(run))


def held_bytes(state: records.TrainState) -> dict[str, int]:
  """Returns {term: bytes} of the TrainState, which is held during the whole run."""
  terms = {"policy + optimizer": (state.policy, state.policy_opt),
           "PRM + optimizer": (state.prm, state.prm_opt),
           "value model + optimizer": (state.value, state.value_opt),
           "frozen base": state.frozen,
           "reference": state.reference, "KL reference": state.kl_reference,
           "sampler's copy": state.sampler,
           "PRM reference": state.prm_reference}
  return {name: n for name, tree in terms.items() if (n := memory.tree_bytes(tree))}


def cache_bytes(run: build.Run) -> dict[str, int]:
  """Returns {term: bytes} of the samplers' key-value caches and weights, in closed form.

    kv (P X + W (X + 2 T' + chunk)) + weights laid out for decoding;  T for 2 T' + chunk
    where T is one chunk

  P prompts of X tokens; each of the W slots may hold a copy of a prompt. After each chunk the
  suffixes of up to T' = T rounded up to chunks are copied to buffers that are one chunk longer.
  The weights are sharded over the tensor axis only, and a tied embedding is stored twice.
  Before the cache is allocated they are gathered over fsdp, a layer or a table at a time, which
  needs its size in param_dtype twice.
  """
  sizes, mesh = run.sizes, run.passes.mesh
  m, t = size.part(run.passes.models["policy"], mesh.shape["tensor"]), sizes.completion_tokens
  weights = (size.param_count(dataclasses.replace(m, tied_head=False))
             * jnp.dtype(m.dtype).itemsize)
  table = m.vocab_size * m.d_model
  layer = (size.param_count(m) - (1 if m.tied_head else 2) * table) // m.n_layers
  piece = 2 * max(layer, table) * jnp.dtype(m.param_dtype).itemsize
  chunk = min(sizes.chunk, t)
  suffix = chunk if chunk == t else 2 * chunk * -(-t // chunk) + chunk
  def cache(prompts, group, slots):
    rows = min(slots or prompts * group, prompts * group)
    tokens = prompts * sizes.prompt_tokens + rows * (sizes.prompt_tokens + suffix)
    kv = tokens * size.kv_bytes_per_token(m) // run.passes.shards
    return weights + (kv if mesh.shape["fsdp"] == 1 else max(kv, piece))
  return {"KV cache of sampling": cache(
              sizes.draw, sizes.first_pass, run.sampling.slots["train"]),
          "KV cache of evaluation": cache(
              sizes.eval_batch, sizes.eval_samples, run.sampling.slots["sampled"])}


def estimated_bytes(run: build.Run, state: records.TrainState) -> dict[str, int]:
  """Returns {term: bytes}: upper bounds, in closed form, of what the steps need besides the state.

  A position of the batch is counted as 64 bytes: its token, its index in the packing plan, and a
  dozen [B, T] fields. Where parameters are sharded over fsdp, an update also holds the embedding
  once and the head three times in float32, gathered once for all microbatches.
  """
  sizes, o, mesh = run.sizes, run.passes, run.passes.mesh.shape
  t, width = sizes.completion_tokens, sizes.prompt_tokens + sizes.completion_tokens
  batch, m = sizes.rows // o.shards, o.models["policy"]
  def stage_bytes(bytes_fn, config, rows, parts, width=width, **more):
    part, config = -(-rows // parts), size.part(config, mesh["tensor"])
    return 64 * rows * width + bytes_fn(config, part, width, part * t, **more)
  tables = 0 if mesh["fsdp"] == 1 else 4 * 4 * m.vocab_size * m.d_model // mesh["tensor"]
  # A reference answer may follow a completion of full length.
  stages = {_SCORING: max(
      stage_bytes(size.forward_bytes, config, batch, o.parts, width=width + sizes.axes["M"])
      for config in o.models.values())}
  for name, params in (("prm", state.prm if state.prm_opt is not None else None),
                       ("value", state.value), ("learner", state.policy)):
    learner = run.update.learners[name]
    if params is not None:
      stages[_UPDATE[name]] = stage_bytes(
          size.update_bytes, learner.config, batch // learner.minibatches, learner.microbatches,
          param_bytes=memory.tree_bytes(params, 4)) + tables
  return stages


def compiled_bytes(run: build.Run, state: records.TrainState) -> dict[str, int]:
  """Compiles the steps and returns {term: bytes} that they need besides the state."""
  return {name: max(memory.stage_bytes(traced.lower().compile().memory_analysis(),
                                       memory.tree_bytes(held))
                    for traced, held in programs)
          for name, programs in traced_steps(run, state).items()}


def traced_steps(run: build.Run, state: records.TrainState) -> dict[str, list]:
  """Traces the steps for rows of full length.

  The mesh may be abstract; the steps can then be lowered for any named platform.

  Returns:
    {term: [(jax.stages.Traced, those of its arguments that the state holds anyway)]}.
  """
  o, rows = run.passes, lambda tree: sharding.row_shapes(tree, run.passes.mesh)
  b, x, t = run.sizes.rows, run.sizes.prompt_tokens, run.sizes.completion_tokens
  array: Any = jax.ShapeDtypeStruct  # It stands for an array.
  ints_B = array((b,), jnp.int32)
  rollouts = rows(records.Rollouts(
      tokens_BS=array((b, x + t), jnp.int32), prompt_len_B=ints_B, completion_len_B=ints_B,
      sampler_logps_BT=array((b, t), jnp.float32), finish_B=ints_B, prompt_P=None))
  sizes = dict(run.sizes.axes, B=b, T=t)
  batch = rows(records.Batch(run.sizes.group, **{
      f.name: jax.ShapeDtypeStruct([sizes[letter] for letter in f.axes], f.dtype)
      for f in (*records.GIVEN, *run.planned)
      if f.axes and f.where != "later" and f.name not in (*records.DERIVED, "turn_BT")}))
  # The PRM's update may give its log-probs, see Methods.given_by_prm.
  given = {} if state.prm_opt is None else {
      name: batch.get(name, batch.sampler_logps_BT)
      for name in ("prm_logps_BT", "prm_old_logps_BT")}
  trained = jax.eval_shape(run.advantage, state, batch.replace(**given))[0]

  def plan(rows_, parts):  # For rows of full length; it does not depend on the model.
    return rows(logps.full_plan(o.models["policy"], o.mesh, rows_, x, t, parts, pack=o.pack))

  def update(name, params, opt_state, *whole):
    learner = run.update.learners[name]
    n = learner.minibatches
    part = jax.tree.map(lambda s: jax.ShapeDtypeStruct((s.shape[0] // n, *s.shape[1:]), s.dtype),
                        whole)
    part = *rows(part), plan(b // n, learner.microbatches)
    return [(run.update.programs[name].trace(params, opt_state, part, state.frozen),
             (params, opt_state, state.frozen))]

  passes = []
  for name, model, temperature in (("policy", "policy", o.temperature),
                                   ("reference", "policy", 1.0), ("prm", "prm", 1.0)):
    if getattr(state, name) is not None:
      fn = logps.compiled(o.models[model], temperature, o.parts, o.shards)
      params = state.full(name)
      passes.append((fn.trace(params, rollouts, plan(b, o.parts)), params))
  stages = {_SCORING: passes}
  if state.prm_opt is not None:
    stages[_UPDATE["prm"]] = update("prm", state.prm, state.prm_opt, rollouts, batch)
  if state.value is not None:
    stages[_UPDATE["value"]] = update(
        "value", state.value, state.value_opt, rollouts, trained)
  stages[_UPDATE["learner"]] = update(
      "learner", state.policy, state.policy_opt, rollouts, trained,
      jax.ShapeDtypeStruct((b,), jnp.float32))
  return stages


def _advice(run):
  """Returns {term: what to change if the term is too large}."""
  m, state = run.passes.models["policy"], run.shapes()
  remat = "" if m.remat == "full" else f" or model.remat={m.remat} to full"
  smaller = ["mesh.fsdp to spread it over devices"]
  frozen = jax.tree.leaves((state.frozen, state.reference, state.prm_reference))
  if m.param_dtype == "float32" and all(x.dtype == jnp.float32 for x in frozen):
    smaller.append("model.frozen_dtype to bfloat16, if model.dtype is, for references")
  smaller.append("model.path to a smaller model")
  def microbatches(name, remat):
    learner = run.update.learners[name]
    parts = learner.minibatches * learner.microbatches * run.passes.shards
    has_a_group = run.sizes.prompts == parts
    return ("change rollouts.per_prompt or rollouts.max_tokens to less" if has_a_group else
            f"change {name}.microbatches={learner.microbatches} to more") + remat
  return {
      "held": "change " + ", ".join(smaller[:-1]) + f" or {smaller[-1]}",
      "KV cache of sampling": "change prompts.per_step, rollouts.per_prompt, "
                              "rollouts.oversample or rollouts.max_tokens to less",
      "KV cache of evaluation": "change eval.batch or eval.samples to less",
      _SCORING: microbatches("learner", ""),
      _UPDATE["prm"]: microbatches("prm", remat),
      _UPDATE["value"]: microbatches("value", remat),
      _UPDATE["learner"]: microbatches("learner", remat)}
