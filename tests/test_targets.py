"""Devices by name, and the programs that XLA's compilers make for them.

The compilers are extras: .[targets-tpu], .[targets-gpu]. Where one is missing, its tests are
skipped.
"""
import dataclasses
import functools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import pytest

from experiments.bench import scaling
from rlx import cli
from rlx.build import memory as run_memory
from rlx.learner import memory, programs
from rlx.models import decode, transformer
from rlx.rollouts import decoding
from rlx.tools import preflight, targets
from tests import program_text


@pytest.mark.parametrize("name, devices", [
    ("v4-8", 4), ("v5e-1", 1), ("v5e-8", 8), ("V5P-128", 64), ("v6e-256", 256), ("h100-8", 8),
    ("B200-3", 3)])
def test_names(name, devices):
  target = targets.parse(name)
  assert target.devices == devices and target.name == name.lower()


@pytest.mark.parametrize("name", ["v5e", "v5e-3", "v4-2", "v7-8", "h100-0", "h100-x"])
def test_unknown_names_are_refused_with_those_that_exist(name):
  with pytest.raises(ValueError, match=f"^target='{name}': KIND-N, such as v4-8, .*b200-64; any N"):
    targets.parse(name)


def test_a_compiler_that_is_missing_is_one_line(monkeypatch):
  monkeypatch.setattr(targets, "_is_installed", lambda package: False)
  with pytest.raises(ValueError, match=r"^target='h100-8': its compiler is not installed; pip "
                     r"install 'rlx\[targets-gpu\]'[.]$"):
    targets.mesh_of(targets.parse("h100-8"), dict(data=1, fsdp=8, tensor=1))


@pytest.mark.parametrize("installed", targets.GPU_COMPILERS)
def test_the_compiler_of_either_cuda_is_enough(monkeypatch, installed):
  monkeypatch.setattr(targets, "_is_installed", lambda package: package == installed)
  monkeypatch.setattr(targets.topologies, "get_topology_desc",
                      lambda **_: types.SimpleNamespace(devices=["a device"]))
  assert targets.devices(targets.parse("h100-1")) == ["a device"]


def test_bandwidth_of_a_group_is_that_of_its_narrowest_way():
  h100 = targets.CHIPS["h100"]  # 8 share links of 450, each has 50 to the others.
  find_bandwidths = lambda **sizes: targets.bandwidths(h100, dict(data=1, fsdp=1, tensor=1) | sizes)
  assert find_bandwidths(fsdp=8) == dict(data=450e9, fsdp=450e9, tensor=450e9)
  assert find_bandwidths(fsdp=32)["fsdp"] == 8 * 50e9             # Eight bring it to each node.
  assert find_bandwidths(fsdp=8, tensor=8) == dict(data=450e9, fsdp=50e9, tensor=450e9)
  assert find_bandwidths(data=2, fsdp=8)["data"] == 50e9


def test_seconds_are_those_of_each_resource():
  work = programs.Work(flops=9.89e14, traffic=3.35e12 / 2)
  work.received["fsdp"] = 450e9 / 4
  assert targets.seconds(targets.CHIPS["h100"], dict(data=1, fsdp=8, tensor=1), work) == {
      "FLOPs": 1, "memory": 0.5, "links": 0.25}


@pytest.mark.parametrize("variables, share", [
    ({}, 0.75), (dict(XLA_PYTHON_CLIENT_MEM_FRACTION="0.9"), 0.9),
    (dict(XLA_CLIENT_MEM_FRACTION=".5", XLA_PYTHON_CLIENT_MEM_FRACTION=""), 0.5)])
def test_a_run_may_use_what_jax_gives_a_process(monkeypatch, capsys, variables, share):
  for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
    monkeypatch.delenv(name, raising=False)
  for name, value in variables.items(): monkeypatch.setenv(name, value)
  h100, v5e = (targets.CHIPS[name] for name in ("h100", "v5e"))
  assert targets.usable_bytes(h100) == int(84942979072 * share)
  assert targets.usable_bytes(v5e) == 15.75 * 2**30

  seen = {}
  monkeypatch.setattr(preflight.build, "build", lambda config, **more: seen.update(more))
  monkeypatch.setattr(targets, "mesh_of", lambda *_: None)
  monkeypatch.setattr(preflight, "report", lambda *args: dict(refusal=None, limit=args[2]))
  monkeypatch.setattr(preflight, "_print", lambda figures: seen.update(figures))
  preflight.main(scaling.config_of((1, 1, 1)), target="h100-1")
  assert seen["limit"] == seen["recorded"]["device_bytes"] == targets.usable_bytes(h100)
  assert f"of 84.9 GB per device, JAX gives a process {share:.0%}; " in capsys.readouterr().out


ROOT = pathlib.Path(__file__).parent.parent
LAYERS, V = 2, 32768
MESH = dict(data=1, fsdp=2, tensor=2)


