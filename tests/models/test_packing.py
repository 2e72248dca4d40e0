"""Packed against padded: layout, log-probs, values, gradients."""
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records
from rlx.learner import step
from rlx.models import logps, packing, size, transformer, value

X, T, V = 4, 6, 31
PROMPT_B = np.array([4, 1, 2, 3, 4, 1, 2, 2])
COMPLETION_B = np.array([6, 1, 0, 2, 3, 5, 1, 2])
CONFIG = transformer.DecoderConfig(
    vocab_size=V, d_model=16, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=4, d_ff=16,
    windows=(3, 0), local_theta=100.0)


def test_first_fit_decreasing_by_hand():
  # 6 opens row 0, 5 row 1, 4 row 2; 3 joins 5 (row 1), 2 joins 6 (row 0).
  row, start, n = packing.first_fit(np.array([2, 6, 3, 5, 4, 0]), 8)
  assert n == 3 and row[:5].tolist() == [0, 0, 1, 1, 2]
  assert start[:5].tolist() == [6, 0, 5, 0, 0]


ALONE_B = np.arange(8)
SHARED_B = np.array([0, 0, 2, 2, 2, 5, 5, 5])  # Rows 0, 1 have one prompt; ...


@pytest.fixture
def trunk_B(layout, monkeypatch):
  """The row whose prompt each row has; shared prompts are in packed rows or stored apart."""
  if layout != "alone": monkeypatch.setattr(packing, "_SIZES", ((layout == "apart", 1, 1),))
  return ALONE_B if layout == "alone" else SHARED_B


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("layout", ["alone", "together", "apart"])
def test_a_plan_has_every_needed_token_once(parts, trunk_B):
  """What each attends to is tested by the numbers, see test_packed_equals_padded."""
  prompt_B = PROMPT_B[trunk_B]
  plan = packing.plan(prompt_B, COMPLETION_B, X, T, CONFIG, parts=parts, trunk_B=trunk_B)
  is_apart = plan.apart_PX is not None
  assert is_apart == (packing._SIZES == ((True, 1, 1),))
  split = [[None] * parts if x is None else np.split(x, parts) for x in plan]
  for source_YC, trunk_YC, state_U, token_YC, target_U, token_BT, _, _ in zip(*split):
    used = source_YC[source_YC >= 0]
    assert len(used) == len(set(used)) == np.count_nonzero(trunk_YC >= 0)
    # Backward gathers with the inverses.
    listed = np.flatnonzero(target_U >= 0)
    np.testing.assert_array_equal(token_YC.reshape(-1)[state_U[listed]], listed)
    np.testing.assert_array_equal(token_BT.reshape(-1)[target_U[listed]], listed)
    assert len(listed) == (token_YC >= 0).sum() == (token_BT >= 0).sum()
  np.testing.assert_array_equal(plan.token_BT >= 0, np.arange(T) < COMPLETION_B[:, None])
  tokens = (plan.source_YC >= 0).sum() + (is_apart and (plan.apart_PX >= 0).sum())
  if trunk_B is ALONE_B:
    assert tokens == (prompt_B + COMPLETION_B - 1)[COMPLETION_B > 0].sum()
  elif parts == 1:  # Prompts of 4, 2 and 1 tokens, once each; all fits.
    assert tokens == 3 + 1 + 0 + COMPLETION_B.sum()


def test_a_group_too_long_for_one_packed_row_has_its_prompt_again():
  # After a trunk of 3, two completions of 3 fill the 9 columns.
  lengths = np.full(4, 3), np.zeros(4, int), 4
  together = packing._lay_out_together(np.full(4, 4), *lengths, 9)
  assert together[:3] == (0, 2, 9) and together.trunk_B.tolist() == [0, 0, 2, 2]
  # With its trunk apart it does not: packed rows of 5 hold one completion each.
  apart = packing._lay_out_apart(*lengths, 4, packing._Size(p=1, y=4, c=5, u=20))
  assert apart[:3] == (1, 4, 5) and apart.trunk_B.tolist() == [0, 0, 0, 0]


