"""Plans PRIME on larger machines: bytes, operations and seconds per device, without running it.

  python -m experiments.scaling                      # docs/scaling.md; a minute, no hardware
  python -m experiments.scaling --record lower       # lowers every row's programs; minutes

What is held and what a stage takes beside it comes from `rlx.tools.preflight`, the check
that a run makes before step 0, here over meshes that do not exist. What the programs
exchange between devices is read from the programs themselves (`sharded_programs.py`),
whose findings are kept in docs/scaling.jsonl.
"""
import argparse
import collections
import dataclasses
import functools
import json
import math
import pathlib
import types

import jax
import jax.numpy as jnp

from configs.papers import prime
from experiments import bench
from experiments import sharded_programs
from rlx import build
from rlx import config_validation
from rlx import methods as methods_lib
from rlx.learner import memory
from rlx.learner import sharding
from rlx.models import size
from rlx.models import transformer
from rlx.tools import preflight

ROOT = pathlib.Path(__file__).parent.parent
RECORDED, PAGE = ROOT / "docs/scaling.jsonl", ROOT / "docs/scaling.md"
TEMPLATE = pathlib.Path(__file__).with_name("scaling_page.md")  # PAGE without its figures.

_LLAMA = dict(vocab_size=128256, n_kv_heads=8, head_dim=128, rope_theta=5e5,
              norm_eps=1e-5, tied_head=False,
              rope_scaling=("llama3", 8.0, 1.0, 4.0, 8192))
# From the models' published config.json; no weights are read.
MODELS = {
    "Qwen2.5-0.5B": bench.SHAPES["qwen2.5-0.5b"],
    "Llama-3.1-8B": transformer.DecoderConfig(
        d_model=4096, n_layers=32, n_heads=32, d_ff=14336, **_LLAMA),
    "Llama-3.1-70B": transformer.DecoderConfig(
        d_model=8192, n_layers=80, n_heads=64, d_ff=28672, **_LLAMA),
}


@dataclasses.dataclass(frozen=True)
class Chip:
  """A device with its memory and its links, in bytes and in bytes/s for each direction."""
  hbm: float
  flops: float      # bfloat16, dense
  bandwidth: float  # of hbm
  link: float       # to other devices of its domain
  domain: int       # devices that are joined so
  network: float    # per device, to devices outside


CHIPS = {
    "v5e": Chip(16e9, 1.97e14, 8.1e11, 200e9, 256, 25e9 / 8),
    "v6e": Chip(32e9, 9.2e14, 1.6e12, 448e9, 256, 100e9 / 8),
    "H100": Chip(80e9, 9.89e14, 3.35e12, 450e9, 8, 50e9),
    "H200": Chip(141e9, 9.89e14, 4.8e12, 450e9, 8, 50e9),
}

PHASES = ("prefill", "decode", "scoring", "PRM update", "policy update")

# data x fsdp x tensor. Groups are spread over data x fsdp, of which 256, the prompts of a
# step, must be a multiple.
MESHES = {
    "Qwen2.5-0.5B": ((1, 8, 1), (1, 32, 1), (1, 64, 1), (2, 128, 1), (2, 128, 2)),
    "Llama-3.1-8B": ((1, 8, 1), (1, 32, 1), (1, 64, 1), (1, 32, 2), (1, 256, 1),
                     (1, 256, 2)),
    "Llama-3.1-70B": ((1, 8, 1), (1, 8, 4), (1, 8, 8), (1, 32, 8), (1, 64, 8)),
}


def config_of(shape, c=None):
  """The published PRIME preset on a mesh, a group a device at a time in the updates.

  A minibatch of 64 groups has none for some of 256 devices: there the batch is one.
  """
  c = prime.get_config() if c is None else c
  c.mesh = dict(zip(sharding.MESH_AXES, shape))
  c.model.frozen_dtype = "bfloat16"
  groups = c.prompts.per_step // math.prod(shape[:2])  # of a device
  for part in (c.learner, c.prm):
    part.minibatches = min(part.minibatches, groups)
    part.microbatches = groups // part.minibatches
  return c


