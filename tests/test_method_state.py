"""State that methods keep between steps: declared, moved once per step, saved and resumed."""
import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records, resolve
from rlx.core.method import INITIAL, make_state, method
from rlx.io import checkpoint, metrics as io_metrics
from rlx.learner import sharding
from rlx.loops import rl, session
from rlx.stages import host_state, rewards_advantages
from tests import tiny

nan = np.nan
OUTSIDE = '''
import jax.numpy as jnp
import numpy as np
from rlx.core import masked
from rlx.core.method import INITIAL, method

@method(state=dict(mean_E=lambda start: start))
def centred(scores_BE, learn_B, *, start=0.25, decay=0.5, mean_E=INITIAL):
  """The first score minus its running mean: r = s - m, m <- decay m + (1 - decay) mean s."""
  after_E = decay * mean_E + (1 - decay) * masked.mean(scores_BE, learn_B[:, None], axis=0)
  return scores_BE[:, 0] - mean_E[0], dict(seen=mean_E[0]), dict(mean_E=after_E)

@method(state=dict(calls=np.int32(0)))
def counted(rewards_PG, learn_PG, *, calls=INITIAL):
  """The reward, and how many steps there were before: A = r."""
  return rewards_PG, dict(calls=calls), dict(calls=calls + 1)
'''
STATES = {"rewards.outcome": {"multiplier_E", "velocity_E"}, "rewards.mine": {"mean_E"},
          "advantages.mine": {"calls"}, "learner.reward_std_filter": {"ema"}}


@pytest.fixture(scope="module")
def four_steps(tiny_files, tmp_path_factory):
  """(built run, workdir) of four steps of several updates, in parts, with state of every kind."""
  folder = tmp_path_factory.mktemp("state")
  (folder / "keeps_state.py").write_text(OUTSIDE)
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(folder)
    c = tiny.config(
        tiny_files, rewards=dict(
            outcome=dict(name="constrained.lagrangian", coef=1.0, thresholds=(1.0, 0.0), rate=1.0),
            mine=dict(name="keeps_state:centred", coef=0.5)),
        advantages=dict(outcome=dict(name="batch.reinforce_pp"),
                        mine=dict(name="keeps_state:counted"), whiten=False),
        verifier__scores=("format.ascii_share", "format.ascii_share"), rollouts__oversample=1.0,
        rollouts__filter_groups=dict(name="filter_groups.with_verdict"), learner__epochs=2,
        learner__microbatches=2, learner__reward_std_filter=dict(
            name="reward_std_filter.running_mean", fraction=0.0, start=0, filter_from=1))
    run = tiny.build_run(c)
    with tiny.building(run):
      rl.train(c, folder / "whole")
      rl.train(c, tiny.killed_after(folder / "whole", 2, folder / "parts"))
  return run, folder / "whole", folder / "parts"


def test_a_run_resumed_in_the_middle_has_the_same_state(four_steps):
  run, whole, parts = four_steps
  (state, _), (resumed, _) = (tiny.restored(run, w) for w in (whole, parts))
  tiny.assert_equal_trees(state, resumed)
  np.testing.assert_equal(tiny.lines(parts), tiny.lines(whole))
  assert {key: set(own) for key, own in state.method_state.items()} == STATES


def test_state_moves_once_a_step(four_steps):
  """Not with each of four updates or eight parts; a step reads what the one before returned."""
  run, whole, _ = four_steps
  lines, state = io_metrics.read(whole), tiny.restored(run, whole)[0].method_state
  assert [l["advantages/mine_calls"] for l in lines] == [0, 1, 2, 3]
  calls = state["advantages.mine"]["calls"]
  assert calls == 4 and calls.dtype == np.int32
  seen = [l["rewards/mine_seen"] for l in lines] + [state["rewards.mine"]["mean_E"][0]]
  moves = [l["rewards/mine"] / 2 for l in lines]  # Half of the mean of r = s - m.
  assert seen[0] == 0.25 and np.abs(moves).min() > 1e-3
  np.testing.assert_allclose(np.diff(seen), moves, atol=1e-6)


def test_a_weight_rises_while_its_score_is_below_the_threshold_and_falls_beyond_it(four_steps):
  """Both scores are the same share of letters: always below 1 in the mean, and above 0."""
  lines = io_metrics.read(four_steps[1])
  below, beyond = ([l[f"rewards/outcome_weight_{e}"] for l in lines] for e in (0, 1))
  assert below[0] == beyond[0] == 0.5
  assert (np.diff(below) > 0).all() and (np.diff(beyond) < 0).all()


