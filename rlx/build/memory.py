"""Checks before step 0 whether a run fits into device memory.

The bytes of the training state are exact; those of caches and activations are upper bounds in
closed form (models/size.py) that cost no time. Only if the sum exceeds 40% of a device are the
steps compiled, for rows of full length (the largest packing plan), and XLA's memory analysis
decides. Real batches are mostly smaller and are compiled separately, so compiling the steps here
in every run would waste time.
"""
import dataclasses
import functools
import json as json_lib
import os
import pathlib
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlx.build import run as run_lib
from rlx.core import records
from rlx.learner import hosts, memory, programs as program_text, sharding
from rlx.models import packing, size, transformer
from rlx.stages import (
    judging, learner as learner_lib, passes as passes_lib, sampling as sampling_lib)

_SURE = 0.4  # The steps are not compiled if the estimate is below this share of the device.
_SAMPLING, _EVALUATION = "KV cache of sampling", "KV cache of evaluation"
_JUDGING = "KV cache of judges"
_SCORING = "activations of scoring"
_Shape: Any = jax.ShapeDtypeStruct  # It stands for an array.
_UPDATE = {"prm": "activations of the PRM update", "value": "activations of the value update",
           "learner": "activations of the policy update"}


def check(run: run_lib.Run, workdir: str | os.PathLike, setting: str,
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
    (pathlib.Path(workdir) / "memory.json").write_text(json_lib.dumps(dict(
        limit=limit, need=memory.need(held, stages), source=source, held=held,
        stages=stages), indent=2))
    print(memory.table(held, stages, limit, source))
  message = refusal(run, held, stages, limit)
  if message is None: return
  if setting == "error": raise ValueError(f"memory: {message}; or memory_check=warn to try.")
  print(f"rlx: memory: {message}.", file=sys.stderr)


def memory_terms(run: run_lib.Run, limit: int | None) -> Iterator[tuple[dict, dict, str]]:
  """Yields (held, stages, source) from the estimate and, if it is close, from the compiled steps.

  Args:
    limit: bytes of a device; None if it is not known, and the steps are not compiled.
  """
  state = run.shapes()
  held, caches = count_state_bytes(state), cache_bytes(run)
  stages = caches | estimate_bytes(run, state)
  yield held, stages, "estimated"
  if limit is not None and memory.need(held, stages) > _SURE * limit:
    yield held, caches | measure_compiled_bytes(run, state), "compiled"


def refusal(run: run_lib.Run, held: dict, stages: dict, limit: int | None) -> str | None:
  """Returns one line that says why the run does not fit and what to change, None if it may fit."""
  if limit is None or memory.need(held, stages) <= limit: return None
  return memory.refusal(held, stages, limit, _advice(run))


def count_state_bytes(state: records.TrainState) -> dict[str, int]:
  """Returns {term: bytes} of the TrainState, which is held during the whole run."""
  terms = {"policy + optimizer": (state.policy, state.policy_opt),
           "PRM + optimizer": (state.prm, state.prm_opt),
           "value model + optimizer": (state.value, state.value_opt), "frozen base": state.frozen,
           "reference": state.reference, "KL reference": state.kl_reference,
           "sampler's copy": state.sampler, "PRM reference": state.prm_reference,
           **(state.frozen_models or {}),
           **{f"{name} + optimizer": state.get_trained(name) for name in state.scorers or {}}}
  return {name: n for name, tree in terms.items() if (n := memory.tree_bytes(tree))}


def cache_bytes(run: run_lib.Run) -> dict[str, int]:
  """Returns {term: bytes} of the samplers' key-value caches and weights, in closed form.

    kv (P X + W (X + 2 T' + chunk)) + weights laid out for decoding;  T for 2 T' + chunk
    where T is one chunk

  P prompts of X tokens; each of the W slots may hold a copy of a prompt. After each chunk the
  suffixes of up to T' = T rounded up to chunks are copied to buffers that are one chunk longer.
  The weights are sharded over the tensor axis only, and a tied embedding is stored twice.
  Before the cache is allocated they are gathered over fsdp, a layer or a table at a time, which
  needs its size in param_dtype twice. Prefill computes all prompts at once, which with
  attention=blocks takes less than the rest, as XLA on CPU stores little of a layer.
  """
  sizes, mesh = run.sizes, run.passes.mesh
  def cache(sampler: sampling_lib.Sampler) -> int:
    m = size.shard_config(sampler.config, mesh.shape["tensor"])
    weights = (size.param_count(dataclasses.replace(m, tied_head=False))
               * jnp.dtype(m.dtype).itemsize)
    table = m.vocab_size * m.d_model
    layer = (size.param_count(m) - (1 if m.tied_head else 2) * table) // m.n_layers
    piece = 2 * max(layer, table) * jnp.dtype(m.param_dtype).itemsize
    prompts, group, t = sampler.prompts, sampler.group, sampler.max_tokens
    x = sampler.texts.prompt_tokens
    chunk = min(sizes.chunk, t)
    suffix = chunk if chunk == t else 2 * chunk * -(-t // chunk) + chunk
    rows = min(sampler.slots or prompts * group, prompts * group)
    tokens = prompts * x + rows * (x + suffix)
    kv = tokens * size.kv_bytes_per_token(m) // run.passes.shards
    prefill = 0 if m.attention == "blocks" else (
        prompts * x * size.kv_bytes_per_token(m) // run.passes.shards
        + size.layer_bytes(m, prompts // run.passes.shards, x, 0))
    return weights + max(kv, prefill, 0 if mesh.shape["fsdp"] == 1 else piece)
  samplers = [run.sampling.sampled, *(x["sampled"] for x in run.sampling.sets.values())]
  judges = [x.sampler for x in run.judges.local.values()] if run.judges else []
  return {_SAMPLING: cache(run.sampling.train), _EVALUATION: max(map(cache, samplers))} | (
      {_JUDGING: max(map(cache, judges))} if judges else {})


def estimate_bytes(run: run_lib.Run, state: records.TrainState) -> dict[str, int]:
  """Returns {term: bytes}: upper bounds, in closed form, of what the steps need besides the state.

  A position of the batch is counted as 64 bytes: its token, its index in the packing plan, and a
  dozen [B, T] fields.
  """
  sizes, o, mesh = run.sizes, run.passes, run.passes.mesh.shape
  t, width = sizes.completion_tokens, sizes.prompt_tokens + sizes.completion_tokens
  batch = sizes.rows // o.shards
  # Where the filter of groups reads models, they score a draw; its microbatches are no larger.
  scored = batch if run.collect is None or run.collect.columns is None else max(
      batch, sizes.draw * sizes.group // o.shards)
  def stage_bytes(bytes_fn: Callable[..., int], config: transformer.DecoderConfig, rows: int,
                  parts: int, width: int = width, t: int = t, **more: Any) -> int:
    part, config = -(-rows // parts), size.shard_config(config, mesh["tensor"])
    return 64 * rows * width + bytes_fn(
        config, part, width, part * t, gathered=mesh["fsdp"] > 1, **more)
  # A reference answer, or a question of a scorer, may follow a completion of full length.
  more = max([sizes.axes["M"], *(1 + len(x.question_ids) + x.reference_tokens
                                 for x in o.scorers.values())])
  stages = {_SCORING: max(
      stage_bytes(size.forward_bytes, config, batch, o.parts, width=width + more)
      + 64 * (scored - batch) * (width + more)
      for config in o.models.values())}
  # Whole distributions, such as those of a teacher.
  table = 4 * batch * t * o.models["policy"].vocab_size
  whole = table * (sum("V" in f.axes and f.where != "later" for f in run.planned)
                   + getattr(run.update_prm, "reads_all", False))
  stages[_SCORING] += whole
  for name, update in run.updates.items():
    learner, (params, opt_state) = update.learner, state.get_trained(update.learner.name)
    if opt_state is not None:
      moved = sharding.shapes(opt_state, o.mesh)  # From the host's memory, if it is there.
      moved_bytes = memory.tree_bytes(moved) - memory.tree_bytes(opt_state)
      longer = 1 + o.scorers[name].reference_tokens if name in o.scorers else 0
      rows, own_width, own_t = batch, width + longer, t
      if sampler := _find_judge(run, name):
        rows, own_t = batch * sampler.group, sampler.max_tokens
        own_width = sampler.texts.prompt_tokens + own_t
      stages[_name_update(name)] = whole + moved_bytes + stage_bytes(
          size.update_bytes, learner.config, rows // learner.minibatches, learner.microbatches,
          own_width, own_t, param_bytes=memory.tree_bytes(params, 4), tensor=mesh["tensor"])
  if any(spec == ("all",) for _, spec in run.update_policy.statistics):
    stages[_UPDATE["learner"]] += 3 * table
  return stages


@dataclasses.dataclass(frozen=True)
class Program:
  """A program of a run, traced for rows of full length."""
  term: str                  # of the memory table
  name: str
  traced: jax.stages.Traced
  held: Any                  # those of its arguments that the state holds anyway
  beside: Any = ()           # arrays in use meanwhile that are not its arguments
  longest: int | None = None  # how often a loop runs that ends by data


@dataclasses.dataclass(frozen=True)
class Compiled:
  """What a compiled program needs and does on one device."""
  term: str
  name: str
  need: int                  # bytes besides the state
  parts: dict[str, int]      # its bytes: arguments, results, aliased, temporaries
  compile_s: float
  fits: bool                 # False: the compiler has refused it; nothing below is known
  work: program_text.Work
  text: str = dataclasses.field(repr=False, default="")


def compile_program(program: Program, mesh: dict[str, int]) -> Compiled:
  """Compiles a program for the devices of its arguments.

  Raises:
    ValueError: the compiler fails, for another reason than memory.
  """
  start = time.perf_counter()
  held, beside = map(memory.tree_bytes, (program.held, program.beside))
  known = lambda **more: Compiled(
      term=program.term, name=program.name, compile_s=time.perf_counter() - start, **more)
  try:
    result = program.traced.lower().compile()
  except jax.errors.JaxRuntimeError as e:
    # XLA for TPUs refuses what does not fit and says what it would need.
    match = re.search(r"Used ([\d.]+)([MGT]) of|required[^(]*\(([\d.]+)([MGT])\)", str(e))
    if "RESOURCE_EXHAUSTED" not in str(e) or match is None:
      raise ValueError(f"{program.name}: {str(e).strip().splitlines()[0]}") from e
    size, unit = [x for x in match.groups() if x is not None]
    total = int(float(size) * 2 ** dict(M=20, G=30, T=40)[unit])
    return known(need=total - held + beside, parts={}, fits=False, work=program_text.Work())
  a = result.memory_analysis()
  parts = dict(arguments=a.argument_size_in_bytes, results=a.output_size_in_bytes,
               aliased=a.alias_size_in_bytes, temporaries=a.temp_size_in_bytes)
  seconds, text = time.perf_counter() - start, result.as_text()
  return dataclasses.replace(known(
      need=memory.stage_bytes(a, held) + beside, parts=parts, fits=True, text=text,
      work=program_text.work(text, mesh, program.longest)), compile_s=seconds)


def measure_compiled_bytes(run: run_lib.Run, state: records.TrainState) -> dict[str, int]:
  """Compiles the steps and returns {term: bytes} that they need besides the state."""
  return max_by_term(compile_program(program, dict(run.passes.mesh.shape))
                     for program in trace_steps(run, state))


def max_by_term(programs_: Iterable[Compiled]) -> dict[str, int]:
  needed: dict[str, int] = {}
  for x in programs_: needed[x.term] = max(needed.get(x.term, 0), x.need)
  return needed


def trace_programs(run: run_lib.Run, state: records.TrainState) -> Iterator[Program]:
  """All programs of an RL iteration that grow with the model or the batch, and of evaluation."""
  params, chunk = state.join_params("policy"), run.sizes.chunk
  sets = [(f"{kind}/{name}", _EVALUATION, f", {kind}, {name}")
          for name, by_kind in run.sampling.sets.items() for kind, sampler in by_kind.items()
          if sampler != getattr(run.sampling, kind)]
  for name, term, label in (
      ("hand-over", _SAMPLING, "hand-over"), ("train", _SAMPLING, ""),
      ("greedy", _EVALUATION, ", greedy"), ("sampled", _EVALUATION, ", evaluation"), *sets):
    if name == "sampled" and run.sizes.eval_samples == 1: continue
    for part, (traced, held, beside) in run.sampling.trace(name, params).items():
      full = f"{label}, {part}" if name == "hand-over" else part + label
      yield Program(term, full, traced, held, beside, chunk)
  for judge in run.judges.local.values() if run.judges else ():
    params, label = state.join_params(judge.params), f", judge {judge.params}"
    for part, (traced, held, beside) in judge.trace(params).items():
      yield Program(_JUDGING, part + label, traced, held, beside, chunk)
  yield from trace_steps(run, state)


def trace_steps(run: run_lib.Run, state: records.TrainState) -> Iterator[Program]:
  """Traces scoring and the updates. On an abstract mesh they can be lowered for any platform."""
  o, rows = run.passes, lambda tree: sharding.row_shapes(tree, run.passes.mesh)
  b, x, t = run.sizes.rows, run.sizes.prompt_tokens, run.sizes.completion_tokens
  kept = run.sampling.train.kept
  rollouts = _shape_rollouts(run, x, t, kept)
  sizes = dict(run.sizes.axes, B=b, T=t, V=o.models["policy"].vocab_size)
  batch = rows(records.Batch(run.sizes.group, **{
      f.name: _Shape([sizes[letter] for letter in f.axes], f.dtype)
      for f in (*(f for f in records.GIVEN if "environment.name" not in f.needs), *run.planned)
      if f.axes and f.where != "later" and f.name not in records.DERIVED}))
  logps_BT = batch.sampler_logps_BT  # Others have its shape.
  prm = {name: logps_BT for name in ("prm_logps_BT", "prm_old_logps_BT")}
  scored = batch if run.updates["prm"].uses_own_pass else batch.replace(**prm)
  trained = jax.eval_shape(run.rewards_advantages.compute_from_batch, state, batch.replace(
      **(prm if state.prm is not None else {})))[0]
  if not run.update_policy.learner.has_one_step: trained = trained.replace(old_logps_BT=logps_BT)

  plan = functools.partial(_plan_longest, run, x, t)

  def update(name: str, params: records.Params, opt_state: Any, batch: records.Batch,
             kl_coef_B: Any = None) -> Program:
    learner = run.updates[name].learner
    n = learner.minibatches
    cut, batch, coef_B = rows(jax.tree.map(
        lambda s: _Shape((s.shape[0] // n, *s.shape[1:]), s.dtype), (rollouts, batch, kl_coef_B)))
    part = learner_lib.Minibatch(cut, batch, plan(b // n, learner.microbatches), coef_B)
    term = _name_update(name)
    return Program(
        term, term.removeprefix("activations of the "), run.updates[name].program.trace(
            params, sharding.shapes(opt_state, o.mesh), part, state.frozen),
        (params, opt_state, state.frozen))

  implicit = [(name, name, 1.0, False) for name, x in o.scorers.items() if x.kind == "implicit"]
  for name, model, temperature, among_kept in (
      ("policy", "policy", o.temperature, bool(kept)), ("reference", "policy", 1.0, False),
      ("prm", "prm", 1.0, False), ("teacher", "teacher", o.temperature, bool(kept)), *implicit):
    if name in (state.frozen_models or {}) or getattr(state, name, None) is not None:
      fn = passes_lib.compile_logps(o.models[model], temperature, o.parts, o.shards, (), among_kept)
      params = state.join_params(name)
      yield Program(_SCORING, f"scoring, {name}",
                    fn.trace(params, rollouts, plan(b, o.parts)), params)
  yield from _trace_scorers(run, state)
  if state.prm_opt is not None:
    yield update("prm", state.prm, state.prm_opt, scored)
  if state.value is not None:
    yield update("value", state.value, state.value_opt, trained)
  for name in state.scorers or {}: yield _trace_scorer_update(run, state, name)
  yield update("learner", state.policy, state.policy_opt, trained, _Shape((b,), jnp.float32))


def _find_judge(run: run_lib.Run, name: str) -> sampling_lib.Sampler | None:
  """The sampler of the judge that learns as a section says; None: it is another section."""
  if run.judges is None or name not in run.judges.tasks: return None
  return run.judges.local[judging.key_of(run.judges.tasks[name].options)].sampler


def _trace_scorer_update(run: run_lib.Run, state: records.TrainState, name: str) -> Program:
  """The update of a model that learns beside the policy.

  That of a scorer is on a batch or on two completions of each prompt, that of a judge on all its
  replies about a batch.
  """
  update, (params, opt_state) = run.updates[name], state.get_trained(name)
  x = run.sizes.prompt_tokens + getattr(run.passes.scorers.get(name), "reference_tokens", 0)
  t, learner, coef_B = run.sizes.completion_tokens + 1, update.learner, None
  b = run.sizes.prompts * learner.group // learner.minibatches
  if sampler := _find_judge(run, name):
    x, t, b = sampler.texts.prompt_tokens, sampler.max_tokens, b * run.sizes.group
    shape_rows = lambda dtype, *axes: _Shape((b, *axes), dtype)
    coef_B, logps_BT = shape_rows(jnp.float32), shape_rows(jnp.float32, t)
    batch = records.Batch(
        learner.group, action_BT=shape_rows(bool, t), sampler_logps_BT=logps_BT,
        advantages_BT=logps_BT, reward_B=coef_B, outcome_B=coef_B, finish_B=shape_rows(jnp.int32),
        excluded_B=shape_rows(jnp.int8), label_B=shape_rows(bool),
        old_logps_BT=None if learner.has_one_step else logps_BT)
  else:
    batch = records.Batch(learner.group, labels_BT=_Shape((b, t - 1), jnp.float32))
  rollouts, batch, coef_B = sharding.row_shapes(
      (_shape_rollouts(run, x, t, b=b), batch, coef_B), run.passes.mesh)
  part = learner_lib.Minibatch(rollouts, batch, _plan_longest(
      run, x, t, b, learner.microbatches), coef_B)
  return Program(_name_update(name), f"{name} update", update.program.trace(
      params, sharding.shapes(opt_state, run.passes.mesh), part, state.frozen), (params, opt_state))


def _name_update(name: str) -> str:
  """The term of the update of a section's model."""
  return _UPDATE.get(name, f"activations of the update of {name}")


def _shape_rollouts(run: run_lib.Run, x: int, t: int, kept: int = 0,
                    b: int | None = None) -> records.Rollouts:
  """Shapes of a batch's rollouts, or of b rows, of x and t columns."""
  b = run.sizes.rows if b is None else b
  ints_B = _Shape((b,), jnp.int32)
  return sharding.row_shapes(records.Rollouts(
      tokens_BS=_Shape((b, x + t), jnp.int32), prompt_len_B=ints_B, completion_len_B=ints_B,
      sampler_logps_BT=_Shape((b, t), jnp.float32), finish_B=ints_B, prompt_P=None,
      kept_BTK=_Shape((b, t, kept), jnp.int32) if kept else None), run.passes.mesh)


def _plan_longest(run: run_lib.Run, x: int, t: int, rows: int, parts: int) -> packing.Plan | None:
  """The largest plan: for rows of full length without shared prompts, whatever the model."""
  o = run.passes
  if not o.pack: return None
  return sharding.row_shapes(packing.plan(
      np.full(rows, x), np.full(rows, t), x, t, o.models["policy"], parts=parts * o.shards), o.mesh)


def _trace_scorers(run: run_lib.Run, state: records.TrainState) -> Iterator[Program]:
  """The passes of scorers whose rows are longer than those of a batch."""
  o, sizes = run.passes, run.sizes
  for name, scorer in o.scorers.items():
    x, t, config = sizes.prompt_tokens, sizes.completion_tokens, o.models[name]
    if scorer.has_head:
      x, t = x + scorer.reference_tokens, t + 1
      compiled = (passes_lib.compile_ends if scorer.kind == "energy" else
                  passes_lib.compile_values)
      fn = compiled(config, o.parts, o.shards)
    elif scorer.kind == "yes_no":
      x, t = x + t + len(scorer.question_ids), 1
      fn = passes_lib.compile_logps(config, 1.0, o.parts, o.shards, (("all",),), False)
    else: continue
    params = state.join_params(name)
    yield Program(_SCORING, f"scoring, {name}", fn.trace(
        params, _shape_rollouts(run, x, t), _plan_longest(run, x, t, sizes.rows, o.parts)), params)


def _advice(run: run_lib.Run) -> dict[str, str]:
  """Returns {term: what to change if the term is too large}."""
  m, state = run.passes.models["policy"], run.shapes()
  remat = "" if m.remat == "full" else f" or model.remat={m.remat} to full"
  smaller = ["mesh.fsdp to spread it over devices"]
  frozen = jax.tree.leaves((state.frozen, state.reference, state.prm_reference,
                            state.frozen_models))
  if m.param_dtype == "float32" and all(x.dtype == jnp.float32 for x in frozen):
    smaller.append("model.frozen_dtype to bfloat16, if model.dtype is, for references")
  if not run.update_policy.learner.offload: smaller.append("offload_optimizers to True")
  smaller.append("model.path to a smaller model")
  def microbatches(name: str, remat: str) -> str:
    learner = run.updates[name].learner
    parts = learner.minibatches * learner.microbatches * run.passes.shards
    has_a_group = run.sizes.prompts == parts
    return ("change rollouts.per_prompt or rollouts.max_tokens to less" if has_a_group else
            f"change {name}.microbatches={learner.microbatches} to more") + remat
  return {
      "held": "change " + ", ".join(smaller[:-1]) + f" or {smaller[-1]}",
      _SAMPLING: "change prompts.per_step, rollouts.per_prompt, "
                 "rollouts.oversample or rollouts.max_tokens to less",
      _EVALUATION: "change eval.batch, eval.samples or eval.max_tokens to less",
      _JUDGING: "change concurrent, prompt_tokens or max_tokens of verifier.judge to less",
      _SCORING: microbatches("learner", ""),
      _UPDATE["prm"]: microbatches("prm", remat),
      _UPDATE["value"]: microbatches("value", remat),
      _UPDATE["learner"]: microbatches("learner", remat),
      **{_name_update(name): f"change {name}.online.microbatches="
         f"{run.updates[name].learner.microbatches} to more" for name in state.scorers or {}}}
