"""bfloat16 activations over float32 parameters, through the whole loop."""

import jax
import numpy as np
import pytest

from rlx import build
from rlx.build import memory as run_memory
from rlx.core import rng
from rlx.io import metrics as io_metrics
from rlx.loops import rl
from rlx.models import transformer, value
from tests import stages as stages_, tiny

# Where rounding to 8 bits would be felt: all of these are float32.
WIDE = {"exp", "exp2", "log", "log1p", "rsqrt", "sqrt", "sin", "cos", "div",
        "cumsum", "reduce_max", "argmax", "integer_pow", "square"}


def config_of(folder, **changes):
  return tiny.config(folder, steps=2, model__dtype="bfloat16", kl__coef=0.01, eval__samples=4,
                     **changes)


@pytest.fixture(scope="module")
def run(tiny_files):
  return build.build(config_of(tiny_files))


def equations(jaxpr):
  """Those of a jaxpr and of all jaxprs inside it."""
  for equation in jaxpr.eqns:
    yield equation
    for inner in jax.tree.leaves(
        list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
      inner = getattr(inner, "jaxpr", inner)
      if hasattr(inner, "eqns"): yield from equations(inner)


def test_a_run_trains_float32_parameters(run, tiny_files, tmp_path):
  with tiny.building(run): summary = rl.train(config_of(tiny_files), tmp_path)
  lines = io_metrics.read(tmp_path)
  assert summary["steps"] == len(lines) == 2
  for l in lines:
    assert l["policy/nonfinite"] == 0 and l["policy/grad_norm"] > 0
    assert l["prm/nonfinite"] == 0 and l["prm/grad_norm"] > 0
    # One rounding is 0.4% of a logit; XLA may keep more bits than asked for.
    assert l["rollouts/sampler_gap_max"] < 0.05
  # Equal weights, equal function: exactly no reward, also in bfloat16.
  assert lines[0]["prm/abs_log_ratio"] == 0 < lines[1]["prm/abs_log_ratio"]


@pytest.fixture(scope="module")
def steps(run):
  """{name: the traced program} of scoring and the updates."""
  return {p.name: p.traced for p in run_memory.trace_steps(run, run.shapes())}


@pytest.mark.parametrize("name", ["policy update", "PRM update", "scoring, policy"])
def test_only_activations_are_bfloat16(steps, name):
  products, narrow = set(), set()
  for e in equations(steps[name].jaxpr.jaxpr):
    dtypes = {str(v.aval.dtype) for v in e.invars if hasattr(v.aval, "dtype")}
    if e.primitive.name == "dot_general": products |= dtypes
    if e.primitive.name in WIDE and "bfloat16" in dtypes: narrow.add(e.primitive.name)
  assert "bfloat16" in products and not narrow
  # Parameters, optimizer state, metrics, log-probs.
  out = {str(x.dtype) for x in jax.tree.leaves(steps[name].out_info)}
  assert out <= {"float32", "int32"}


def products(jaxpr):
  """{(dtypes of the factors, precision)} of all matrix products."""
  return {(*(str(x.aval.dtype) for x in e.invars[:2]), e.params["precision"])
          for e in equations(jaxpr) if e.primitive.name.startswith(("dot_general", "ragged_dot"))}


HIGHEST = (jax.lax.Precision.HIGHEST,) * 2


@pytest.mark.parametrize("precision, expected", [("exact", HIGHEST), ("default", None)])
def test_float32_products_are_float32_on_all_platforms(tiny_files, precision, expected):
  """In every program of a run: sampling, scoring and updates, with adapters."""
  built = build.build(tiny.config(tiny_files, model__matmul_precision=precision, lora__rank=2))
  names = set()
  for program in run_memory.trace_programs(built, built.shapes()):
    found = products(program.traced.jaxpr.jaxpr)
    assert found <= {("float32", "float32", expected)}, program.name
    if found: names.add(program.name)
  assert names >= {"hand-over, a layer", "prefill", "decode chunk", "scoring, policy",
                   "scoring, prm", "PRM update", "policy update"}


def test_no_product_of_a_bfloat16_model_has_float32_factors(run):
  """Nor a precision that would cost time; gradients included."""
  for program in run_memory.trace_programs(run, run.shapes()):
    assert products(program.traced.jaxpr.jaxpr) <= {("bfloat16", "bfloat16", None)}, program.name


def test_experts_and_values_have_float32_products_too():
  config = transformer.DecoderConfig(
      vocab_size=16, d_model=8, n_layers=1, n_heads=2, n_kv_heads=2, head_dim=4, d_ff=12,
      n_experts=2, experts_per_token=1)
  params = jax.eval_shape(lambda: value.init(config, transformer.init(config, jax.random.key(0))))
  values = lambda params: value.values(
      params, config, *np.ones((3, 2, 6), np.int32), completion_width=3).sum()
  assert products(jax.make_jaxpr(jax.grad(values))(params).jaxpr) == {
      ("float32", "float32", HIGHEST)}


def test_frozen_weights_in_the_activations_dtype_change_no_bit(run, tiny_files):
  """Half the bytes of references: the same completions and log-probs, no reward at the start."""
  half = build.build(config_of(tiny_files, model__frozen_dtype="bfloat16"))
  prompts, key = run.eval_prompts[:8], rng.key(0, "sample", 0)
  batches, bytes_of = [], []
  for r in (run, half):
    state = r.init()
    # Away from weights that were stored in fewer bits than float32 has.
    state = state.replace(policy=jax.tree.map(lambda x: x * 1.001, state.policy))
    rollouts = r.sampling.train(state.policy, prompts, key)
    placed = stages_.score(r, state, rollouts, np.float32([1, 0] * 16))
    batch = placed.with_columns(prm_logps_BT=placed.passes.logps("prm", "prm")).batch
    batches.append((rollouts, jax.device_get(batch)))
    bytes_of.append(run_memory.count_state_bytes(r.shapes()))
  jax.tree.map(np.testing.assert_array_equal, *batches)
  np.testing.assert_array_equal(batches[1][1].prm_logps_BT, batches[1][1].prm_ref_logps_BT)
  ratio = bytes_of[1]["reference"] / bytes_of[0]["reference"]
  assert 0.5 <= ratio < 0.51 and (
      bytes_of[0]["policy + optimizer"] == bytes_of[1]["policy + optimizer"])
