"""Work that is read from the text of compiled programs, against counts by hand."""

import collections
import logging
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.learner import programs, sharding
from rlx.loops import rl
from rlx.models import transformer
from rlx.tools import preflight
from tests import program_text, tiny

ONE = dict(data=1, fsdp=1, tensor=1)


def text_of(fn, *shapes):
  return jax.jit(fn).lower(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes)).compile(
      ).as_text()


def layers(x_BD, w_LDD):
  return jax.lax.scan(lambda x_BD, w_DD: (jnp.tanh(x_BD @ w_DD), None), x_BD, w_LDD)[0]


def test_loops_count_as_often_as_they_run():
  work = programs.work(text_of(layers, (8, 32), (5, 32, 32)), ONE)
  assert work.flops == 5 * 2 * 8 * 32 * 32
  # Each round reads its own layer, not all of them, and reads and writes x a few times.
  weights, x = 5 * 32 * 32 * 4, 8 * 32 * 4
  assert weights <= work.traffic <= 2 * weights + 5 * 10 * x


def test_of_two_branches_the_larger_counts():
  branch = lambda p, x_BD, w_DD: jax.lax.cond(p[0] > 0, lambda: x_BD @ w_DD, lambda: x_BD)
  assert programs.work(text_of(branch, (1,), (8, 32), (32, 32)), ONE).flops == 2 * 8 * 32 * 32


def test_a_loop_that_ends_by_data_needs_a_count():
  def search(x_BD, w_DD):
    return jax.lax.while_loop(lambda x: jnp.sum(x) < 9, lambda x: x @ w_DD, x_BD)
  text = text_of(search, (8, 32), (32, 32))
  with pytest.raises(ValueError, match="a loop without a count"): programs.work(text, ONE)
  assert programs.work(text, ONE, longest=7).flops == 7 * 2 * 8 * 32 * 32


@preflight.own_lines()
def test_the_largest_operations_have_their_source_lines():
  config = transformer.DecoderConfig(
      vocab_size=32, d_model=16, n_layers=2, n_heads=2, n_kv_heads=1, head_dim=8, d_ff=512)
  params = jax.eval_shape(lambda: transformer.init(config, jax.random.key(0)))
  tokens_BS = jax.ShapeDtypeStruct((2, 8), jnp.int32)
  text = jax.jit(lambda p, x: transformer.hidden(p, config, x, x, x >= 0)).lower(
      params, tokens_BS).compile().as_text()
  largest = programs.work(text, ONE).by_source.most_common(4)
  with open(transformer.__file__) as f: lines = f.readlines()
  named = [source.split(":") for (source, _), _ in largest]
  assert all(file == "rlx/models/transformer.py" for file, _ in named)
  assert any("_UF" in lines[int(line) - 1] for _, line in named)
  checkout = transformer.__file__.removesuffix("/rlx/models/transformer.py")
  elsewhere = programs.work(text.replace(checkout, "/home/rlx"), ONE)  # A clone is named rlx.
  assert elsewhere.by_source == programs.work(text, ONE).by_source and checkout in text


def test_received_is_counted_per_group_and_loop():
  """A weight of 4 kB gathered over 4 in each of 5 rounds, a sum of 1 kB over 2."""
  mesh = sharding.make_mesh(fsdp=4, tensor=2)
  named = lambda *axes: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
  @jax.jit
  def step(w_LDF, x_BF):
    def one(x_BF, w_DF):
      w_DF = jax.lax.with_sharding_constraint(w_DF, named())
      return jnp.tanh(x_BF @ w_DF.T), None
    return jax.lax.scan(one, x_BF, w_LDF)[0]
  text = step.lower(
      jax.ShapeDtypeStruct((5, 32, 32), jnp.float32, sharding=named(None, "fsdp")),
      jax.ShapeDtypeStruct((4, 32), jnp.float32, sharding=named("fsdp"))).compile().as_text()
  assert programs.work(text, dict(mesh.shape)).received == {"fsdp": 5 * 4096 * 3 / 4}
  (kind, axes, shape), = program_text.collectives(text, dict(mesh.shape))
  assert (kind, axes, shape[-2:]) == ("all-gather", "fsdp", (32, 32))
  assert not program_text.host_operations(text)


@pytest.mark.parametrize("groups, first", [
    ("[4,2]<=[8]", [0, 1]), ("[2,4]<=[4,2]T(1,0)", [0, 2, 4, 6]),
    ("mesh['axis_0'=4,'axis_1'=2] {'axis_1'}", [0, 1])])
def test_groups_of_devices(groups, first):
  text = f"replica_groups={groups}"
  assert programs._group(text, dict(data=1, fsdp=4, tensor=2)).tolist() == first


def test_calls_of_the_host_are_found():
  shape = jax.ShapeDtypeStruct((4,), jnp.float32)
  text = text_of(lambda x: jax.pure_callback(np.sin, shape, x), (4,))
  assert program_text.host_operations(text)