def test_a_step_that_is_thrown_away_moves_no_state(four_steps, monkeypatch):
  run, *_ = four_steps
  compute = rewards_advantages.RewardsAdvantages.__call__
  def poisoned(self, state, placed):
    placed, metrics = compute(self, state, placed)
    return placed.with_columns(advantages_BT=placed.batch.advantages_BT * nan), metrics
  before = run.init()
  kept = jax.device_get(before.method_state)
  step = lambda: rl.iteration(run, run.init(), host_state.HostState(rehearsed={}), 0, tiny.CLOCK)
  after = step()[0].method_state
  assert not np.array_equal(after["rewards.outcome"]["multiplier_E"],
                            kept["rewards.outcome"]["multiplier_E"])
  monkeypatch.setattr(rewards_advantages.RewardsAdvantages, "__call__", poisoned)
  state, _, _, metrics = step()
  assert metrics["policy/nonfinite"] == 1 and state.step == 1
  tiny.assert_equal_trees(jax.device_get(state.method_state), kept)


@pytest.mark.parametrize("nonfinite, moves", [(0., True), (.5, False), (1., False)])
def test_an_adaptive_kl_coefficient_stays_where_an_update_was_skipped(four_steps, nonfinite, moves):
  """Where its KL may be NaN; also if one of several updates was."""
  end_step = dataclasses.replace(four_steps[0].end_step, kl_target=0.1)
  state = records.TrainState(step=0, policy=None, policy_opt=None, kl_coef=jnp.float32(1))
  kl = 0.2 if moves else nan
  after = end_step(state, {"policy/kl_ref": jnp.float32(kl), "prm/nonfinite": jnp.float32(0),
                           "policy/nonfinite": jnp.float32(nonfinite)}, None)
  assert (after.kl_coef > 1) if moves else after.kl_coef == 1


def test_every_device_has_the_state(four_steps):
  """Whatever its name ends in; it is that of one device."""
  run, *_ = four_steps
  draw = np.random.default_rng(0)
  f32 = lambda *shape: draw.normal(size=shape).astype(np.float32)
  batch = records.Batch(
      group=4, action_BT=np.ones((16, 3), bool), outcome_B=f32(16), scores_BE=f32(16, 2),
      old_logps_BT=f32(16, 3), ref_logps_BT=f32(16, 3))
  start = types.SimpleNamespace(step=0, kl_coef=np.float32(0), method_state=run.methods.make_state(
      dict(E=2)))
  _, _, expected = run.rewards_advantages.compute(start, batch)
  mesh = sharding.make_mesh(data=2, fsdp=2, tensor=2)
  start.method_state = sharding.replicate(start.method_state, mesh)
  _, metrics, after = run.rewards_advantages.compute(start, sharding.place_rows(batch, mesh))
  end_step = dataclasses.replace(run.end_step, mesh=mesh)
  state = records.TrainState(step=0, policy=None, policy_opt=None, kl_coef=jnp.float32(0),
                             method_state=start.method_state)
  after = end_step(state, metrics, after).method_state
  assert all(x.sharding.is_fully_replicated for x in jax.tree.leaves(after))
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), after, expected)
  rows = lambda place: dict(a=dict(last_B=place(np.arange(8, dtype=np.float32), mesh)))
  after = end_step(state.replace(method_state=rows(sharding.replicate)), {},
                   rows(sharding.place_rows)).method_state["a"]["last_B"]
  assert after.sharding.is_fully_replicated and after.tolist() == list(range(8))
  # K is the axis of key-value heads in parameters, which tensor=2 would divide.
  shapes = sharding.replicate_shapes(dict(a=dict(share_K=np.zeros(3, np.float32))), mesh)
  assert shapes["a"]["share_K"].sharding.is_fully_replicated
  assert sharding.replicate(dict(share_K=np.zeros(3)), mesh)["share_K"].sharding.is_fully_replicated


def saved(folder, state):
  checkpoints = checkpoint.Checkpoints(folder)
  checkpoints.save(3, state, {})
  checkpoints.close()
  return checkpoint.Checkpoints(folder)


def train_state(**method_state):
  return records.TrainState(step=0, policy=dict(w_D=jnp.ones(2)), policy_opt=None,
                            kl_coef=jnp.float32(0), method_state=method_state or None)


SPREAD = {"learner.reward_std_filter": dict(ema=jnp.float32(nan))}


def test_the_running_spread_of_an_earlier_versions_checkpoint_is_read(tmp_path):
  before = vars(train_state()) | dict(step=3, reward_std=jnp.float32(.25))
  del before["method_state"]
  state, _ = session.restore(saved(tmp_path, before), lambda: train_state(**SPREAD))
  assert state.step == 3 and state.method_state["learner.reward_std_filter"]["ema"] == .25


