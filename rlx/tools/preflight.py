"""Compiles the programs of a run and says what they need and take at least.

  rlx preflight CONFIG                # for the devices of this machine
  rlx preflight CONFIG target=v5e-8   # for others, see targets.py; json=FILE writes the figures

A run itself checks before step 0 whether it fits into memory, see build/memory.py.
"""
import contextlib
import json as json_lib
import os
import pathlib
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import jax
import rich.table
import tqdm

from rlx import build
from rlx.build import keys, load, memory as run_memory
from rlx.learner import memory, sharding
from rlx.tools import targets


def main(config: keys.Config, *, target: str | None = None, json: str | None = None) -> None:
  """Compiles all programs of a run and prints what they need and take at least.

  Prompts and parameters are not read with a target; model.path may then be a folder with
  config.json and a tokenizer only.

  Args:
    target: name of devices, see `targets.parse`; None: those of this machine.
    json: file for the figures.
  Raises:
    ValueError: the config is not valid, there is no such target or compiler, or the run does not
      fit, with the line that `rlx train` prints.
  """
  if json is not None: load.check_workdir(os.path.dirname(json) or ".", "json")
  if target is None:
    chip, run = None, build.build(config, splits=())
    limit = memory.device_bytes(run.passes.mesh)
  else:
    known = targets.parse(target)
    chip, limit = known.chip, targets.usable_bytes(known.chip)
    run = build.build(config, splits=(), recorded=dict(device_bytes=limit),
                      mesh=targets.mesh_of(known, dict(config.mesh)))
  with own_lines(): figures = report(run, chip, limit)
  if json is not None:
    pathlib.Path(json).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(json).write_text(json_lib.dumps(figures, indent=2))
  _print(figures)
  if chip is not None and chip.gpu:
    print(f"of {memory.show(chip.hbm)} per device, JAX gives a process "
          f"{targets.memory_fraction(chip):.0%}; XLA_CLIENT_MEM_FRACTION=0.9 changes that")
  if figures["refusal"]: raise ValueError(f"memory: {figures['refusal']}.")


@contextlib.contextmanager
def own_lines() -> Iterator[None]:
  """Within it, no program is read from disk that names lines of an earlier version of the code."""
  name = "jax_compilation_cache_include_metadata_in_key"
  before = getattr(jax.config, name)
  jax.config.update(name, True)
  try:
    yield
  finally:
    jax.config.update(name, before)


def report(run: build.Run, chip: targets.Chip | None, limit: int | None) -> dict[str, Any]:
  """The figures of `main` as a dict that JSON can express; bytes and FLOPs are per device.

  Args:
    chip: None: the devices' figures are not known, and there are no seconds.
    limit: bytes of a device; None: unknown.
  """
  state, mesh = run.shapes(), dict(run.passes.mesh.shape)
  traced = list(run_memory.trace_programs(run, state))
  done = [run_memory.compile_program(program, mesh) for program in tqdm.tqdm(
      traced, "compiling", leave=False, disable=not sys.stderr.isatty())]
  held, stages = run_memory.count_state_bytes(state), run_memory.max_by_term(done)
  return dict(platform=sharding.platform(run.passes.mesh), mesh=mesh, limit=limit, held=held,
              stages=stages, need=memory.need(held, stages),
              refusal=run_memory.refusal(run, held, stages, limit),
              programs=[_figures(x, chip, mesh) for x in done])


def _figures(x, chip, mesh):
  seconds = {} if chip is None or not x.fits else targets.seconds(chip, mesh, x.work)
  return dict(
      name=x.name, term=x.term, need=x.need, fits=x.fits, bytes=x.parts, flops=x.work.flops,
      traffic=x.work.traffic, received=dict(x.work.received), seconds=seconds,
      bound=max(seconds, key=seconds.get, default=None),  # type: ignore[arg-type]
      largest=[[source, kind, n] for (source, kind), n in x.work.by_source.most_common(3)],
      compile_s=round(x.compile_s, 2))


def _print(figures):
  print(memory.table(figures["held"], figures["stages"], figures["limit"], "compiled"))
  columns = ("program, per device", "needs", "TFLOP", "traffic", "received", "seconds at least",
             "compiled in")
  table = rich.table.Table(*columns, box=rich.box.SIMPLE_HEAD)
  for x in figures["programs"]:
    received = ", ".join(f"{axes} {memory.show(n)}" for axes, n in x["received"].items())
    bound = f"{x['seconds'][x['bound']]:.3g} by {x['bound']}" if x["seconds"] else ""
    table.add_row(x["name"], memory.show(x["need"]), *(
        (f"{x['flops'] / 1e12:.3g}", memory.show(x["traffic"]), received, bound) if x["fits"] else
        ("refused by", "the compiler", "", "")), f"{x['compile_s']:.1f} s")
    for source, kind, n in x["largest"]:
      table.add_row(f"  {source}", "", "", memory.show(n), kind, style="dim")
  rich.console.Console(width=max(120, shutil.get_terminal_size().columns)).print(table)
