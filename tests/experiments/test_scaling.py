"""The paper plan: its bytes are preflight's, its programs lower, its page is its numbers."""

import jax
import jax.numpy as jnp
import pytest

from configs import quickstart
from experiments import scaling
from experiments import sharded_programs
from rlx import build
from rlx.learner import sharding
from rlx.models import transformer
from rlx.tools import preflight

TINY = transformer.DecoderConfig(vocab_size=16, d_model=128, n_layers=2, n_heads=4,
                                 n_kv_heads=2, head_dim=4, d_ff=8)


def test_bytes_are_those_of_a_run_on_devices():
  c = quickstart.get_config("smoke")
  c.prompts.per_step, c.rollouts.per_prompt = 4, 2
  c.eval.prompts = c.eval.batch = 4
  c.prompts.options.size = 64
  c.mesh.fsdp = c.mesh.tensor = 2
  run = build.build(c)
  plan = scaling.planned(
      c, run.passes.models["policy"], jax.sharding.AbstractMesh((1, 2, 2), sharding.MESH_AXES))
  state, other = run.shapes(), plan.shapes()
  assert preflight.held_bytes(state) == preflight.held_bytes(other)
  assert preflight.cache_bytes(run) == preflight.cache_bytes(plan)
  assert preflight.estimated_bytes(run, state) == preflight.estimated_bytes(plan, other)
  # And what the devices then hold.
  held = sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(
      run.init().replace(step=None, kl_coef=None)))
  assert sum(preflight.held_bytes(other).values()) == held


def test_steps_lower_for_512_devices_that_are_not_here(monkeypatch):
  monkeypatch.setitem(scaling.MODELS, "tiny", TINY)
  lines = list(scaling.programs_of("tiny", (2, 128, 2), compile_=False))
  assert [line["program"] for line in lines] == list(scaling.TERMS[-3:])
  assert all(line["lower_s"] > 0 for line in lines)
  with pytest.raises(ValueError, match=r"mesh.tensor=8 does not divide an axis of size 4"):
    next(scaling.programs_of("tiny", (2, 32, 8), compile_=False))


def test_rows_stay_and_weights_travel():
  """What a forward pass sends does not grow with its rows, as it does without `rows`."""
  mesh = sharding.make_mesh(fsdp=8)
  params = sharding.shapes(jax.eval_shape(lambda: transformer.init(TINY, jax.random.key(0))), mesh)
  def sent(config, b):
    tokens_BS = sharding.row_shapes(jax.ShapeDtypeStruct((b, 64), jnp.int32), mesh)
    step = jax.jit(lambda p, x: transformer.hidden(p, config, x, x, x == 0).sum())
    received = sharded_programs.received(
        step.lower(params, tokens_BS).compile().as_text(), dict(mesh.shape))
    return sum(received.values())
  pinned = build.on_mesh(TINY, mesh)
  many = sent(pinned, 64)
  assert 0 < many < 1.5 * sent(pinned, 8)
  assert many < 0.1 * sent(TINY, 64)


def test_received_is_counted_per_group_and_loop():
  """A weight of 4 kB gathered over 4 in each of 5 rounds, a sum of 1 kB over 2."""
  mesh = sharding.make_mesh(fsdp=4, tensor=2)
  named = lambda *axes: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
  @jax.jit
  def step(w_LDF, x_BF):
    def one(x_BF, w_DF):
      w_DF = jax.lax.with_sharding_constraint(w_DF, named())
      return jnp.tanh(x_BF @ w_DF.T), None
    x_BF, _ = jax.lax.scan(one, x_BF, w_LDF)
    return x_BF
  text = step.lower(
      jax.ShapeDtypeStruct((5, 32, 32), jnp.float32, sharding=named(None, "fsdp")),
      jax.ShapeDtypeStruct((4, 32), jnp.float32, sharding=named("fsdp"))).compile().as_text()
  assert sharded_programs.received(text, dict(mesh.shape)) == {"fsdp": 5 * 4096 * 3 / 4}
  for groups, first in (("[4,2]<=[8]", [0, 1]), ("[2,4]<=[4,2]T(1,0)", [0, 2, 4, 6]),
                        ("mesh['axis_0'=4,'axis_1'=2] {'axis_1'}", [0, 1])):
    got = sharded_programs._group(f"replica_groups={groups}", dict(mesh.shape))
    assert got.tolist() == first


def test_bandwidth_of_a_group_is_that_of_its_narrowest_way():
  h100 = scaling.CHIPS["H100"]  # 8 share links of 450, each has 50 to the others.
  of = lambda **sizes: scaling.bandwidths(h100, dict(data=1, fsdp=1, tensor=1) | sizes)
  assert of(fsdp=8) == dict(data=450e9, fsdp=450e9, tensor=450e9)
  assert of(fsdp=32)["fsdp"] == 8 * 50e9             # Eight bring it to each node.
  assert of(fsdp=8, tensor=8) == dict(data=450e9, fsdp=50e9, tensor=450e9)
  assert of(data=2, fsdp=8)["data"] == 50e9


def test_the_page_is_what_the_command_writes():
  text = scaling.PAGE.read_text()
  row = lambda cells: "| " + " | ".join(map(str, cells)) + " |\n"
  for cells in (scaling.bytes_row("Llama-3.1-70B", (1, 8, 8)),
                scaling.work_row("Llama-3.1-70B", (1, 8, 8)),
                scaling.seconds_row("Llama-3.1-70B", (1, 8, 8), "H100")):
    assert row(cells) in text
  compiled = [line for line in scaling.recorded() if "bytes" in line]
  assert compiled and row(scaling.compared(compiled[0])) in text


def test_what_was_compiled_is_within_the_estimate_and_sends_what_the_closed_form_says():
  compiled = [line for line in scaling.recorded() if "bytes" in line]
  ratios = {tuple(cells[:3]): (float(cells[5]), float(cells[7]))
            for cells in map(scaling.compared, compiled)}
  assert {mesh for _, mesh, _ in ratios} >= {"1 x 8 x 1", "1 x 4 x 2", "1 x 8 x 4"}
  assert all(0.97 <= of_bytes < 3.1 and 0.99 <= of_sent <= 1.01
             for of_bytes, of_sent in ratios.values()), ratios
