"""What the programs of a mesh do between devices, and what each device holds."""
import dataclasses
import functools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import base
from rlx import build
from rlx.build import models as build_models
from rlx.core import records, rng
from rlx.io import hf, tokenizer
from rlx.learner import hosts, memory, sharding
from rlx.models import decode, logps, packing, transformer
from rlx.rollouts import episodes, sampler
from rlx.stages import host_state, learner as learner_lib
from tests import tiny

COLLECTIVES = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  """Two layers, so that both at once cannot pass for one."""
  return saved(tmp_path_factory.mktemp("model"))


def saved(path, **changes):
  sizes = dict(vocab_size=24, d_model=16, n_layers=2, n_heads=4, n_kv_heads=4, head_dim=4, d_ff=32)
  config = transformer.DecoderConfig(**sizes | changes)
  hf.save(path, config, transformer.init(config, jax.random.key(0)),
          tokenizer.characters("0123456789Mm=;#"))
  return path


@functools.cache
def run_of(model, **mesh):
  return build.build(run_config(model, **mesh))


def run_config(model, **mesh):
  c = base.get_config()
  c.model.path, c.mesh = str(model), base.ml_collections.ConfigDict(
      dict(data=1, fsdp=1, tensor=1) | mesh)
  c.prompts.options = dict(size=64, n_min=2, n_max=2)
  c.prompts.per_step, c.prompts.max_tokens = 8, 8
  c.rollouts.per_prompt, c.rollouts.max_tokens = 4, 4
  c.eval.prompts, c.eval.batch, c.learner.pack = 8, 8, False
  return c