def test_long_completions_of_a_prompt_have_it_once():
  """8 prompts of 64 with 4 completions of 128: three quarters of the padded tokens."""
  lengths = np.full(32, 64), np.full(32, 128), 64, 128
  plan = packing.plan(*lengths, CONFIG, trunk_B=np.arange(32) // 4 * 4)
  assert plan.apart_PX.shape == (8, 64) and plan.source_YC.shape == (32, 128)
  np.testing.assert_array_equal(plan.apart_Y, np.arange(32) // 4)
  assert packing.plan(*lengths, CONFIG).apart_PX is None


def test_neighbours_with_the_same_prompt():
  tokens = np.array([[7, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [7, 1, 2], [7, 1, 2]])
  assert packing.find_trunks(tokens, np.array([3, 2, 2, 3, 3, 3])).tolist() == [0, 1, 1, 3, 4, 4]


LENGTHS = {  # (rng, share of the run that is over, number of rows) -> shares of the longest
    "like now": lambda r, _, n: r.lognormal(np.log(0.3), 0.35, n),
    "growing": lambda r, at, n: r.lognormal(np.log(0.02 + 0.7 * at), 0.4, n),
    "shrinking": lambda r, at, n: r.lognormal(np.log(0.7 - 0.68 * at), 0.4, n),
    "two kinds": lambda r, _, n: np.where(r.random(n) < 0.3, 0.95, r.uniform(0, 0.2, n)),
    "heavy tail": lambda r, _, n: 0.03 * (1 + r.pareto(1.2, n)),
    "any": lambda r, _, n: r.lognormal(np.log(2.0**-r.uniform(-1, 9)), r.uniform(0, 2), n)}


@pytest.mark.parametrize("attention, group", [("blocks", 8), ("blocks", 3), ("blocks", 1),
                                              ("cudnn", 8), ("splash", 8)])
def test_a_run_has_at_most_eight_shapes_whatever_lengths_do(attention, group):
  config = dataclasses.replace(CONFIG, d_model=896, attention=attention, windows=None)
  (x, t, parts), rows, steps, met = (64, 256, 2), 48, 25, set()
  for i, lengths in enumerate(LENGTHS.values()):
    r, used, taken = np.random.default_rng(i), 0, 0
    for i_step in range(steps):
      prompt_B = np.repeat(r.integers(10, x + 1, rows // group), group)
      completion_B = np.clip(t * lengths(r, i_step / steps, rows), 1, t).astype(int)
      if i_step % 5 == 0: completion_B[r.random(rows) < 0.3] = 0
      plan = packing.plan(prompt_B, completion_B, x, t, config, parts=parts,
                          trunk_B=np.arange(rows) // group * group)
      met.add(tuple(np.shape(leaf) for leaf in plan))
      used += sum((leaf >= 0).sum() for leaf in (plan.source_YC, plan.apart_PX) if leaf is not None)
      taken += sum(leaf.size for leaf in (plan.source_YC, plan.apart_PX) if leaf is not None)
    assert taken <= rows * (x + t) * steps
    if i == 0 and attention != "cudnn": assert taken < 1.7 * used
  assert 3 < len(met) <= 8


@pytest.mark.parametrize("rows", [1, 7, 17, 40])
def test_full_rows_take_what_the_padded_batch_takes(rows):
  full = np.full(rows, X), np.full(rows, T), X, T
  plan = packing.plan(*full, CONFIG)
  assert plan.source_YC.shape == (rows, X + T) and len(plan.state_U) == rows * T
  plan = packing.plan(*full, CONFIG, trunk_B=np.zeros(rows, int))
  p, (m, w) = 0 if plan.apart_PX is None else len(plan.apart_PX), plan.source_YC.shape
  assert size.layer_bytes(CONFIG, p, X, X) + size.layer_bytes(
      CONFIG, m, w, w + X * bool(p)) <= size.layer_bytes(CONFIG, rows, X + T, X + T)


def test_a_microbatch_without_completions():
  completion_B = np.array([0, 0, 0, 0, 3, 1, 2, 4])
  plan = packing.plan(PROMPT_B[SHARED_B], completion_B, X, T, CONFIG, parts=2, trunk_B=SHARED_B)
  source = plan.source_YC if plan.apart_PX is None else plan.apart_PX
  half = len(source) // 2
  assert (source[:half] < 0).all() and (source[half:] >= 0).any()


@pytest.fixture(scope="module")
def rollouts():
  rng = np.random.default_rng(0)
  return records.Rollouts(
      tokens_BS=rng.integers(0, V, (8, X + T)).astype(np.int32),
      prompt_len_B=PROMPT_B, completion_len_B=COMPLETION_B,
      sampler_logps_BT=np.zeros((8, T), np.float32),
      finish_B=np.zeros(8, np.int32), prompt_P=None)


def _outputs(params, config, batch):
  """Log-probs, entropy, the two most likely tokens and values, [rows, 5, T]."""
  r, plan = batch
  args = params, config, r.tokens_BS, r.positions_BS, r.valid_BS
  logps_BT, entropy_BT, top_BTn = logps.logps(
      *args, completion_width=T, temperature=0.7, chunk=8, plan=plan, statistics=(("top", 2),))
  return jnp.stack([
      logps_BT, entropy_BT, top_BTn[:, :, 0], top_BTn[:, :, 1],
      value.values(*args, completion_width=T, plan=plan)], axis=1)


WEIGHTS = np.random.default_rng(1).normal(size=(8, 5, T)).astype(np.float32)


@functools.partial(jax.jit, static_argnums=(1, 4))
def outputs_and_gradients(params, config, rollouts, plan, parts):
  def total(params):
    out = step.map_microbatches(functools.partial(_outputs, params, config), (rollouts, plan),
                                parts)
    return jnp.sum(out * WEIGHTS), out
  (_, out), gradients = jax.value_and_grad(total, has_aux=True)(params)
  return out, gradients


# The first two are one program. tests/test_whole_minibatch.py cuts rows without trunks in parts.
@pytest.mark.parametrize("layout, parts", [("alone", 1), ("together", 1), ("apart", 4)])
def test_packed_equals_padded_and_so_do_gradients(rollouts, trunk_B, parts):
  rollouts = rollouts.replace(
      prompt_len_B=PROMPT_B[trunk_B], tokens_BS=np.concatenate(
          [rollouts.tokens_BS[trunk_B, :X], rollouts.tokens_BS[:, X:]], axis=1))
  params = transformer.init(CONFIG, jax.random.key(0))
  params["embed"]["w_VD"] *= 15  # Logits of size one.
  params = value.init(CONFIG, params) | params
  params["value"]["w_D1"] += 1.0
  plan = packing.plan(PROMPT_B[trunk_B], COMPLETION_B, X, T, CONFIG, parts=parts, trunk_B=trunk_B)
  padded, padded_gradients = outputs_and_gradients(params, CONFIG, rollouts, None, 1)
  packed, packed_gradients = outputs_and_gradients(params, CONFIG, rollouts, plan, parts)
  assert (np.abs(padded).max(axis=(0, 2)) > 0.5).all()
  close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
  close(packed, padded)
  assert max(np.abs(g).max() for g in jax.tree.leaves(padded_gradients)) > 0.1
  jax.tree.map(close, packed_gradients, padded_gradients)