def planned(c, model, mesh):
  """What preflight reads of a `build.Run`, of a model without weights.

  Args:
    c: config; its model.path is not read.
    model: DecoderConfig, whose dtypes and kernels are as c.model says.
    mesh: may be abstract.
  Raises:
    ValueError: as `build.build`, of sizes that the mesh does not divide.
  """
  model = dataclasses.replace(
      model, dtype=c.model.dtype, param_dtype=c.model.param_dtype,
      attention=c.model.attention, remat=c.model.remat)
  model = build.on_mesh(model, mesh)
  methods = methods_lib.resolved(c)
  config_validation.check(c, methods)
  build.check_cuts(c, sharding.row_shards(mesh))
  params = jax.eval_shape(functools.partial(transformer.init, model), jax.random.key(0))
  sharding.check(params, mesh)
  models = dict(policy=(model, params), prm=(model, params))
  optimizers = {name: build.optimizer_of(c, name) for name in ("learner", "prm", "value")}

  # `device_put` knows no abstract mesh: placed on one device, then on it.
  _, on_one = build.initializers(c, methods, sharding.make_mesh(), optimizers, models, None)

  return types.SimpleNamespace(
      config=c, sizes=build.sizes_of(c), methods=methods,
      shapes=lambda: sharding.shapes(on_one(), mesh),
      sampling=types.SimpleNamespace(slots=dict.fromkeys(("train", "sampled"))),
      **build.device_stages(c, methods, dict(policy=model, prm=model), mesh, optimizers))


def passes_of(run):
  """Passes over whole batches in a step: the reference; PRM and policy where an update does not
  score them itself."""
  return 1 + sum(f.name in ("prm_logps_BT", "old_logps_BT") for f in run.planned)


# ---- work per device of one step


