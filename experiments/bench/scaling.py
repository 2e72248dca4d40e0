"""What PRIME needs and takes at least on larger machines, from programs compiled for them.

  python -m experiments.bench.scaling       # docs/scaling.md from docs/scaling.jsonl
  python -m experiments.bench.scaling --record                 # compiles all rows; half an hour
  python -m experiments.bench.scaling --record --rows Llama-3.1-8B:v6e-16:1x4x4
  python -m experiments.bench.scaling --token --rows Llama-3.1-8B:v5e-8:1x1x8   # a decoded token

No weights are read and nothing is run: XLA's compilers for the chips need none of them, see
`rlx/tools/targets.py`. A row is compiled as `rlx preflight CONFIG target=NAME` does.
"""
import argparse
import dataclasses
import functools
import json
import math
import pathlib
import types

import jax

from configs.papers import prime
from rlx.grids import tables
from experiments.bench import bench
from rlx.build import (
    memory as run_memory, methods as build_methods, models as build_models, run as run_lib,
    state as build_state, updates, validation)
from rlx.learner import memory, sharding
from rlx.models import size, transformer
from rlx.stages import sampling as sampling_lib
from rlx.tools import preflight, targets

ROOT = pathlib.Path(__file__).parents[2]
RECORDED, PAGE = ROOT / "docs/scaling.jsonl", ROOT / "docs/scaling.md"
TEMPLATE = pathlib.Path(__file__).with_name("scaling_page.md")  # PAGE without its figures.
IN_FLIGHT = 128  # completions that are decoded at once on all devices
FREE = 0.05      # share of the memory that must be left for a row to fit

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
OFFLOADED = ("Llama-3.1-70B",)  # with `offload_optimizers`
# (model, target, data x fsdp x tensor). 256, the prompts of a step, is a multiple of data x fsdp.
ROWS = (
    ("Qwen2.5-0.5B", "v5e-8", (1, 8, 1)), ("Qwen2.5-0.5B", "v6e-8", (1, 8, 1)),
    ("Qwen2.5-0.5B", "h100-8", (1, 8, 1)), ("Qwen2.5-0.5B", "h200-8", (1, 8, 1)),
    ("Llama-3.1-8B", "v5e-32", (1, 4, 8)), ("Llama-3.1-8B", "v5e-64", (1, 8, 8)),
    ("Llama-3.1-8B", "v6e-16", (1, 4, 4)), ("Llama-3.1-8B", "v6e-32", (1, 8, 4)),
    ("Llama-3.1-8B", "h100-8", (1, 8, 1)), ("Llama-3.1-8B", "h200-8", (1, 8, 1)),
    ("Llama-3.1-70B", "v5e-256", (1, 8, 32)), ("Llama-3.1-70B", "v6e-128", (1, 16, 8)),
    ("Llama-3.1-70B", "h100-64", (1, 8, 8)), ("Llama-3.1-70B", "h200-32", (1, 8, 4)),
)


def config_of(shape, platform="cpu", offload=False):
  """The published PRIME preset on a mesh, a group a device at a time in the updates.

  The flash attention of the platform is used, and IN_FLIGHT completions are decoded at once, or a
  group on each device. A minibatch of 64 groups has none for some of 256 devices: there the batch
  is one minibatch.

  Args:
    offload: whether idle optimizer states are in the host's memory.
  """
  c = prime.get_config()
  c.offload_optimizers = offload
  c.mesh = dict(zip(sharding.MESH_AXES, shape))
  c.model.frozen_dtype = "bfloat16"
  c.model.attention = dict(tpu="splash", gpu="cudnn").get(platform, "blocks")
  c.rollouts.slots = max(IN_FLIGHT, c.rollouts.per_prompt * math.prod(shape[:2]))
  groups = c.prompts.per_step // math.prod(shape[:2])  # of a device
  for part in (c.learner, c.prm):
    part.minibatches = min(part.minibatches, groups)
    part.microbatches = groups // part.minibatches
  return c


