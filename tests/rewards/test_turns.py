"""Rewards of turns against loops over ragged episodes; tests/test_two_turns.py has numbers."""
import inspect

import jax
import numpy as np
import pytest

from rlx.rewards import implicit, steps, turns
from tests import whole

steps = whole.compile_module(steps)
implicit, turns = (whole.compile_module(x, whole.jit) for x in (implicit, turns))

nan = np.nan
B, T = 24, 16


@pytest.fixture(autouse=True)
def _float64():
  with jax.enable_x64(True): yield


def episodes(seed=0):
  """Columns of random episodes: what is outside of learn_BT, and of learn_B, is garbage.

  Some rows are empty or not valid, some turns have no reward, some follow each other directly.
  """
  draw = np.random.default_rng(seed)
  shape = B, T
  action_BT, turn_BT = np.zeros(shape, bool), draw.integers(-1, 4, shape)
  ends_BT, learn_B = draw.random(shape) < .5, draw.random(B) < .8
  for b in range(B):
    start = 0
    for k in range(draw.integers(0, 5)):
      end = start + draw.integers(1, 4)
      action_BT[b, start:end], turn_BT[b, start:end], ends_BT[b, start:end] = True, k, False
      ends_BT[b, end - 1] = True
      start = end + draw.integers(0, 2)
  learn_B &= action_BT.any(1)
  learn_BT = action_BT & learn_B[:, None]
  floats = lambda: np.where(learn_BT, draw.normal(size=shape), nan)
  rewarded_BT = learn_BT & ends_BT & (draw.random(shape) < .8)
  return dict(
      turn_rewards_BT=np.where(rewarded_BT, draw.random(shape), nan), turn_ends_BT=ends_BT,
      turn_BT=turn_BT, learn_BT=learn_BT, learn_B=learn_B,
      outcome_B=np.where(learn_B, draw.random(B), nan),
      scores_BE=np.where(learn_B[:, None], draw.random((B, 2)), nan),
      prm_logps_BT=floats(), prm_ref_logps_BT=floats(), prm_beta=np.float64(.3))


def call(fn, columns, **options):
  """The rewards that a function gives for the columns it reads, in rows of one width, 2T."""
  names, width = inspect.signature(fn).parameters, columns["learn_BT"].shape[1]
  out = fn(**{k: np.pad(x, ((0, 0), (0, 2 * T - width))) if k.endswith("_BT") else x
              for k, x in columns.items() if k in names}, **options)
  return np.asarray(out[0] if isinstance(out, tuple) else out)[:, :width]


# The same by loops.


def turns_of(c, b):
  """The columns of each turn."""
  by_number = {}
  for t in np.flatnonzero(c["learn_BT"][b]): by_number.setdefault(c["turn_BT"][b, t], []).append(t)
  return list(by_number.values())


def on_ends(c, reward):
  """[B, T] from what a function of the row and its turns gives to each turn."""
  out = np.zeros((B, T))
  for b in np.flatnonzero(c["learn_B"]):
    for at, r in zip(turns_of(c, b), reward(b, turns_of(c, b))): out[b, at[-1]] = r
  return out


def given(c, b, at): return np.nan_to_num(c["turn_rewards_BT"][b, at[-1]])


def environment_by_loops(c): return on_ends(c, lambda b, of: [given(c, b, at) for at in of])


def gate_by_loops(c, *, thresholds, top="verdict"):
  def reward(b, of):
    rewards = [given(c, b, at) for at in of]
    outcome = c["outcome_B"][b] if top == "verdict" else rewards[-1]
    levels = [outcome, *(c["scores_BE"][b] if "scores_BE" in c else ())]
    is_open = [x >= least for x, least in zip(levels, thresholds)]
    out = [r * all(is_open) for r in rewards]
    if top == "last": out[-1] = rewards[-1]
    for e in range(1, len(levels)): out[-1] += levels[e] * all(is_open[:e])
    return out
  return on_ends(c, reward)


def renorm_by_loops(c, *, mu=1.0, top="verdict"):
  def reward(b, of):
    outcome = c["outcome_B"][b] if top == "verdict" else given(c, b, of[-1])
    before = [0 if np.isnan(r) else r + outcome - mu
              for r in (c["turn_rewards_BT"][b, at[-1]] for at in of[:-1])]
    return [*before, outcome if top == "last" else 0]
  return on_ends(c, reward)


def implicit_by_loops(c, *, granularity, norm="max_return", include_last=True, lam=0.0,
                      use_outcome=False):
  def reward(b, of):
    r = {t: c["prm_beta"] * (c["prm_logps_BT"] - c["prm_ref_logps_BT"])[b, t]
         for at in of for t in at}
    last = max(r)
    if use_outcome: r[last] = c["outcome_B"][b] - sum(x for t, x in r.items() if t < last)
    tokens = sorted(r)
    if lam:
      r = {t: sum(lam**j * r[s] for j, s in enumerate(tokens[i:])) for i, t in enumerate(tokens)}
    if not include_last: r[last] = 0
    return [sum(r[t] for t in at) for at in of]
  out = on_ends(c, reward)
  if norm == "none": return out
  return out / (np.abs(np.cumsum(out[:, ::-1], axis=1)).max() + 1e-6)