@pytest.mark.parametrize("there, wanted, message", [
    ({}, SPREAD, "method_state.learner.reward_std_filter.ema has shape none, this config makes it "
                 r"\(\); use the config"),
    (SPREAD, {}, r"reward_std_filter.ema has shape \(\), this config makes it none"),
    ({"rewards.a": dict(mean_E=np.zeros(2))}, {"rewards.a": dict(mean_E=np.zeros(3))},
     r"method_state.rewards.a.mean_E has shape \(2,\), this config makes it \(3,\)")])
def test_a_checkpoint_with_other_state_is_refused(tmp_path, there, wanted, message):
  checkpoints = saved(tmp_path, train_state(**there))
  with pytest.raises(ValueError, match=message) as e:
    session.restore(checkpoints, lambda: train_state(**wanted))
  assert "\n" not in str(e.value)


def declared(state, after):
  """A method whose state is x_E and returns `after` for it."""
  @method(state={"x_E": state})
  def mine(rewards_PG, learn_PG, *, start=3.0, x_E=INITIAL):
    return (rewards_PG, {}, after(x_E)) if callable(after) else after
  return mine


REWARDS, VALID = np.ones((2, 2), np.float32), np.ones((2, 2), bool)


@pytest.mark.parametrize("state, after, message", [
    (0.0, 1.0, r"name: mine has the state \['x_E'\], and returns \(value, metrics, {name"),
    (0.0, (1.0, {}), r"name: mine has the state \['x_E'\], and returns \(value, metrics, {name"),
    (0.0, lambda x: dict(y_E=x), r"name: mine has the state \['x_E'\], and"),
    (0.0, lambda x: dict(x_E=x[0]),
     r"name: mine makes its state x_E float32\[\]; it was float32\[2\]"),
    (np.int32(0), lambda x: dict(x_E=x + .5),
     r"makes its state x_E float32\[2\]; it was int32\[2\]"),
    (np.zeros(3), lambda x: dict(x_E=x),
     r"its state x_E starts with an array of shape \(3,\); its axes have the sizes \(2,\)")])
def test_what_a_method_does_with_its_state_is_checked(state, after, message):
  mine = resolve.resolve("advantages", dict(name=declared(state, after)))
  with pytest.raises(ValueError, match=message):
    mine(records.Batch(group=2, rewards_B=REWARDS.ravel(), action_BT=VALID.reshape(4, 1),
                       outcome_B=REWARDS.ravel()),
         **make_state(mine.state, mine.options, dict(E=2)))


def test_state_is_declared():
  """An undeclared third result, an argument that can be set, and an axis of unknown size."""
  batch = records.Batch(group=2, outcome_B=REWARDS.ravel(), action_BT=VALID.reshape(4, 1))
  more = resolve.resolve("rewards", dict(name=lambda outcome_B: (outcome_B, {}, dict(a=1))))
  with pytest.raises(ValueError, match="name: it returns 3 values; state is declared"): more(batch)
  with pytest.raises(ValueError, match="mine: the state 'y' is no keyword-only argument of it."):
    @method(state=dict(y=0.0))
    def mine(outcome_B, y): return outcome_B, {}, dict(y=y)
  fn = declared(lambda start: start, lambda x: dict(x_E=x))
  with pytest.raises(ValueError, match=r"advantages.x_E: .* takes \['start'\]"):
    resolve.resolve("advantages", dict(name=fn, x_E=0.0))
  with pytest.raises(ValueError, match=r"x_E starts with .*sizes \(None,\), None if it is not"):
    fn(REWARDS, VALID)
  mine = resolve.resolve("advantages", dict(name=fn, start=2.0))
  assert make_state(mine.state, mine.options, dict(E=2))["x_E"].tolist() == [2, 2]


def test_state_is_neither_masked_nor_differentiated():
  """One that has the shape of a mask by chance."""
  @method(state=dict(x_PG=1.0))
  def mine(rewards_PG, learn_PG, *, x_PG=INITIAL):
    return rewards_PG * x_PG, {}, dict(x_PG=x_PG + rewards_PG)
  learn_PG = np.array([[True, False]])
  rewards_PG, _, state = mine(np.ones((1, 2), np.float32), learn_PG, x_PG=np.float32([[2, 3]]))
  assert rewards_PG.tolist() == [[2, 0]] and state["x_PG"].tolist() == [[3, 3]]
  slope_PG = jax.grad(lambda x_PG: mine(x_PG, learn_PG)[2]["x_PG"].sum())(rewards_PG)
  assert not slope_PG.any()
