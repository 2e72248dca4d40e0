"""The paper plan: its bytes are preflight's, its programs lower, its page is its numbers."""
import dataclasses

import jax
import jax.numpy as jnp
import pytest

from configs import quickstart
from experiments.bench import scaling
from rlx import build
from rlx.build import memory as run_memory, models as build_models
from rlx.learner import programs, sharding
from rlx.models import transformer

TINY = transformer.DecoderConfig(vocab_size=16, d_model=128, n_layers=2, n_heads=4,
                                 n_kv_heads=2, head_dim=4, d_ff=8)


def test_bytes_are_those_of_a_run_on_devices():
  c = quickstart.get_config("smoke")
  c.prompts.per_step, c.rollouts.per_prompt = 4, 2
  c.eval.prompts = c.eval.batch = 4
  c.prompts.options.size = 64
  c.mesh.fsdp = c.mesh.tensor = 2
  c.model.attention = "blocks"
  run = build.build(c)
  plan = scaling.planned(
      c, run.passes.models["policy"], jax.sharding.AbstractMesh((1, 2, 2), sharding.MESH_AXES))
  state, other = run.shapes(), plan.shapes()
  assert run_memory.count_state_bytes(state) == run_memory.count_state_bytes(other)
  assert run_memory.cache_bytes(run) == run_memory.cache_bytes(plan)
  assert run_memory.estimate_bytes(run, state) == run_memory.estimate_bytes(plan, other)
  # And what the devices then hold.
  held = sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(
      run.init().replace(step=None, kl_coef=None)))
  assert sum(run_memory.count_state_bytes(other).values()) == held


def test_steps_lower_for_512_devices_that_are_not_here():
  def lowered(shape):
    mesh = jax.sharding.AbstractMesh(shape, sharding.MESH_AXES)
    run = scaling.planned(scaling.config_of(shape), TINY, mesh)
    return [p.name for p in run_memory.trace_steps(run, run.shapes())
            if p.traced.lower(lowering_platforms=("tpu",))]
  assert lowered((2, 128, 2)) == ["scoring, policy", "scoring, reference", "scoring, prm",
                                  "PRM update", "policy update"]
  with pytest.raises(ValueError, match=r"mesh.tensor=8 does not divide an axis of size 4"):
    lowered((2, 32, 8))


def test_rows_stay_and_weights_travel():
  """What a forward pass sends does not grow with its rows, as it does without `rows`."""
  mesh = sharding.make_mesh(fsdp=8)
  params = sharding.shapes(jax.eval_shape(lambda: transformer.init(TINY, jax.random.key(0))), mesh)
  def sent(config, b):
    tokens_BS = sharding.row_shapes(jax.ShapeDtypeStruct((b, 64), jnp.int32), mesh)
    step = jax.jit(lambda p, x: transformer.hidden(p, config, x, x, x == 0).sum())
    text = step.lower(params, tokens_BS).compile().as_text()
    return sum(programs.work(text, dict(mesh.shape)).received.values())
  pinned = build_models.adapt_to_mesh(TINY, mesh)
  many = sent(pinned, 64)
  assert 0 < many < 1.5 * sent(pinned, 8)
  assert many < 0.1 * sent(TINY, 64)


def test_every_row_is_recorded_and_the_page_is_what_the_command_writes():
  lines = scaling.recorded()
  assert [(x["model"], x["target"], tuple(x["mesh"])) for x in lines] == list(scaling.ROWS)
  assert scaling.PAGE.read_text() == scaling.page(lines)


def test_estimates_are_near_the_compilers():
  """Of sampling and of training, for three models on four kinds of devices."""
  ratios = {(x["model"], x["target"], term): scaling.estimate_ratio(x, term)
            for x in scaling.recorded()
            for term in ("KV cache of sampling", "activations of the policy update")}
  assert len(ratios) >= 24
  off = {k: round(r, 2) for k, r in ratios.items() if not 0.9 <= r <= 1.3}
  assert not off, off


def test_needed_work_is_what_a_pass_computes_once():
  """Against the FLOPs of the compiled program, on a mesh of CPU devices."""
  c = scaling.config_of((1, 2, 1))
  c.prompts.max_tokens = c.rollouts.max_tokens = 16
  c.prompts.per_step, c.rollouts.slots, c.learner.pack = 8, None, False
  for part in (c.learner, c.prm): part.minibatches = part.microbatches = 1
  run = scaling.planned(c, dataclasses.replace(TINY, vocab_size=512, d_ff=512),
                        sharding.make_mesh(fsdp=2))
  done = {p.name: run_memory.compile_program(p, dict(run.passes.mesh.shape)).work.flops
          for p in run_memory.trace_steps(run, run.shapes())
          if p.name in ("scoring, reference", "policy update")}
  needed = scaling.needed_flops(run)
  # Attention is computed in blocks that the mask cuts; an update also computes layers again.
  assert 1 <= done["scoring, reference"] / needed["scoring"] < 1.2
  assert 1.1 < done["policy update"] / needed["update"] < 1.5