@functools.cache
def compiled(name, attention):
  """{program: preflight.Compiled} of two layers of Qwen2.5-0.5B with a vocabulary of 32k."""
  target = targets.parse(name)
  mesh = targets.mesh_of(target, MESH)
  c = scaling.config_of(tuple(MESH.values()), target.chip.platform)
  c.model.attention = attention
  c.prompts.max_tokens, c.rollouts.max_tokens, c.rollouts.chunk = 384, 128, 64
  c.prompts.per_step = c.eval.batch = c.rollouts.slots = 8
  for part in (c.learner, c.prm): part.minibatches, part.microbatches = 1, 2
  model = dataclasses.replace(scaling.MODELS["Qwen2.5-0.5B"], n_layers=LAYERS, vocab_size=V)
  run = scaling.planned(c, model, mesh)
  wanted = ("prefill", "decode chunk", "scoring, reference", "policy update")
  return run, {p.name: run_memory.compile_program(p, MESH)
               for p in run_memory.trace_programs(run, run.shapes()) if p.name in wanted}


def needs(package):
  return pytest.mark.skipif(not targets._is_installed(package), reason=f"{package} is missing")


def needs_gpu_compiler():
  return pytest.mark.skipif(not any(map(targets._is_installed, targets.GPU_COMPILERS)),
                            reason=f"none of {targets.GPU_COMPILERS}")


PLATFORMS = [pytest.param("v5e-4", "splash", marks=needs("libtpu")),
             pytest.param("h100-4", "cudnn", marks=[needs_gpu_compiler(), needs("nvidia.cudnn")]),
             # Without the libraries of cuDNN.
             pytest.param("h100-4", "blocks", marks=needs_gpu_compiler())]


@pytest.mark.parametrize("name, attention", PLATFORMS)
def test_a_decoder_compiles_for_devices_that_are_not_here(name, attention):
  run, done = compiled(name, attention)
  state = run.shapes()
  update = done["policy update"]

  kernels = dict(splash="splash_mha", cudnn="__cudnn$fmha")
  for x in (done["prefill"], done["scoring, reference"], update) if attention in kernels else ():
    assert kernels[attention] in x.text
  if attention in kernels: assert "fmhaScaleBias" not in update.text  # No mask in memory.

  # Parameters and optimizer state are written in their place.
  assert update.parts["aliased"] >= memory.tree_bytes((state.policy, state.policy_opt))

  # Over data and fsdp go weights, their gradients and small sums (of biases, of metrics), but no
  # activations, of which a device has a million.
  sizes = {math.prod(sharding_shape) for x in jax.tree.leaves(state.policy)
           for sharding_shape in (x.shape, x.shape[1:])}
  for program in done.values():
    for kind, axes, shape in program_text.collectives(program.text, MESH):
      if set(axes.split("+")) & {"data", "fsdp"}:
        n = math.prod(shape)
        parts = {n * m for m in (1, 2, 4)}  # Of tensor, of fsdp, of both.
        assert n <= 4096 or parts & sizes, (program.name, kind, axes, shape)

  chunk = done["decode chunk"]
  assert not any("fsdp" in axes for axes in chunk.work.received), chunk.work.received
  assert not program_text.host_operations(chunk.text)

  # What programs need, and their operations: two passes of layers, a fourth for recomputation.
  assert all(x.fits and 0 < x.need < 10e9 for x in done.values())
  needed = scaling.needed_flops(run)
  assert 0.9 < done["scoring, reference"].work.flops / needed["scoring"] < 1.5
  assert 1.0 < update.work.flops / needed["update"] < 1.8


def decode_step(layers, **options):
  """The text of a decode step compiled for a GPU: 256 rows of 32 prompts, as in Qwen2.5-0.5B."""
  mesh = targets.mesh_of(targets.parse("h200-1"), dict(data=1, fsdp=1, tensor=1))
  config = transformer.DecoderConfig(
      vocab_size=4096, d_model=896, n_layers=layers, n_heads=14, n_kv_heads=2, head_dim=64,
      d_ff=4864, qkv_bias=True, dtype="bfloat16", platform="gpu", **options)
  array = jax.ShapeDtypeStruct
  ints_W, bools_WT = array((256,), "int32"), array((256, 512), "bool")
  params = jax.eval_shape(functools.partial(transformer.init, config), jax.random.key(0))
  arguments = jax.eval_shape(lambda params: (
      decode.lay_out(params, config),
      decode.prompts(params, config, jnp.zeros((32, 256), int), jnp.zeros(32, int)),
      decode.empty_suffix(config, 256, 512)), params)
  sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
  placed = jax.tree.map(lambda x: array(x.shape, x.dtype, sharding=sharding),
                        (arguments, ints_W, bools_WT, array((), "int32")))
  return jax.jit(lambda held, ints_W, live_WT, column: decode.step(
      held[0], config, ints_W, ints_W, *held[1:], live_WT, column), donate_argnums=0).lower(
          *placed).compile().as_text()


def compile_apart(layers, decoding, flags=""):
  """`decode_step` of a new process, in which XLA reads its flags and JAX has no backend yet."""
  return subprocess.run(
      [sys.executable, "-c",
       "from tests import test_targets; "
       f"print(test_targets.decode_step({layers}, decoding={decoding!r}))"],
      cwd=ROOT, env=dict(os.environ, XLA_FLAGS=flags), check=True, capture_output=True,
      text=True).stdout


