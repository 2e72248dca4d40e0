"""Parameters stored in bfloat16 learn as those in float32 do, on any mesh and after a resume."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records, rng
from rlx.learner import optimizer, sharding, step

START = {"q_LDNH": (0.02 * np.random.default_rng(0).normal(size=(2, 64, 4, 64))).astype(
    jnp.bfloat16), "scale_LD": np.ones((2, 64), jnp.bfloat16)}
ADAMW = optimizer.adamw(lr=1e-6, max_grad_norm=None)
MODES = optimizer.PARAM_UPDATES
# How often each gradient is 1: weights move by different lengths.
UP = {k: np.random.default_rng(1).uniform(size=x.shape) for k, x in START.items()}


def _of(mode):
  return optimizer.wrap_for_bfloat16(ADAMW, rng.key(0, "rounding"), param_update=mode)


def _loss(params, signs):
  total = sum(jnp.sum(params[k].astype(jnp.float32) * signs[k][0]) for k in params)
  return records.Weighted(total, jnp.float32(1)), {}, None


def _trained(transform, params, steps, opt_state=None, mesh=None, first=0):
  """Parameters and state after steps of gradients 1 and -1."""
  mesh = mesh or sharding.make_mesh()
  params = sharding.place(params, mesh, copies=True)
  opt_state = (sharding.compute_sharded(transform.init, params, mesh) if opt_state is None else
               sharding.place(opt_state, mesh, copies=True))
  update = step.make(_loss, transform)
  for i in range(first, first + steps):
    draw = np.random.default_rng(i)
    signs = {k: np.where(draw.uniform(size=(1, *x.shape)) < UP[k], np.float32(1),
                         np.float32(-1)) for k, x in START.items()}
    params, opt_state, *_ = update(params, opt_state, signs)
  return jax.device_get(params), jax.device_get(opt_state)


def _moved(params, name="q_LDNH"):
  """Down the mean gradient."""
  return -np.mean((np.float32(params[name]) - np.float32(START[name])) * np.sign(UP[name] - 0.5))


@functools.cache
def _wide():
  return _trained(ADAMW, jax.tree.map(np.float32, START), 300)


@pytest.mark.parametrize("mode", MODES)
def test_300_steps_of_1e_6_move_as_far_as_in_float32(mode):
  """Each is a 60th of what rounds up a weight of 0.02."""
  params, state = _trained(_of(mode), START, 300)
  assert {x.dtype for x in params.values()} == {jnp.bfloat16.dtype}
  assert 1e-4 < _moved(_wide()[0]) < 3e-4
  np.testing.assert_allclose(_moved(params), _moved(_wide()[0]), rtol=0.02)
  # The moments are those of float32, bit for bit.
  jax.tree.map(np.testing.assert_array_equal, state.inner, _wide()[1])
  if mode == "master":
    jax.tree.map(np.testing.assert_array_equal, state.master, _wide()[0])
    jax.tree.map(lambda p, x: np.testing.assert_array_equal(p, x.astype(p.dtype)),
                 params, state.master)


@pytest.mark.parametrize("mode", MODES)
def test_a_mesh_and_a_resume_change_no_bit(mode):
  whole, whole_state = _trained(_of(mode), START, 6)
  half, state = _trained(_of(mode), START, 3, mesh=sharding.make_mesh(fsdp=2))
  resumed = _trained(_of(mode), half, 3, state, sharding.make_mesh(fsdp=2, tensor=4), first=3)
  jax.tree.map(np.testing.assert_array_equal, resumed, (whole, whole_state))
  assert any((half[k] != whole[k]).any() for k in whole)
  assert any((half[k] != START[k]).any() for k in whole)


def test_stochastic_rounding_goes_to_a_neighbour_and_is_right_on_average():
  """A quarter of the way from 1 to its next 1 + 2^-7, and what is exact already."""
  x = jnp.repeat(jnp.array([[1 + 2**-9], [-1 - 2**-9], [0.], [-3.], [2**-130]]), 20000, axis=1)
  rounded = np.asarray(optimizer._round_stochastically(x, jax.random.key(0)))
  np.testing.assert_array_equal(rounded, rounded.astype(jnp.bfloat16))
  assert set(rounded[0]) == {1, 1 + 2**-7} and set(rounded[1]) == {-1, -1 - 2**-7}
  # Five standard errors.
  error = 5 * 2**-7 * np.sqrt(3 / 16 / 20000)
  np.testing.assert_allclose(rounded[:2].mean(axis=1), x[:2, 0], atol=error, rtol=0)
  np.testing.assert_array_equal(rounded[2:], x[2:])


def test_draws_differ_by_step_leaf_and_seed():
  x = {"a_D": jnp.full(4096, 1 + 2**-8), "b_D": jnp.full(4096, 1 + 2**-8)}
  params = jax.tree.map(lambda x: jnp.ones_like(x, jnp.bfloat16), x)
  plain = optimizer.Optimizer(
      lambda params: None, lambda grads, state, params: (grads, state), lambda state: 0)
  def ups(key, count):
    transform = optimizer.wrap_for_bfloat16(plain, key, param_update="stochastic")
    state = transform.init(params)._replace(count=jnp.int32(count))
    updates, _ = transform.update(jax.tree.map(lambda x: x - 1, x), state, params)
    return [u > 0 for u in updates.values()]
  draws = [*ups(rng.key(0, "a"), 0), *ups(rng.key(0, "a"), 1), *ups(rng.key(1, "a"), 0)]
  for i, one in enumerate(draws):
    for other in draws[:i]: assert 0.4 < np.mean(one == other) < 0.6


def test_gradients_of_microbatches_are_summed_in_float32():
  """1 and seven times 2^-9, which a sum in bfloat16 leaves out."""
  def loss(params, x_BD):
    return records.Weighted(jnp.sum(params["w_D"].astype(jnp.float32) * x_BD.sum(axis=0)),
                            jnp.float32(1)), {}, None
  x_BD = np.full((8, 1), 2**-9, np.float32)
  x_BD[0] = 1
  transform = _of("master")
  params = {"w_D": jnp.zeros(1, jnp.bfloat16)}
  update = step.make(loss, transform, microbatches=8)
  *_, metrics, _ = update(params, transform.init(params), x_BD)
  np.testing.assert_allclose(metrics["grad_norm"], (1 + 7 * 2**-9) / 8, rtol=1e-7)