def planned(c, model, mesh):
  """What preflight reads of a `build.Run`, of a model without weights or a tokenizer.

  Args:
    c: config; its model.path is not read.
    model: DecoderConfig, whose dtypes and kernels are as c.model says.
    mesh: of devices that need not exist; may be abstract.
  Raises:
    ValueError: as `build.build`, of sizes that the mesh does not divide.
  """
  model = dataclasses.replace(
      model, dtype=c.model.dtype, param_dtype=c.model.param_dtype,
      attention=c.model.attention, remat=c.model.remat,
      matmul_precision=c.model.matmul_precision)
  model = build_models.adapt_to_mesh(model, mesh)
  methods = build_methods.resolve_methods(c)
  validation.check(c, methods)
  run_lib.check_cuts(c, sharding.row_shards(mesh))
  params = jax.eval_shape(functools.partial(transformer.init, model), jax.random.key(0))
  sharding.check(params, mesh)
  models = dict.fromkeys(("policy", "prm", "value"), (model, params))
  optimizers = {name: updates.optimizer_of(c, name) for name in ("learner", "prm", "value")}

  sizes = run_lib.sizes_of(c)

  # `device_put` knows no abstract mesh: placed on one device, then on it.
  on_one = build_state.initial_state_of(
      c, methods, sharding.make_mesh(), optimizers, models, None, sizes)

  texts = types.SimpleNamespace(
      stops=(), stop_ids=(), prompt_tokens=sizes.prompt_tokens,
      completion_tokens=sizes.completion_tokens,
      tokenizer=types.SimpleNamespace(eos_ids=(0,), pad_id=0, decode=None))
  stages = updates.device_stages(c, methods, dict.fromkeys(models, model), mesh, optimizers)
  return types.SimpleNamespace(
      config=c, sizes=sizes, methods=methods, judges=None, collect=None,
      updates=dict(prm=stages["update_prm"], value=stages["update_value"],
                   learner=stages["update_policy"]),
      shapes=lambda: on_one.place_idle(sharding.shapes(on_one.shapes(), mesh)),
      sampling=sampling_lib.make_sampling(run_lib.sampling_options(c, sizes), texts, model, mesh),
      **stages)


def record(model, target, shape):
  """A line of docs/scaling.jsonl: the figures of a row, from its compiled programs."""
  known = targets.parse(target)
  mesh = targets.mesh_of(known, dict(zip(sharding.MESH_AXES, shape)))
  run = planned(config_of(shape, known.chip.platform, model in OFFLOADED), MODELS[model], mesh)
  figures = preflight.report(run, known.chip, targets.usable_bytes(known.chip))
  return dict(model=model, target=target, mesh=shape, needed_flops=needed_flops(run),
              **{k: x for k, x in figures.items() if k not in ("mesh", "refusal")})


def needed_flops(run):
  """FLOPs of a device in a program, {"scoring", "update"}, without what is computed twice.

  A causal pass over rows of full length, and in an update twice as much for the gradient; of
  attention, the half that the mask keeps.
  """
  c, m, mesh = run.config, run.passes.models["policy"], run.passes.mesh
  x, t = c.prompts.max_tokens, c.rollouts.max_tokens
  rows = c.prompts.per_step * c.rollouts.per_prompt / sharding.row_shards(mesh)
  layers = size.forward_flops_per_token(m, (x + t) / 2, with_head=False)
  one_pass = rows * ((x + t) * layers + t * 2 * m.d_model * m.vocab_size) / mesh.shape["tensor"]
  return dict(scoring=one_pass, update=3 * one_pass / c.learner.minibatches)


def token(model, target, shape):
  """Traffic of a decoded token over that of weights and live cache, on one device.

  64 rows a device, four of which share a prompt of 1024 tokens, with 896 tokens of their own on
  average in a chunk of 256; live positions of a prompt count once.
  """
  known = targets.parse(target)
  mesh = targets.mesh_of(known, dict(zip(sharding.MESH_AXES, shape)))
  c, shards = config_of(shape, known.chip.platform), sharding.row_shards(mesh)
  c.prompts.max_tokens, c.rollouts.max_tokens, c.rollouts.chunk = 1024, 2048, 256
  c.prompts.per_step = c.eval.batch = 16 * shards
  c.rollouts.slots = 64 * shards
  for part in (c.learner, c.prm): part.minibatches, part.microbatches = 1, 16
  run = planned(c, MODELS[model], mesh)
  chunk, *_ = run.sampling.trace("train", run.shapes().policy, columns=768)["decode chunk"]
  done = run_memory.compile_program(run_memory.Program("", "decode chunk", chunk, (), longest=256),
                                    dict(mesh.shape))
  m = run.passes.models["policy"]
  table = 0 if m.tied_head else m.vocab_size * m.d_model  # Only rows of it are read.
  weights = 2 * (size.param_count(m) - table) / mesh.shape["tensor"]
  live = (16 * 1024 + 64 * 896) * size.kv_bytes_per_token(m) / mesh.shape["tensor"]
  return done.work.traffic / 256, weights, live


def recorded():
  """Returns the lines of docs/scaling.jsonl."""
  if not RECORDED.exists(): return []
  return [json.loads(line) for line in RECORDED.read_text().splitlines()]


# ---- the page


TERMS = ("policy + optimizer", "PRM + optimizer", "reference", "KV cache of sampling",
         "KV cache of evaluation", "activations of scoring", "activations of the PRM update",
         "activations of the policy update")
PROGRAMS = ("prefill", "decode chunk", "scoring, reference", "PRM update", "policy update")