def work_of(run):
  """{phase: (FLOPs, bytes of memory traffic)} per device of one PRIME step.

  Every completion has all of its tokens, and one draw fills the batch. So
  packing gains nothing but shared prompts, which are left out. Traffic counts weights,
  keys and values, attention scores in float32 (written and read once), gradients and
  optimizer state; other activations and logits are left out.
  """
  c, m, mesh = run.config, run.passes.models["policy"], run.passes.mesh.shape
  shards, tensor = sharding.row_shards(run.passes.mesh), mesh["tensor"]
  x, t = c.prompts.max_tokens, c.rollouts.max_tokens
  prompts = c.prompts.per_step / shards
  rows = prompts * c.rollouts.per_prompt
  layers = lambda context: size.forward_flops_per_token(m, context, with_head=False) / tensor
  head = 2 * m.d_model * m.vocab_size / tensor
  weights = size.param_count(m) / tensor * jnp.dtype(m.dtype).itemsize
  held = size.param_count(m) / (tensor * mesh["fsdp"])

  one_pass = rows * ((x + t) * layers(_met(x + t)) + t * head)
  scores = 2 * 4 * rows * m.n_layers * m.n_heads / tensor * (x + t) * _met(x + t)
  # A gathered weight is written before it is read.
  gathered = weights * (2 if mesh["fsdp"] > 1 else 1)
  def update(name):
    """Forward, that again and backward (two products a matrix); the head alike."""
    steps = c[name].minibatches
    parts = steps * c[name].microbatches
    sums = 2 * 4 * held * (parts if c[name].microbatches > 1 else 0)
    # Parameters and two moments are read and written, the gradient is read.
    return 4 * one_pass, (parts * 3 * gathered + 4 * scores + sums + steps * 7 * 4 * held)

  passes = passes_of(run)
  kv = size.kv_bytes_per_token(m) / tensor
  # Laid out once, then read for each token, but of a table of its own only rows.
  table = 0 if m.tied_head else m.d_model * m.vocab_size * jnp.dtype(m.dtype).itemsize
  read = weights - table / tensor
  decode = [0, weights]
  for chunk in range(-(-t // c.rollouts.chunk)):
    width = x + (chunk + 1) * c.rollouts.chunk
    decode[0] += c.rollouts.chunk * rows * (layers(width) + head)
    decode[1] += c.rollouts.chunk * (read + kv * (prompts * x + rows * (width - x)))
  return {
      "prefill": (prompts * x * layers(_met(x)), gathered + prompts * x * kv),
      "decode": tuple(decode),
      "scoring": (passes * one_pass,
                  passes * (c.learner.microbatches * gathered + scores)),
      "PRM update": update("prm"), "policy update": update("learner")}


def exchanged(run, width=None):
  """{phase: {mesh axis: bytes}} that a device receives from others in a PRIME step.

  What the programs do, as XLA partitions them (checked against it, see `compared`):

  - A pass gathers the weights of a layer over `fsdp`, once a microbatch; backward once
    more, and sums its gradient in float32 over the devices. Over `tensor` the outputs
    of attention and MLP are summed, forward, when computed again, and twice backward;
    what tokens are looked up as, forward; and what the head gives the hidden states, backward.
  - The embedding is gathered once a program, the head once in scoring and three times in
    an update. A gradient of [V, D] is summed once a microbatch for the embedding, for
    the head once for every chunk of columns, which `logps.from_hidden` cuts to 1024 tokens
    a device.
  - Decoding gathers the weights over `fsdp` once, laid out, and nothing for a token. Over
    `tensor` outputs of attention and MLP are summed and the looked-up token, and logits
    are gathered until `decoding.draw`'s blocks of 128 tokens are whole.

  Args:
    width: bytes of what is computed with; None: as the dtypes say.
  """
  c, m, mesh = run.config, run.passes.models["policy"], run.passes.mesh.shape
  data, fsdp, tensor = (mesh[a] for a in sharding.MESH_AXES)
  a, of_param = (width or jnp.dtype(dtype).itemsize for dtype in (m.dtype, m.param_dtype))
  shards, (x, t) = data * fsdp, (c.prompts.max_tokens, c.rollouts.max_tokens)
  batch = c.prompts.per_step * c.rollouts.per_prompt
  rows, s = batch / shards, x + t
  gather = lambda n, of: n * (of - 1) / of       # n bytes when it is done
  reduce_ = lambda n, of: 2 * n * (of - 1) / of  # also `of` scatters and gathers
  d, v = m.d_model, m.vocab_size / tensor
  matrices = (size.param_count(m) - m.vocab_size * d * (1 if m.tied_head else 2)) / tensor

  layers, head = gather(a * matrices, fsdp), gather(a * v * d, fsdp)
  table = gather(of_param * v * d, fsdp)
  summed = lambda tokens: reduce_(a * tokens * d, tensor)
  def forward(parts, tokens):  # of all microbatches
    return {"fsdp": parts * layers + table + head, "tensor": (2 * m.n_layers + 1) * summed(tokens)}
  def update(name):
    steps = c[name].minibatches
    parts = steps * c[name].microbatches
    chunks = chunks_of(run, name)
    sums = lambda of: parts * (reduce_(4 * matrices, of) + chunks * reduce_(4 * v * d, of))
    # The embedding's gradient is summed over data and fsdp as one group.
    return {"data": sums(data) / fsdp,
            "fsdp": 2 * parts * layers + steps * (table + 3 * head) + sums(fsdp)
                    + parts * reduce_(4 * v * d, shards),
            "tensor": (8 * m.n_layers + 1) * summed(rows * s) + summed(rows * t)}

  passes = passes_of(run)
  scoring = forward(c.learner.microbatches, rows * s)
  prompts = forward(1, rows / c.rollouts.per_prompt * x)
  prompts["fsdp"] -= head  # No logits.
  whole = math.gcd(-(-m.vocab_size // 128), tensor)
  logits = 4 * rows * m.vocab_size * (1 / whole - 1 / tensor)
  decode = {"fsdp": gather(a * size.param_count(m) / tensor, fsdp),
            "tensor": t * ((2 * m.n_layers + 1) * summed(rows) + logits)}
  return {"prefill": prompts, "decode": decode,
          "scoring": {axis: passes * n for axis, n in scoring.items()},
          "PRM update": update("prm"), "policy update": update("learner")}


def chunks_of(run, name):
  """Returns in how many chunks of columns the head of an update reads a microbatch."""
  c, t = run.config, run.config.rollouts.max_tokens
  b = c.prompts.per_step * c.rollouts.per_prompt // (c[name].minibatches * c[name].microbatches)
  return -(-t // min(max(1024 * sharding.row_shards(run.passes.mesh) // b, 1), t))


def _met(width):
  """Returns the mean number of columns that a query attends to in the blocks of attention.py."""
  block = 64 * -(-width // 512)
  return (width + min(block, width)) / 2


def bandwidths(chip, mesh):
  """{mesh axes: bytes/s} into a device from the others of a group along these axes.

  Devices are numbered with `tensor` innermost and fill domains in this order. A group
  within a domain has the chip's links, all of them; of one that spans domains each
  device's part arrives once through the networks of those that share a domain.
  """
  bandwidth, inner = {}, 1
  for axis in reversed(sharding.MESH_AXES):
    n = mesh[axis]
    local = max(1, min(n, chip.domain // inner))
    bandwidth[axis] = chip.link if local == n else min(chip.link, local * chip.network)
    inner *= n
  return bandwidth


# ---- time, and what it is made of


def bounds(run, chip):
  """{phase: (seconds, what takes them)}: at least so long, the slowest of three.

  FLOPs / peak, bytes / bandwidth of memory, bytes / bandwidth between devices; each at
  the figures of the data sheet, which no program reaches.
  """
  speed, bounded = bandwidths(chip, run.passes.mesh.shape), {}
  for phase, (flops, traffic) in work_of(run).items():
    sent = exchanged(run)[phase]
    seconds = {"FLOPs": flops / chip.flops, "memory": traffic / chip.bandwidth,
               "links": sum(n / speed[axis] for axis, n in sent.items())}
    slowest = max(seconds, key=seconds.get)
    bounded[phase] = seconds[slowest], slowest
  return bounded


@functools.cache
def plan(model, shape):
  """Returns (planned run, held, stages) of a row of the tables."""
  run = planned(config_of(shape), MODELS[model],
                jax.sharding.AbstractMesh(shape, sharding.MESH_AXES))
  state = run.shapes()
  return (run, preflight.held_bytes(state),
          preflight.cache_bytes(run) | preflight.estimated_bytes(run, state))


def devices(shape):
  return math.prod(shape)


def smallest(model, chip):
  """Returns the first mesh on which a model fits, or None."""
  for shape in MESHES[model]:
    _, held, stages = plan(model, shape)
    if memory.need(held, stages) <= chip.hbm: return shape


# ---- the page


REFUSED = (("Qwen2.5-0.5B", (1, 256, 1)), ("Qwen2.5-0.5B", (1, 8, 4)),
           ("Llama-3.1-70B", (1, 8, 48)))  # Meshes that do not divide a model.
TERMS = ("policy + optimizer", "PRM + optimizer", "reference", "KV cache of sampling",
         "KV cache of evaluation", "activations of scoring", "activations of the PRM update",
         "activations of the policy update")


def page(lines):
  """Returns the text of docs/scaling.md; `lines` are those of docs/scaling.jsonl."""
  return TEMPLATE.read_text().format(
      fits=_table(["model", *CHIPS], [[model, *(_first(model, chip) for chip in CHIPS.values())]
                                      for model in MODELS]),
      chips=_table(["chip", "HBM, GB", "bf16 FLOP/s", "HBM, GB/s", "links, GB/s", "domain",
                    "network, GB/s"],
                   [[name, f"{c.hbm / 1e9:.0f}", f"{c.flops:.3g}", f"{c.bandwidth / 1e9:.0f}",
                     f"{c.link / 1e9:.0f}", c.domain, f"{c.network / 1e9:.3g}"]
                    for name, c in CHIPS.items()]),
      refused="\n".join(f"- {model} on {_name(shape)}: `{_refusal(model, shape)}`"
                        for model, shape in REFUSED),
      bytes=_table(["model", "mesh", *TERMS, "need"], [
          bytes_row(model, shape) for model in MODELS for shape in MESHES[model]]),
      work=_table(["model", "mesh", *PHASES], [
          work_row(model, shape) for model in MODELS for shape in MESHES[model]]),
      seconds="\n\n".join(f"### {model}\n\n" + _table(
          ["mesh", "chip", "fits", *PHASES, "step", "mostly"],
          [seconds_row(model, shape, chip) for shape in MESHES[model] for chip in CHIPS])
                           for model in MODELS),
      tables_small=_share_of_tables("Qwen2.5-0.5B", (1, 8, 1)),
      tables=_share_of_tables("Llama-3.1-8B", (1, 8, 1)),
      **dict(zip(("low", "high"), _ratios(lines))),
      lowered=_table(["model", "mesh", "scoring, s", "PRM update, s", "policy update, s"],
                     _lowered(lines)),
      compiled=_table(["model", "mesh", "program", "compiled in, s", "XLA, GB",
                       "estimate / XLA", "received, GB", "closed form / received"],
                      [compared(line) for line in lines if "bytes" in line]))


def _share_of_tables(model, shape):
  """Returns the share of gradients of [V, D] in the bytes that the policy update receives."""
  run, *_ = plan(model, shape)
  m, c, of = run.passes.models["policy"], run.config.learner, math.prod(shape[:2])
  table = 4 * m.vocab_size * m.d_model / shape[2] * 2 * (of - 1) / of
  return (c.minibatches * c.microbatches * (chunks_of(run, "learner") + 1) * table
          / sum(exchanged(run)["policy update"].values()))


def _ratios(lines):
  """Returns the minimum and maximum of estimate / XLA over the compiled programs."""
  ratios = [float(compared(line)[5]) for line in lines if "bytes" in line]
  return min(ratios), max(ratios)


def _name(shape):
  return " x ".join(map(str, shape))


def _table(head, rows):
  return "\n".join("| " + " | ".join(map(str, row)) + " |"
                   for row in [head, ["---"] * len(head), *rows])


def _first(model, chip):
  shape = smallest(model, chip)
  if shape is None: return f"none up to {devices(MESHES[model][-1])}"
  return f"{devices(shape)} ({_name(shape)})"


def _refusal(model, shape):
  try:
    planned(config_of(shape), MODELS[model], jax.sharding.AbstractMesh(shape, sharding.MESH_AXES))
  except ValueError as e:
    return str(e)
  raise AssertionError(f"{model} divides {shape}.")


def bytes_row(model, shape):
  """Returns cells in GB: each term, and the need in the largest stage."""
  _, held, stages = plan(model, shape)
  terms = held | stages
  assert set(terms) == set(TERMS), set(terms) ^ set(TERMS)
  return [model, _name(shape), *(f"{terms[t] / 1e9:.1f}" for t in TERMS),
          f"**{memory.need(held, stages) / 1e9:.1f}**"]


def work_row(model, shape):
  """Returns cells: TFLOP / GB of memory traffic / GB received, per device and phase."""
  run, *_ = plan(model, shape)
  sent = exchanged(run)
  return [model, _name(shape), *(
      f"{flops / 1e12:.3g} / {traffic / 1e9:.3g} / {sum(sent[phase].values()) / 1e9:.3g}"
      for phase, (flops, traffic) in work_of(run).items())]


def seconds_row(model, shape, name):
  """Returns cells: whether it fits, the bound of each phase with its cause, and their sum."""
  chip, (run, held, stages) = CHIPS[name], plan(model, shape)
  bounded = bounds(run, chip)
  by = collections.Counter()
  for seconds, why in bounded.values(): by[why] += seconds
  return [_name(shape), name, "yes" if memory.need(held, stages) <= chip.hbm else "no",
          *(f"{seconds:.3g} {why}" for seconds, why in bounded.values()),
          f"{by.total():.3g}", by.most_common(1)[0][0]]


def _lowered(lines):
  rows = {}
  for line in lines:
    if "bytes" not in line:
      rows.setdefault((line["model"], tuple(line["mesh"])), {})[line["program"]] = (
          f"{line['lower_s']:.1f}")
  return [[model, _name(shape), *(cells.get(t, "") for t in TERMS[-3:])]
          for (model, shape), cells in rows.items()]


def compared(line):
  """Returns the cells of a row that compares a compiled program with the closed forms.

  XLA on CPU multiplies bfloat16 in float32 and gathers it as such, so activations
  count 4 bytes here.
  """
  run, _, stages = plan(line["model"], tuple(line["mesh"]))
  sent, c = exchanged(run, width=4), run.config
  ours = (sum(sent["scoring"].values()) / passes_of(run)
          if "scoring" in line["program"] else
          sum(sent["policy update"].values()) / c.learner.minibatches)
  received = sum(line["received"].values())
  return [line["model"], _name(line["mesh"]), line["program"].removeprefix("activations of "),
          f"{line['compile_s']:.0f}", f"{line['bytes'] / 1e9:.1f}",
          f"{stages[line['program']] / line['bytes']:.2f}", f"{received / 1e9:.3g}",
          f"{ours / received:.2f}"]


# ---- the programs themselves: lowered for any mesh, compiled for CPU devices


def programs_of(model, shape, compile_):
  """Yields lines of docs/scaling.jsonl: each program of a row, lowered or compiled for CPU devices.

  Scoring, which PRM, reference and policy share but for parameters, and the policy's
  update; that of the PRM is its like. Compiled, `bytes` is what XLA says it takes beside
  the state, `received` what its collectives bring a device, by mesh axes.
  """
  mesh = (sharding.make_mesh(**dict(zip(sharding.MESH_AXES, shape))) if compile_ else
          jax.sharding.AbstractMesh(shape, sharding.MESH_AXES))
  run = planned(config_of(shape), MODELS[model], mesh)
  state = run.shapes()
  for name, programs in preflight.traced_steps(run, state).items():
    if compile_ and "PRM" in name: continue
    traced, held = programs[0]
    line = dict(model=model, mesh=shape, program=name)
    platform = dict(lowering_platforms=None if compile_ else ("tpu",))
    lowered, line["lower_s"] = sharded_programs.timed(lambda: traced.lower(**platform))
    if compile_:
      compiled, line["compile_s"] = sharded_programs.timed(lowered.compile)
      line["bytes"] = memory.stage_bytes(compiled.memory_analysis(), memory.tree_bytes(held))
      line["received"] = sharded_programs.received(compiled.as_text(), dict(mesh.shape))
    yield line


def recorded():
  """Returns the lines of docs/scaling.jsonl."""
  if not RECORDED.exists(): return []
  return [json.loads(line) for line in RECORDED.read_text().splitlines()]


def main():
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--record", choices=("lower", "compile"), help=(
      "lower or compile the programs of --rows and add a line for each to docs/scaling.jsonl; "
      "compiling wants XLA_FLAGS=--xla_force_host_platform_device_count=N"))
  parser.add_argument("--rows", nargs="+", metavar="MODEL:DxFxT", default=[
      f"{model}:{'x'.join(map(str, shape))}" for model in MODELS for shape in MESHES[model]])
  args = parser.parse_args()
  if args.record is None:
    PAGE.write_text(page(recorded()))
    return
  for row in args.rows:
    model, _, shape = row.partition(":")
    for line in programs_of(model, tuple(map(int, shape.split("x"))), args.record == "compile"):
      with RECORDED.open("a") as out: print(json.dumps(line), file=out)


if __name__ == "__main__": main()