@needs_gpu_compiler()
@pytest.mark.parametrize("decoding, most", [("fused", 11), ("parts", 22)])
def test_a_layer_of_a_decode_step_on_gpus_has_few_kernels(decoding, most):
  def count(text):
    computations, entry = programs._parse(text)
    ops = [op for op in computations[entry] if op.kind not in programs._FREE]
    assert not any(op.kind.startswith("copy") for op in ops)  # Of the cache.
    return len(ops), programs.work(text, dict(data=1, fsdp=1, tensor=1)).flops
  texts = [compile_apart(n, decoding) for n in (1, 2)]
  (one, flops), (two, flops_2) = map(count, texts)
  assert two - one <= most
  # The rows of queries, keys and values follow each other, as the kernel reads them.
  is_by_rows = re.search(r"gemm_fusion\S+ = f32\[(\d,)?256,1152\]", texts[0]) is not None
  assert is_by_rows == (decoding == "fused")
  d, f, qkv, out, columns = 896, 4864, 18 * 64, 14 * 64, 768
  assert flops_2 - flops == 2 * 256 * (d * (qkv + out + 3 * f) + 2 * out * columns)


@needs_gpu_compiler()
@pytest.mark.parametrize("decoding", ["fused", "parts"])
@pytest.mark.parametrize("flag", [
    "--xla_gpu_deterministic_ops=true", "--xla_gpu_exclude_nondeterministic_ops"])
def test_a_decode_step_compiles_with_deterministic_operations(flag, decoding):
  text = compile_apart(1, decoding, flag)
  assert "__cublas$lt$matmul" in text and "gemm_fusion" not in text
  assert ("__gpu$xla.gpu.triton" in text) == (decoding == "fused")


@needs_gpu_compiler()
@pytest.mark.parametrize("options", [
    dict(), dict(temperature=.7), dict(top_k=50), dict(top_p=.9), dict(top_k=50, top_p=.9),
    dict(min_p=.1), dict(temperature=0.0)], ids=str)
def test_a_token_is_drawn_in_two_passes_over_the_logits(options):
  """Not counted: single blocks of the vocabulary, and the branch of top_p that sorts."""
  mesh, b, v = targets.mesh_of(targets.parse("h200-1"), dict(data=1, fsdp=1, tensor=1)), 256, 151936
  array = lambda *shape: jax.ShapeDtypeStruct(
      shape, "float32", sharding=jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))
  text = jax.jit(lambda head_VD, x_DW, uniform_W: decoding.next_token(
      (head_VD @ x_DW).T, uniform_W, **dict(temperature=1.0) | options)).lower(
          array(v, 8), array(8, b), array(b)).compile().as_text()
  program = programs._Program(text, dict(mesh.shape), None)
  passes = [program._traffic(program.entry, op) / (4 * b * v)
            for op in program.computations[program.entry] if op.kind != "conditional"]
  # The first one writes them; with top_k the other finds the blocks of the most likely tokens.
  most = 2 if "top_k" in options else 3
  assert sum(map(round, passes)) == most and sum(passes) < most + 0.9, passes


@needs("libtpu")
def test_what_does_not_fit_is_told_by_the_compiler():
  """The TPU's compiler refuses it, which is a figure of its own."""
  mesh = targets.mesh_of(targets.parse("v5e-1"), dict(data=1, fsdp=1, tensor=1))
  big = jax.ShapeDtypeStruct((30, 2**28), "float32", sharding=jax.sharding.NamedSharding(
      mesh, jax.sharding.PartitionSpec()))
  program = run_memory.Program("term", "large", jax.jit(lambda x: (x + 1, x * 2)).trace(big), ())
  done = run_memory.compile_program(program, dict(mesh.shape))
  assert not done.fits and done.need > 60e9


@needs("libtpu")
def test_the_command_compiles_a_config_for_a_target(tmp_path, capsys):
  """On the command line, with a model of which only the config and the tokenizer are there."""
  model = tmp_path / "model"
  shutil.copytree(ROOT / "configs/models/chain", model, ignore=shutil.ignore_patterns("*params*"))
  call, _ = cli.parse("preflight", "quickstart:smoke", "--target", "v5e-4", "mesh.fsdp=4",
                      f"model.path={model}", f"json={tmp_path}/figures.json")
  call()
  figures = json.loads((tmp_path / "figures.json").read_text())
  assert figures["limit"] == int(15.75 * 2**30) and figures["mesh"]["fsdp"] == 4
  update = figures["programs"][-1]
  assert update["seconds"]["FLOPs"] > 0 and update["bound"] in update["seconds"]
  assert "seconds at least" in capsys.readouterr().out


@needs("libtpu")
def test_axes_must_take_all_devices():
  with pytest.raises(ValueError, match="mesh.fsdp=2 x .*'v5e-8' has 8 devices; mesh.data=-1"):
    targets.mesh_of(targets.parse("v5e-8"), dict(data=1, fsdp=2, tensor=1))