def page(lines):
  """Returns the text of docs/scaling.md; `lines` are those of docs/scaling.jsonl."""
  of, table = ("model", "target"), tables.markdown
  return TEMPLATE.read_text().format(
      chips=table(("chip", "memory, GB", "bf16 FLOP/s", "memory, GB/s", "links, GB/s", "domain",
                   "network, GB/s"),
                  [[name, f"{c.hbm / 1e9:.1f}", f"{c.flops:.3g}", f"{c.bandwidth / 1e9:.0f}",
                    f"{c.link / 1e9:.0f}", c.domain, f"{c.network / 1e9:.3g}"]
                   for name, c in targets.CHIPS.items()]),
      bytes=table((*of, "mesh", *TERMS, "need", "memory", "fits"), map(bytes_row, lines)),
      seconds=table((*of, "program", "TFLOP", "traffic, GB", "received, GB", "seconds at least",
                     "by", "compiled in, s"), [row for line in lines for row in work_rows(line)]),
      ratios=table((*of, "scoring", "policy update"), map(ratio_row, lines)),
      estimates=table((*of, "sampling", "evaluation", "scoring", "PRM update", "policy update"),
                      map(estimate_row, lines)))


def _name(shape):
  return " x ".join(map(str, shape))


def fits(line):
  """Whether a row fits with FREE of the memory left, by the bytes of its compiled programs."""
  return line["need"] <= (1 - FREE) * line["limit"]


def bytes_row(line):
  """Returns cells in GB: each term, the need in the largest stage, and the chip's memory."""
  terms = line["held"] | line["stages"]
  return [line["model"], line["target"], _name(line["mesh"]),
          *(f"{terms[t] / 1e9:.1f}" for t in TERMS), f"**{line['need'] / 1e9:.1f}**",
          f"{line['limit'] / 1e9:.1f}", "yes" if fits(line) else "no"]


def _programs(line):
  return [x for name in PROGRAMS for x in line["programs"] if x["name"] == name and x["fits"]]


def work_rows(line):
  """Yields cells of each program: its work on a device, and the seconds that it takes at least."""
  for x in _programs(line):
    yield [line["model"], line["target"], x["name"], f"{x['flops'] / 1e12:.3g}",
           f"{x['traffic'] / 1e9:.3g}", f"{sum(x['received'].values()) / 1e9:.3g}",
           f"{x['seconds'][x['bound']]:.3g}", x["bound"], f"{x['compile_s']:.0f}"]


def ratio(line, name):
  """Seconds by memory traffic over seconds by needed FLOPs, of scoring or of an update."""
  x = next(x for x in line["programs"] if x["name"] == name)
  needed = line["needed_flops"]["scoring" if name.startswith("scoring") else "update"]
  chip = targets.parse(line["target"]).chip
  return x["seconds"]["memory"] / (needed / chip.flops)


def ratio_row(line):
  return [line["model"], line["target"], f"{ratio(line, 'scoring, reference'):.2f}",
          f"{ratio(line, 'policy update'):.2f}"]


def estimate_row(line):
  """Returns cells: the estimate of `rlx train` over the bytes of the compiled programs."""
  return [line["model"], line["target"], *(
      f"{estimate_ratio(line, term):.2f}" for term in TERMS[3:])]


def estimate_ratio(line, term):
  """Of one stage; both with what the state holds, which is exact."""
  held = sum(line["held"].values())
  estimated = _estimated(line["model"], line["target"], tuple(line["mesh"]))
  return (held + estimated[term]) / (held + line["stages"][term])


@functools.cache
def _estimated(model, target, shape):
  c = config_of(shape, targets.parse(target).chip.platform, model in OFFLOADED)
  run = planned(c, MODELS[model], jax.sharding.AbstractMesh(shape, sharding.MESH_AXES))
  return run_memory.cache_bytes(run) | run_memory.estimate_bytes(run, run.shapes())


def main():
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--record", action="store_true",
                      help="compile --rows and replace their lines of docs/scaling.jsonl")
  parser.add_argument("--rows", nargs="+", metavar="MODEL:TARGET:DxFxT", default=[
      f"{model}:{target}:{'x'.join(map(str, shape))}" for model, target, shape in ROWS])
  parser.add_argument("--token", action="store_true", help="print the traffic of a decoded token")
  args = parser.parse_args()
  for row in args.rows if args.record or args.token else ():
    model, target, shape = row.split(":")
    shape = tuple(map(int, shape.split("x")))
    if args.token:
      traffic, weights, live = token(model, target, shape)
      print(f"{row}: {traffic / 1e9:.2f} GB, weights {weights / 1e9:.2f}, live cache "
            f"{live / 1e9:.2f}, ratio {traffic / (weights + live):.2f}", flush=True)
      continue
    line = record(model, target, shape)
    key = lambda x: (x["model"], x["target"], tuple(x["mesh"]))
    lines = {key(x): x for x in recorded()} | {key(line): line}
    order = {row: i for i, row in enumerate(ROWS)}
    RECORDED.write_text("".join(json.dumps(x) + "\n" for x in sorted(
        lines.values(), key=lambda x: order.get(key(x), len(order)))))
    print(row, f"need {memory.show(line['need'])} of {memory.show(line['limit'])}",
          "fits" if fits(line) else "does not fit", flush=True)
  if not args.token: PAGE.write_text(page(recorded()))


if __name__ == "__main__": main()