LEVELS = dict(thresholds=(.4, .6, .3))
CASES = [
    (turns.environment, environment_by_loops, dict()),
    (turns.gate, gate_by_loops, LEVELS), (turns.gate, gate_by_loops, LEVELS | dict(top="last")),
    (turns.renorm, renorm_by_loops, dict()), (turns.renorm, renorm_by_loops, dict(mu=.3)),
    (turns.renorm, renorm_by_loops, dict(mu=.3, top="last")),
    *((implicit.process, implicit_by_loops, dict(granularity="turn", **o)) for o in (
        dict(), dict(norm="none"), dict(norm="none", lam=.6), dict(lam=.6, use_outcome=True),
        dict(norm="none", include_last=False)))]
named = pytest.mark.parametrize(
    "fn, by_loops, options", CASES, ids=[f"{fn.__name__}-{o}" for fn, _, o in CASES])


@named
def test_by_loops(fn, by_loops, options):
  for seed in range(3):
    columns = episodes(seed)
    got_BT, want_BT = call(fn, columns, **options), by_loops(columns, **options)
    assert np.abs(want_BT).max() > .3
    np.testing.assert_allclose(got_BT, want_BT, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(got_BT[~columns["learn_BT"]], 0)


def test_the_gate_without_levels_in_between():
  with_scores = episodes()
  without = {name: x for name, x in with_scores.items() if name != "scores_BE"}
  for top in ("verdict", "last"):
    want_BT = gate_by_loops(without, thresholds=(.6,), top=top)
    for columns in (without, with_scores):
      np.testing.assert_allclose(call(turns.gate, columns, thresholds=(.6,), top=top), want_BT)
  for columns, thresholds, n in ((without, (), 0), (without, (.5, .5), 0),
                                 (with_scores, (.5, .5), 2)):
    with pytest.raises(ValueError, match=rf"^thresholds=\(.*\): 1 for the outcome, .* \({n}\)."):
      call(turns.gate, columns, thresholds=thresholds)


@named
def test_what_was_read_has_no_effect(fn, by_loops, options):
  """NaN, numbers and ends on observations, padding and rows that are not valid."""
  columns = episodes()
  want_BT = call(fn, columns, **options)
  draw, changed = np.random.default_rng(1), {}
  for name, x in columns.items():
    garbage = {"f": 1e30, "i": draw.integers(-9, 2**31 - 1, x.shape),
               "b": draw.random(x.shape) < .5}[x.dtype.kind]
    out = {2: ~columns["learn_BT"], 1: ~columns["learn_B"]}.get(x.ndim)
    if name == "scores_BE": out = np.repeat(~columns["learn_B"][:, None], 2, axis=1)
    is_mask = name.startswith("learn")
    changed[name] = x if is_mask or out is None else np.where(out, garbage, x)
  np.testing.assert_array_equal(call(fn, changed, **options), want_BT)


@named
def test_observations_are_no_time(fn, by_loops, options):
  """The same episodes with another token between two turns wherever there is one already."""
  columns = episodes()
  read_BT = ~columns["learn_BT"] & (np.cumsum(columns["learn_BT"][:, ::-1], 1)[:, ::-1] > 0)
  assert read_BT.any()
  longer = dict(columns)
  for name, x in columns.items():
    if x.shape != (B, T): continue
    longer[name] = np.zeros((B, 2 * T), x.dtype)
    for b in range(B):
      row = np.repeat(x[b], 1 + read_BT[b])
      longer[name][b, :len(row)] = row
  np.testing.assert_allclose(call(fn, longer, **options)[longer["learn_BT"]],
                             call(fn, columns, **options)[columns["learn_BT"]],
                             rtol=1e-9, atol=1e-12)


def test_identities_of_granularities():
  """Turns of one token are tokens, one turn is the completion, and steps can be turns."""
  c = episodes()
  run = lambda columns, granularity, **more: call(
      implicit.process, columns | more, granularity=granularity)
  same = lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
  same(run(c | dict(turn_BT=np.cumsum(c["learn_BT"], axis=1)), "turn"), run(c, "token"))
  same(run(c, "turn"), run(c, "step", step_ends_BT=c["turn_ends_BT"]))
  one_B = np.array([len(turns_of(c, b)) < 2 for b in range(B)])
  c["learn_B"], c["learn_BT"] = c["learn_B"] & one_B, c["learn_BT"] & one_B[:, None]
  assert c["learn_B"].any()
  same(run(c, "turn"), run(c, "completion"))


def test_turns_are_needed_for_their_rewards():
  columns = episodes()
  del columns["turn_BT"]
  with pytest.raises(ValueError, match="^granularity='turn' needs turn_BT."):
    call(implicit.process, columns, granularity="turn")


def test_methods_of_steps_take_turns():
  """As steps.mix with the environment's rewards as scores; there, unknown steps are none."""
  c = episodes()
  args = [c[k] for k in ("turn_rewards_BT", "turn_ends_BT", "learn_BT", "outcome_B", "learn_B")]
  np.testing.assert_allclose(call(turns.renorm, c, mu=.4),
                             steps.mix(*args, kind="renorm", mu=.4), rtol=1e-12)
  del c["scores_BE"]
  np.testing.assert_allclose(call(turns.gate, c, thresholds=(.4,)),
                             steps.mix(*args, kind="gate", theta=.4), rtol=1e-12)
