"""Advantages of turns against loops over ragged episodes; tests/test_two_turns.py has numbers."""
import inspect

import jax
import numpy as np
import pytest

from rlx.advantages import combine, group, temporal, turns as eager
from tests import whole

group, temporal = map(whole.compile_module, (group, temporal))
turns = whole.compile_module(eager, whole.jit)

nan = np.nan
P, G, T = 4, 5, 20


@pytest.fixture(autouse=True)
def _float64():
  with jax.enable_x64(True): yield


def episodes(seed, most_turns=4):
  """Columns of random episodes, of a vocabulary so small that some have the same history.

  Some are empty or not valid; some actions are empty. Floats are NaN outside of learn_BT, and
  integers and booleans are anything there.
  """
  draw = np.random.default_rng(seed)
  shape = P * G, T
  learn_PG = draw.random((P, G)) < .9
  learn_PG[-1] = np.arange(G) == 0  # The last prompt's first episode has no rival.
  action_BT, turn_BT = np.zeros(shape, bool), draw.integers(-1, 9, shape)
  ends_BT, prefix_BT = draw.random(shape) < .5, draw.integers(-1, 9, shape)
  numbers = {}
  for b in range(P * G):
    history, n_turns = (), 0 if draw.random() < .1 else draw.integers(1, most_turns + 1)
    for k in range(n_turns):
      n = int(draw.choice(4, p=[.1, .7, .1, .1] if k else [0, .8, .1, .1]))
      at = slice(len(history), len(history) + n)
      action_BT[b, at], turn_BT[b, at], ends_BT[b, at] = True, k, False
      if n: ends_BT[b, at.stop - 1] = True
      # Numbers are in no order, and equal for two prompts by chance.
      prefix_BT[b, at] = numbers.setdefault((b // G, history), hash(history) % 1000)
      action = draw.choice(2, n, p=[.9, .1])
      history += (*action, *(2,) * ((n + action.sum()) % 3))  # A deterministic environment.
  learn_PG &= action_BT.any(1).reshape(P, G)
  learn_BT = action_BT & learn_PG.reshape(-1, 1)
  floats = lambda: np.where(learn_BT, draw.normal(size=shape), nan)
  return dict(rewards_BT=floats(), values_BT=floats(), turn_BT=turn_BT, turn_ends_BT=ends_BT,
              turn_prefix_BT=prefix_BT, learn_BT=learn_BT, learn_PG=learn_PG)


def call_all(fn, columns, **options):
  """What a function gives for the columns it reads, in rows of one width, 2T."""
  names, more = inspect.signature(fn).parameters, 2 * T - columns["learn_BT"].shape[1]
  return fn(**{k: x if k == "learn_PG" else np.pad(x, ((0, 0), (0, more)))
               for k, x in columns.items() if k in names}, **options)


def call(fn, columns, **options):
  """The advantages."""
  out = call_all(fn, columns, **options)
  return np.asarray(out[0] if isinstance(out, tuple) else out)[:, :columns["learn_BT"].shape[1]]


# The same by loops. An episode is a list of turns, and a turn a list of its tokens' columns.


def find_turns(c, b):
  by_number = {}
  for t in np.flatnonzero(c["learn_BT"][b]): by_number.setdefault(c["turn_BT"][b, t], []).append(t)
  return by_number


def rivals(b): return range(b // G * G, (b // G + 1) * G)


def returns(c, b, gamma):
  """{number of a turn: its return}."""
  sums = {k: sum(c["rewards_BT"][b, at]) for k, at in find_turns(c, b).items()}
  return {k: sum(gamma**(l - k) * r for l, r in sums.items() if l >= k) for k in sums}


def on_tokens(c, advantage):
  """[B, T] from a function of row and turn."""
  out = np.zeros(c["learn_BT"].shape)
  for b in range(P * G):
    for k, at in find_turns(c, b).items(): out[b, at] = advantage(b, k)
  return out


def history(c, b, k): return c["turn_prefix_BT"][b, find_turns(c, b)[k][0]]


def same_history(c, b, k):
  return [(j, l) for j in rivals(b) for l in find_turns(c, j)
          if history(c, j, l) == history(c, b, k)]


def valid(b, c): return [j for j in rivals(b) if c["learn_PG"].ravel()[j]]


def to_go_by_loops(c, *, gamma=1.0):
  def fill(row, ends):
    out, g = [], 0
    for r, end in zip(row[::-1], ends[::-1]):
      g = r + (gamma if end else 1) * g
      out.append(g)
    return out[::-1]
  out = np.zeros(c["learn_BT"].shape)
  for b, m in enumerate(c["learn_BT"]):
    out[b, m] = fill(c["rewards_BT"][b, m], c["turn_ends_BT"][b, m])
  return out


def gae_by_loops(c, *, gamma=1.0, lam=1.0, token_lam=1.0):
  out = np.zeros(c["learn_BT"].shape)
  for b in range(P * G):
    next_value = next_advantage = 0
    for k, at in sorted(find_turns(c, b).items(), reverse=True):
      for t in at[::-1]:
        d, l = (gamma, lam) if t == at[-1] else (1, token_lam)
        delta = c["rewards_BT"][b, t] + d * next_value - c["values_BT"][b, t]
        next_value, next_advantage = c["values_BT"][b, t], delta + d * l * next_advantage
        out[b, t] = next_advantage
  return out


def loo_by_loops(c, *, gamma=1.0):
  def advantage(b, k):
    others = [returns(c, j, gamma)[k] for j in rivals(b) if j != b and k in find_turns(c, j)]
    return returns(c, b, gamma)[k] - np.mean(others) if others else 0
  return on_tokens(c, advantage)


def grpo_by_loops(c, *, gamma=1.0, norm="joint", use_std=True, eps=1e-6):
  def is_last(b, k): return norm == "separate" and k == max(find_turns(c, b))
  def score(b, k):
    group_ = [returns(c, j, 0)[l] for j in rivals(b) for l in find_turns(c, j)
              if is_last(j, l) == is_last(b, k)]
    if len(group_) < 2: return 0
    return ((returns(c, b, 0)[k] - np.mean(group_)) /
            (np.std(group_, ddof=1) + eps if use_std else 1))
  def advantage(b, k):
    if len(valid(b, c)) < 2: return 0
    return sum(gamma**(l - k) * score(b, l) for l in find_turns(c, b) if l >= k)
  return on_tokens(c, advantage)


def prefix_by_loops(c, *, gamma=1.0, alone="zero"):
  def advantage(b, k):
    others = [returns(c, j, gamma)[l] for j, l in same_history(c, b, k) if (j, l) != (b, k)]
    if others: return returns(c, b, gamma)[k] - np.mean(others)
    totals = {j: np.nansum(c["rewards_BT"][j]) for j in valid(b, c)}
    if alone == "zero" or len(totals) < 2: return 0
    return totals[b] - np.mean([x for j, x in totals.items() if j != b])
  return on_tokens(c, advantage)


def gigpo_by_loops(c, *, omega=1.0, gamma=1.0, use_std=False, eps=1e-6):
  def against(x, all_of_them):
    if len(all_of_them) < 2: return 0
    return (x - np.mean(all_of_them)) / (np.std(all_of_them, ddof=1) + eps if use_std else 1)
  def advantage(b, k):
    totals = {j: np.nansum(c["rewards_BT"][j]) for j in valid(b, c)}
    group_ = [returns(c, j, gamma)[l] for j, l in same_history(c, b, k)]
    return (against(totals[b], list(totals.values()))
            + omega * against(returns(c, b, gamma)[k], group_))
  return on_tokens(c, advantage)


CASES = [
    (turns.to_go, to_go_by_loops, dict()), (turns.to_go, to_go_by_loops, dict(gamma=.7)),
    (turns.gae, gae_by_loops, dict()),
    (turns.gae, gae_by_loops, dict(gamma=.7, lam=.6)),
    (turns.gae, gae_by_loops, dict(gamma=.7, lam=.6, token_lam=.9)),
    (turns.loo, loo_by_loops, dict()), (turns.loo, loo_by_loops, dict(gamma=.7)),
    (turns.loo, loo_by_loops, dict(gamma=0)),
    (turns.grpo, grpo_by_loops, dict()), (turns.grpo, grpo_by_loops, dict(gamma=.7)),
    (turns.grpo, grpo_by_loops, dict(gamma=.7, norm="separate")),
    (turns.grpo, grpo_by_loops, dict(gamma=0, use_std=False)),
    (turns.prefix, prefix_by_loops, dict()), (turns.prefix, prefix_by_loops, dict(gamma=.7)),
    (turns.prefix, prefix_by_loops, dict(gamma=.7, alone="episode")),
    (turns.gigpo, gigpo_by_loops, dict()),
    (turns.gigpo, gigpo_by_loops, dict(gamma=.7, omega=2.0)),
    (turns.gigpo, gigpo_by_loops, dict(gamma=.7, omega=.5, use_std=True))]
named = pytest.mark.parametrize(
    "fn, by_loops, options", CASES, ids=[f"{fn.__name__}-{o}" for fn, _, o in CASES])


@named
def test_by_loops(fn, by_loops, options):
  for seed in range(3):
    columns = episodes(seed)
    got_BT, want_BT = call(fn, columns, **options), by_loops(columns, **options)
    assert np.abs(want_BT).max() > .5
    np.testing.assert_allclose(got_BT, want_BT, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(got_BT[~columns["learn_BT"]], 0)


def test_the_random_episodes_have_what_is_to_be_tested():
  shared, empty_actions = [], 0
  for c in map(episodes, range(3)):
    turns_of = [find_turns(c, b) for b in range(P * G)]
    shared += [len(same_history(c, b, k)) for b in range(P * G) for k in turns_of[b] if k > 0]
    assert not all(turns_of) and c["learn_PG"][-1].sum() < 2
    empty_actions += sum(max(of) + 1 > len(of) for of in turns_of if of)
    assert (np.diff(c["learn_BT"].astype(int)) == 1).any()  # A turn after an observation.
    touching_BT = c["learn_BT"][:, 1:] & c["learn_BT"][:, :-1] & (np.diff(c["turn_BT"]) != 0)
    assert touching_BT.any()  # And without one.
  assert len(turns_of[-G]) > 1 and empty_actions
  assert {1, 2, 3} <= set(shared)  # Also later turns have the same history.


@named
def test_what_was_read_has_no_effect(fn, by_loops, options):
  """NaN, numbers and ends on observations, padding and rows that are not valid."""
  columns = episodes(0)
  want_BT = call(fn, columns, **options)
  draw, out = np.random.default_rng(1), ~columns["learn_BT"]
  def other(x):
    if x.shape != out.shape: return x
    garbage = {"f": 1e30, "i": draw.integers(-9, 2**31 - 1, x.shape),
               "b": draw.random(x.shape) < .5}[x.dtype.kind]
    return np.where(out, garbage, x)
  changed = {k: x if k == "learn_BT" else other(x) for k, x in columns.items()}
  np.testing.assert_array_equal(call(fn, changed, **options), want_BT)


@named
def test_the_order_of_episodes_and_the_numbers_of_histories_are_free(fn, by_loops, options):
  columns, order = episodes(0), np.array([2, 0, 4, 1, 3])
  rows = (np.arange(P)[:, None] * G + order).ravel()
  moved = {k: x[:, order] if k == "learn_PG" else x[rows] for k, x in columns.items()}
  moved["turn_prefix_BT"] = 10**6 - moved["turn_prefix_BT"]
  np.testing.assert_allclose(call(fn, moved, **options), call(fn, columns, **options)[rows],
                             rtol=1e-9, atol=1e-12)


@named
def test_observations_are_no_time(fn, by_loops, options):
  """The same episodes with another token between two turns wherever there is one already."""
  columns = episodes(0)
  read_BT = ~columns["learn_BT"] & (np.cumsum(columns["learn_BT"][:, ::-1], 1)[:, ::-1] > 0)
  longer = {}
  for name, x in columns.items():
    if name == "learn_PG": longer[name] = x; continue
    longer[name] = np.zeros((P * G, 2 * T), x.dtype)
    for b in range(P * G):
      row = np.repeat(x[b], 1 + read_BT[b])
      longer[name][b, :len(row)] = row
  short = call(fn, columns, **options)[columns["learn_BT"]]
  np.testing.assert_allclose(call(fn, longer, **options)[longer["learn_BT"]], short,
                             rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fn, options", [
    (turns.loo, dict(gamma=.95)), (turns.prefix, dict(gamma=.95)),
    (turns.prefix, dict(gamma=.95, alone="episode")),
    (turns.gigpo, dict(gamma=.95)), (turns.gigpo, dict(gamma=.95, use_std=True)),
    (turns.grpo, dict(norm="separate"))], ids=lambda x: getattr(x, "__name__", str(x)))
def test_what_earns_the_same_has_exactly_no_advantage(fn, options):
  """In float32 as in a run, also after division by the spread. Turns have different lengths."""
  fn = getattr(whole.compile_module(eager), fn.__name__)
  with jax.enable_x64(False):
    learn_BT, turn_BT = np.zeros((4, 12), bool), np.zeros((4, 12), int)
    rewards_BT, prefix_BT = np.zeros((4, 12), np.float32), np.zeros((4, 12), int)
    for b, lengths in enumerate([(1, 2, 1, 3), (3, 1, 2, 1), (2, 2, 2, 2), (1, 1, 1, 4)]):
      start = 0
      for k, n in enumerate(lengths):
        at = slice(start + k % 2, start + k % 2 + n)
        learn_BT[b, at], turn_BT[b, at], prefix_BT[b, at] = True, k, k + 10 * (b // 2)
        # Of the last the rewards are different: they are z-scored apart from the others.
        rewards_BT[b, at.stop - 1] = [.1, .1, .1, .7][k] if fn.__name__ == "grpo" else [
            .3, .1, .2, .7][k]
        start = at.stop
    columns = dict(rewards_BT=rewards_BT, turn_BT=turn_BT, learn_BT=learn_BT,
                   turn_prefix_BT=prefix_BT, learn_PG=np.ones((1, 4), bool))
    np.testing.assert_array_equal(call(fn, columns, **options), 0)


def test_one_turn_is_a_completion():
  c = episodes(3, most_turns=1)
  totals_PG = np.nansum(c["rewards_BT"], axis=1).reshape(P, G)
  spread = lambda x_PG: np.asarray(combine.spread(x_PG, c["learn_BT"]))
  same = lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
  rloo_BT = spread(group.rloo(totals_PG, c["learn_PG"]))
  for got in (call(turns.loo, c, gamma=.5), call(turns.prefix, c, gamma=.5)): same(got, rloo_BT)
  same(call(turns.gigpo, c, omega=0.0, use_std=True), spread(group.grpo(totals_PG, c["learn_PG"])))
  same(call(turns.gigpo, c), 2 * spread(group.mean_baseline(totals_PG, c["learn_PG"])))
  same(call(turns.grpo, c, gamma=.5), spread(group.grpo(totals_PG, c["learn_PG"])))
  same(call(turns.to_go, c, gamma=.5), temporal.return_to_go(c["rewards_BT"], c["learn_BT"]))


def test_identities_of_turns():
  c = episodes(4)
  same = lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
  same(call(turns.gae, c, gamma=1.0, lam=.8, token_lam=.8),
       temporal.gae(c["rewards_BT"], c["learn_BT"], c["values_BT"], lam=.8))
  # Without a value model and with lam = 1 there is nothing but the rewards to go.
  same(call(turns.gae, c | dict(values_BT=np.zeros((P * G, T))), gamma=.7),
       call(turns.to_go, c, gamma=.7))
  # The first turns of a prompt have the same history, and all the rewards to go.
  first_BT = c["learn_BT"] & (c["turn_BT"] == 0)
  same(call(turns.prefix, c)[first_BT], call(turns.loo, c)[first_BT])
  totals_PG = np.nansum(c["rewards_BT"], axis=1).reshape(P, G)
  rloo_BT = np.asarray(combine.spread(group.rloo(totals_PG, c["learn_PG"]), c["learn_BT"]))
  same(call(turns.prefix, c)[first_BT], rloo_BT[first_BT])
  # Histories that no two turns share.
  apart = c | dict(turn_prefix_BT=np.arange(P * G)[:, None] * T + c["turn_BT"])
  same(call(turns.prefix, apart, alone="episode"), rloo_BT)
  same(call(turns.gigpo, apart),
       combine.spread(group.mean_baseline(totals_PG, c["learn_PG"]), c["learn_BT"]))
  # What all episodes of a prompt get at their end, no difference has.
  last_BT = c["learn_BT"] & (np.cumsum(c["learn_BT"][:, ::-1], 1)[:, ::-1] == 1)
  more = c | dict(rewards_BT=c["rewards_BT"] + last_BT * np.repeat([1., 2, 3, 4], G)[:, None])
  for fn in (turns.loo, turns.prefix, turns.gigpo): same(call(fn, more), call(fn, c))


def test_the_share_of_turns_that_are_alone():
  c = episodes(0)
  of_turns = [(b, k) for b in range(P * G) for k in find_turns(c, b)]
  want = np.mean([len(same_history(c, b, k)) == 1 for b, k in of_turns])
  for fn in (turns.prefix, turns.gigpo):
    metrics = call_all(fn, c)[1]
    assert 0 < want < 1 and set(metrics) == {"alone"}
    np.testing.assert_allclose(metrics["alone"], want, rtol=1e-12)