@functools.cache
def compiled_update(model, packed=False, **mesh):
  """The policy's update on a batch of the mesh, compiled; packed with trunks apart."""
  run, (b, x, t) = run_of(model, **mesh), (32, 8, 4)
  state = run.shapes()
  row = sharding.row_shapes(jax.tree.map(
      lambda s: jax.ShapeDtypeStruct(*s), dict(
          tokens_BS=((b, x + t), np.int32), prompt_len_B=((b,), np.int32),
          completion_len_B=((b,), np.int32), sampler_logps_BT=((b, t), np.float32),
          finish_B=((b,), np.int32)), is_leaf=lambda s: isinstance(s, tuple)), run.passes.mesh)
  rollouts = records.Rollouts(prompt_P=None, **row)
  scored = jax.eval_shape(lambda r: records.Batch(
      action_BT=r.mask_BT, outcome_B=r.sampler_logps_BT[:, 0],
      advantages_BT=r.sampler_logps_BT, group=4), rollouts)
  scored, coef_B = sharding.row_shapes((scored, scored.outcome_B), run.passes.mesh)
  plan = None
  if packed:
    plan = packing.plan(
        np.full(b, x), np.arange(b) % t + 1, x, t, run.passes.models["policy"],
        parts=sharding.row_shards(run.passes.mesh), trunk_B=np.arange(b) // 4 * 4)
    assert plan.apart_PX is not None
    plan = sharding.row_shapes(plan, run.passes.mesh)
  part = learner_lib.Minibatch(rollouts, scored, plan, coef_B)
  return run.update_policy.program.lower(state.policy, state.policy_opt, part, None).compile()


def collectives(program):
  """[(kind, elements of the result)] in the compiled text."""
  moved = []
  for line in program.as_text().splitlines():
    m = re.search(r"= (.*?) (" + "|".join(COLLECTIVES) + r")(-start)?\(", line)
    if m:
      sizes = [math.prod(map(int, filter(None, dims.split(","))))
               for dims in re.findall(r"\[([\d,]*)\]", m[1])]
      moved.append((m[2], max(sizes)))
  return moved


def test_fsdp_gathers_a_layer_at_a_time_and_no_activations(model):
  moved = collectives(compiled_update(model, fsdp=8))
  kinds = {kind for kind, _ in moved}
  assert "all-gather" in kinds and kinds & {"reduce-scatter", "all-reduce"}
  assert not kinds & {"all-to-all", "collective-permute"}, moved
  params = run_of(model, fsdp=8).shapes().policy["layers"]
  layer = max(x.size // 2 for x in jax.tree.leaves(params))
  table = 24 * 16
  assert max(n for kind, n in moved if kind == "all-gather") <= max(layer, table), moved


def test_tensor_parallel_adds_activations_and_gathers_layers(model):
  moved = collectives(compiled_update(model, data=2, fsdp=2, tensor=2))
  assert not {kind for kind, _ in moved} & {"all-to-all", "collective-permute"}, moved
  # An eighth of the tokens' activations, or a layer, or the table.
  assert max(n for _, n in moved) <= max(32 * 12 * 16 // 4, 24 * 16 * 2), moved


def test_what_layers_keep_is_spread_over_the_tensor_axis(monkeypatch):
  config = transformer.DecoderConfig(
      vocab_size=24, d_model=64, n_layers=24, n_heads=8, n_kv_heads=8, head_dim=8, d_ff=64,
      remat="full")
  mesh = sharding.make_mesh(tensor=8)
  params = sharding.shapes(
      jax.eval_shape(lambda: transformer.init(config, jax.random.key(0))), mesh)
  tokens_BS = sharding.row_shapes(jax.ShapeDtypeStruct((16, 64), np.int32), mesh)
  def temporary():
    config_ = build_models.adapt_to_mesh(config, mesh)
    loss = lambda p, x_BS: transformer.hidden(p, config_, x_BS, x_BS, x_BS >= 0).sum()
    return jax.jit(jax.grad(loss)).lower(
        params, tokens_BS).compile().memory_analysis().temp_size_in_bytes
  kept = 4 * 24 * 16 * 64 * 64  # Bytes of the inputs of all layers.
  spread = temporary()
  monkeypatch.setattr(transformer, "_pin_between_layers", lambda c, x: transformer.pin(x, c.rows))
  assert kept * 7 // 8 <= temporary() - spread < 2 * kept


def test_data_parallel_reduces_gradients_and_gathers_nothing(model):
  kinds = {kind for kind, _ in collectives(compiled_update(model, data=8))}
  assert kinds == {"all-reduce"}


def test_packed_rows_stay_on_their_device(model, monkeypatch):
  """As without packing, layers are gathered and gradients are summed, and that is all."""
  monkeypatch.setattr(packing, "_SIZES", ((True, 1, 1),))  # So that trunks are stored apart.
  assert {kind for kind, _ in collectives(compiled_update(model, packed=True, data=8))} == {
      "all-reduce"}
  packed, padded = (collectives(compiled_update(model, packed=x, fsdp=8)) for x in (True, False))
  assert {kind for kind, _ in packed} == {kind for kind, _ in padded}
  for kind in {kind for kind, _ in packed}:
    assert max(n for k, n in packed if k == kind) <= max(n for k, n in padded if k == kind)


@pytest.fixture(scope="module")
def shallow(tmp_path_factory):
  """The decoder's layers are compiled one by one."""
  return saved(tmp_path_factory.mktemp("shallow"), n_layers=1)


@functools.cache
def sampling_run(model, chunk=12, slots=None, **mesh):
  c = run_config(model, **mesh)
  c.rollouts.max_tokens, c.rollouts.chunk, c.rollouts.slots = 12, chunk, slots
  c.rollouts.stops = ("3",)
  return build.build(c)


def sampled(run):
  weights = run.sampling.lay_out(run.init().policy)
  return jax.device_get(run.sampling.train(
      run.init().policy, run.prompts.first(8), rng.key(0, "sample", 0), None,
      weights))


@pytest.mark.parametrize("mesh, slots", [
    (dict(data=2), None), (dict(data=2, fsdp=2, tensor=2), None), (dict(data=2, fsdp=2), 16)],
                         ids=str)
def test_devices_decode_their_own_rows(shallow, mesh, slots, monkeypatch):
  """The samples of one device; in between nothing is sent, and rows that ended leave."""
  advance, programs = sampler._advance, []
  def watched(options, *args):
    programs.append((options, *jax.tree.map(lambda x: jax.ShapeDtypeStruct(
        x.shape, x.dtype, sharding=x.sharding), args)))
    return advance(options, *args)
  # A chunk shorter than a completion: else no row moves.
  one, run = sampled(sampling_run(shallow)), sampling_run(shallow, 11, slots, **mesh)
  monkeypatch.setattr(sampler, "_advance", watched)
  several = sampled(run)
  np.testing.assert_array_equal(one.tokens_BS, several.tokens_BS)
  np.testing.assert_array_equal(one.finish_B, several.finish_B)
  assert set(one.finish_B.tolist()) >= {records.FINISH.index("eos"), records.FINISH.index("stop")}
  np.testing.assert_allclose(one.sampler_logps_BT, several.sampler_logps_BT, atol=1e-5)
  rows = [len(working.row_W) for _, _, _, _, working, *_ in programs]
  assert rows[0] == (slots or 32) and (rows[-1] <= 16 or "tensor" in mesh)
  assert slots is None or sum(rows) > 16 * 12 // 4  # Waiting rows had their turn.
  if "tensor" not in mesh: assert collectives(advance.lower(*programs[-1]).compile()) == []


def played(run, slots=None):
  """Episodes of three turns; the answer to a turn repeats its first tokens."""
  class Echo:
    def __init__(self): self.waiting = {}
    def submit(self, row, ids): self.waiting[row] = episodes.Answer(ids[:row % 3])
    def take(self, rows): return [(row, self.waiting.pop(row)) for row in rows]
  sample = episodes.make(
      run.passes.models["policy"], group=4, max_tokens=24, turn_tokens=5, turns=3, answer_tokens=2,
      chunk=3, slots=slots, eos_ids=(1,), lay_out=run.sampling.lay_out, fetch=hosts.fetch,
      put=hosts.put)
  return sample(run.init().policy, *run.sampling.encode(run.prompts.first(8)),
                rng.key(0, "sample", 0), Echo())


@pytest.mark.parametrize("mesh, slots", [
    (dict(data=2), None), (dict(data=2, fsdp=2, tensor=2), 8), (dict(data=2, fsdp=2), 16)], ids=str)
def test_devices_play_their_own_episodes(shallow, mesh, slots, monkeypatch):
  """Those of one device; while rows are decoded and observations read, nothing is sent."""
  one, run, programs = played(sampling_run(shallow)), sampling_run(shallow, **mesh), {}
  for name in ("_advance", "_read"):
    def watched(options, *args, fn=getattr(episodes, name), name=name, **static):
      programs[name] = fn.lower(options, *args, **static)
      return fn(options, *args, **static)
    monkeypatch.setattr(episodes, name, watched)
  several = played(run, slots)
  for name in ("tokens_BS", "turn_BT", "finish_B"):
    np.testing.assert_array_equal(getattr(one, name), getattr(several, name), err_msg=name)
  np.testing.assert_allclose(one.sampler_logps_BT, several.sampler_logps_BT, atol=1e-5)
  assert one.turn_BT.max() == 2
  if "tensor" not in mesh:
    for program in programs.values(): assert collectives(program.compile()) == []


@pytest.mark.parametrize("kind", [
    dict(qkv_bias=True), dict(qk_norm="all", norms="post", tied_head=False)], ids=str)
def test_a_tensor_axis_larger_than_the_key_value_heads(kind, tmp_path, monkeypatch):
  """Each of four devices has a copy of one of two heads: the same samples and gradients."""
  path = saved(tmp_path, n_kv_heads=2, n_layers=1, **kind)
  one, four = sampling_run(path), sampling_run(path, tensor=4)
  caches, prompts = [], sampler.decoder.prompts
  monkeypatch.setattr(sampler.decoder, "prompts", lambda *args: caches.append(
      prompts(*args)) or caches[-1])
  np.testing.assert_array_equal(sampled(one).tokens_BS, sampled(four).tokens_BS)
  assert [cache.v_PKXH[0].shape[1] for cache in caches] == [2, 4]
  params = four.init().policy
  assert params["layers"]["attn"]["k_LDKH"].sharding.spec[1:3] == (("fsdp", "tensor"), None)
  tokens_BS = np.arange(40).reshape(4, 10) % 24
  def gradient(run):
    hidden = lambda p: transformer.hidden(
        p, run.passes.models["policy"], tokens_BS, tokens_BS % 10, tokens_BS >= 0)
    return jax.device_get(jax.jit(jax.grad(
        lambda p: (hidden(p) * (tokens_BS[..., None] % 5 - 2)).sum()))(run.init().policy))
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * abs(b).max()),
               gradient(one), gradient(four))


def test_one_device_talks_to_nobody(model):
  assert collectives(compiled_update(model, fsdp=1)) == []


def test_a_step_leaves_parameters_where_they_were(model):
  """Otherwise the second step would be another program, or hold all of them."""
  params, opt_state = compiled_update(model, fsdp=8).output_shardings[:2]
  state = run_of(model, fsdp=8).shapes()
  for out, x in ((params, state.policy), (opt_state, state.policy_opt)):
    jax.tree.map(lambda s, x: None if s.is_equivalent_to(x.sharding, len(x.shape))
                 else pytest.fail(f"{x}: {s}"), out, x)


def test_parameters_and_optimizer_take_a_devices_share(model):
  """Also by what the compiled update says of its arguments."""
  whole = None
  for n in (1, 2, 4, 8):
    state = run_of(model, fsdp=n).shapes()
    held = memory.tree_bytes((state.policy, state.policy_opt))
    whole = whole or held
    assert held == pytest.approx(whole / n, rel=0.02), n
    if n in (1, 8):
      taken = compiled_update(model, fsdp=n).memory_analysis().argument_size_in_bytes
      assert held <= taken <= held + 4000, (n, held, taken)


def test_a_run_starts_without_a_whole_model_on_any_device(model, monkeypatch):
  """Neither parameters on their way from the host nor what the optimizer starts from."""
  run, put, given = run_of(model, fsdp=8), hosts.put, []

  def watched(tree, sharding_of=None, **options):
    for path, x in jax.tree.leaves_with_path(tree):
      if sharding_of is not None and "fsdp" in sharding_of(path, x).spec: given.append(x)
    return put(tree, sharding_of, **options)

  monkeypatch.setattr(hosts, "put", watched)
  state = run.init()
  assert given and all(isinstance(x, np.ndarray) for x in given)
  for path, x in jax.tree.leaves_with_path((state.policy, state.policy_opt, state.prm_opt)):
    if x.sharding.spec and "fsdp" in x.sharding.spec:
      assert x.addressable_shards[0].data.nbytes == x.nbytes // 8, path
  moments = [x for x in jax.tree.leaves(state.policy_opt) if x.ndim > 2]
  assert moments and all("fsdp" in x.sharding.spec for x in moments)
  # Copies: what is donated is not the start's.
  leaf = given[0].copy()
  jax.tree.map(lambda x: x.delete(), state.policy)
  np.testing.assert_array_equal(given[0], leaf)


def test_the_sampler_reads_whole_weights_but_for_the_tensor_axis(model):
  run = run_of(model, fsdp=2, tensor=2)
  params = run.init().policy
  weights = run.sampling.lay_out(params)
  for path, x in jax.tree.leaves_with_path(weights):
    spread = [a for a in x.sharding.spec if a is not None]
    assert set(spread) <= {"tensor"}, (path, x.sharding)
  layer = weights["layers"][0]
  assert layer["qkv_KAHD"].sharding.spec[0] == "tensor"
  assert layer["down_DF"].sharding.spec[1] == "tensor"
  sizes = {d: sum(s.data.nbytes for x in jax.tree.leaves(weights) for s in x.addressable_shards
                  if s.device == d) for d in run.passes.mesh.devices.flat}
  assert len(set(sizes.values())) == 1
  total = sum(x.nbytes for x in jax.tree.leaves(weights))
  assert max(sizes.values()) < 0.55 * total


def test_weights_are_gathered_a_layer_at_a_time():
  """What a layer's program needs beside its result, and the result: a twentieth of all weights."""
  config = transformer.DecoderConfig(
      vocab_size=24, d_model=64, n_layers=32, n_heads=4, n_kv_heads=2, head_dim=16, d_ff=128)
  mesh = sharding.make_mesh(fsdp=8)
  params = sharding.shapes(
      jax.eval_shape(lambda: transformer.init(config, jax.random.key(0))), mesh)
  program = decode._lay_out_layer.lower(params["layers"], config, functools.partial(
      sharding.gather, mesh=mesh), jnp.int32(0)).compile()
  assert "all-gather" in {kind for kind, _ in collectives(program)}
  memory_ = program.memory_analysis()
  weights = memory.tree_bytes(jax.eval_shape(lambda p: decode.lay_out(p, config), params))
  assert 0 < memory_.temp_size_in_bytes + memory_.output_size_in_bytes < 0.1 * weights


def test_weights_are_laid_out_once_a_policy(shallow, monkeypatch):
  """Of all draws of a batch."""
  calls, run, lay_out = [], sampling_run(shallow), decode.lay_out
  monkeypatch.setattr(decode, "lay_out", lambda *args: calls.append(1) or lay_out(*args))
  collect = dataclasses.replace(
      run.collect, max_draws=3, fill="drop",
      filter_groups=lambda batch: np.zeros(len(batch.outcome_PG), bool))
  _, metrics = collect(run.init(), host_state.HostState(rehearsed={}), 0, tiny.CLOCK)
  assert metrics["rollouts/draws"] == 3 and len(calls) == 1


def test_experts_keep_to_the_tokens_of_their_device():
  """What tokens get is the same, and no token visits another device."""
  config = transformer.DecoderConfig(
      vocab_size=24, d_model=16, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=4, d_ff=8,
      n_experts=4, experts_per_token=2)
  params = transformer.init(config, jax.random.key(0))
  tokens_BS = np.random.default_rng(0).integers(0, 24, (32, 30)).astype(np.int32)
  batch = tokens_BS, np.broadcast_to(np.arange(30, dtype=np.int32), (32, 30)), tokens_BS >= 0

  def run(config, mesh):
    def loss(params, tokens_BS, positions_BS, valid_BS):
      logps_BT, _ = logps.logps(params, config, tokens_BS, positions_BS, valid_BS,
                                completion_width=15)
      return logps_BT.mean()
    args = sharding.place(params, mesh), *sharding.place_rows(batch, mesh)
    program = jax.jit(jax.value_and_grad(loss)).lower(*args).compile()
    return program, jax.device_get(program(*args))

  _, expected = run(config, sharding.make_mesh())
  for shape in (dict(fsdp=8), dict(data=2, fsdp=2, tensor=2)):
    mesh = sharding.make_mesh(**shape)
    program, results = run(build_models.adapt_to_mesh(config, mesh), mesh)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), results, expected)
    # An expert matrix of all experts is 512 numbers; the tokens of a device are 1920 at least.
    moved = collectives(program)
    assert moved and not any(kind in ("all-to-all", "collective-permute") for kind, _ in moved)
    assert max(n for kind, n in moved if kind == "all-gather") <= 2 * 512