# As XLA for TPUs writes them: S(1) is memory on the chip, a matrix product is a convolution, and
# a collective that runs beside others is in several fusions that share its channel.
TPU = """HloModule m, is_scheduled=true

%start (p: bf16[32,64]) -> bf16[64,64] {
  %p = bf16[32,64]{1,0} parameter(0)
  ROOT %g.1 = bf16[64,64]{1,0} all-gather(%p), channel_id=5, replica_groups=[1,2]<=[2], dimensions={0}
}

%end (p.1: bf16[32,64]) -> bf16[64,64] {
  %p.1 = bf16[32,64]{1,0} parameter(0)
  ROOT %g.2 = bf16[64,64]{1,0} all-gather(%p.1), channel_id=5, replica_groups=[1,2]<=[2], dimensions={0}
}

ENTRY %main (a: bf16[16,64], b: bf16[32,64], c: f32[128,64], d: bf16[2,64,64]) -> bf16[16,64] {
  %a = bf16[16,64]{1,0} parameter(0)
  %b = bf16[32,64]{1,0} parameter(1)
  %c = f32[128,64]{1,0} parameter(2)
  %d = bf16[2,64,64]{2,1,0} parameter(3)
  %copy-start.1 = (f32[128,64]{1,0:T(8,128)S(1)}, f32[128,64]{1,0}, u32[]{:S(2)}) copy-start(%c)
  %copy-done.1 = f32[128,64]{1,0:T(8,128)S(1)} copy-done(%copy-start.1)
  %slice-start.1 = ((bf16[2,64,64]{2,1,0}), bf16[1,64,64]{2,1,0:T(8,128)S(1)}, s32[]{:S(2)}) slice-start(%d), slice={[0:1], [0:64], [0:64]}
  %slice-done.1 = bf16[1,64,64]{2,1,0:T(8,128)S(1)} slice-done(%slice-start.1)
  %negate.1 = f32[128,64]{1,0:T(8,128)S(1)} negate(%copy-done.1)
  %fusion.1 = bf16[64,64]{1,0:S(1)} fusion(%b), kind=kCustom, calls=%start
  %fusion.2 = bf16[64,64]{1,0:S(1)} fusion(%b), kind=kCustom, calls=%end
  ROOT %convolution.1 = bf16[16,64]{1,0} convolution(%a, %fusion.2), dim_labels=bf_io->bf
}
"""


def test_the_programs_of_tpus():
  work = programs.work(TPU, dict(data=1, fsdp=2, tensor=1))
  assert work.flops == 2 * 16 * 64 * 64
  # The copy reads c, the slice a half of d, both fusions read b, the product reads a and writes.
  assert work.traffic == 4 * 128 * 64 + 2 * 64 * 64 + 2 * 2 * 32 * 64 + 2 * 2 * 16 * 64
  assert work.received == {"fsdp": 2 * 64 * 64 / 2}


@pytest.mark.parametrize("lhs, rhs, out, text, flops", [
    ((8, 512), (512, 64), (8, 64), "dim_labels=bf_io->bf", 2 * 8 * 512 * 64),
    # Heads as a window over padding: each output position sees one input position.
    ((8, 512, 896, 1), (14, 64, 896, 1), (8, 512, 14, 64),
     "window={size=1x14 pad=0_0x13_13 rhs_reversal=0x1}, dim_labels=0bf1_1oi0->0b1f",
     2 * 8 * 512 * 14 * 64 * 896)])
def test_products_that_are_written_as_convolutions(lhs, rhs, out, text, flops):
  op = programs._Operation("c", "convolution", [programs._Array("bf16", out, False)], [], text, True)
  assert programs._convolution(op, lhs, rhs) == flops


@pytest.mark.parametrize("products, causal", [(2, 0.5)])
def test_kernels_of_attention_count_what_the_mask_keeps(products, causal):
  shapes = ["bf16[4,6,512,64]", "bf16[4,2,512,64]", "bf16[4,2,512,64]"]
  lines = [f"  %p.{i} = {s}{{3,2,1,0}} parameter({i})" for i, s in enumerate(shapes)]
  text = "\n".join(["ENTRY %main (p: f32[]) -> f32[] {", *lines, (
      "  ROOT %splash_mha_fwd.1 = bf16[4,6,512,64]{3,2,1,0} custom-call(%p.0, %p.1, %p.2), "
      'custom_call_target="tpu_custom_call"'), "}"])
  assert programs.work(text, ONE).flops == products * 2 * causal * 4 * 6 * 512 * 512 * 64


def test_a_run_compiles_few_programs_and_each_once(tiny_files, tmp_path, caplog):
  """Operations outside of jit are programs too."""
  config = tiny.config(tiny_files, steps=2, learner__minibatches=1, prm__minibatches=1)
  jax.clear_caches()  # Other tests of the process may have compiled the same ones.
  with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):
    rl.train(config, tmp_path)
  names = collections.Counter(
      re.findall(r"^Compiling jit\((\w+)\)", "\n".join(caplog.messages), re.M))
  assert names["step"] == names["init_fn"] == 2 and names["logps_of"] == names["_compute"] == 1
  # Sampling, greedy and sampled evaluation.
  assert names["_start"] == names["_advance"] == 3, names
  assert names["_lay_out_layer"] == 1 and names.total() <= 36, names
