"""Fields: declared once, planned from what methods read, computed once."""
import dataclasses
import sys
import types

import jax
import numpy as np
import pytest

from rlx import build
from rlx.build import updates
from rlx.core import fields, records, rng
from rlx.io import metrics as io_metrics, tokenizer
from rlx.learner import hosts
from rlx.loops import rl
from rlx.models import packing
from rlx.rollouts import padding, trajectories
from rlx.stages import annotate, host_state, rewards_advantages
from tests import stages, tiny, whole

OUTCOME = dict(rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)),
               advantages=dict(outcome=dict(name="group.grpo"), whiten=False))
OUTSIDE = '''
import numpy as np
from rlx.core import fields, masked

@fields.field(np.float32, options=dict(letters="eval.answer"), measure=fields.mean,
              show=fields.number)
def letters_B(texts, *, letters):
  """Characters of each completion that are in eval.answer."""
  return [sum(x in letters for x in text) for text in texts]

@fields.field(None, measure=lambda texts: dict(most=max(map(len, texts))), show=str.upper)
def unread(texts):
  """Read by no method, and logged."""
  return texts

@fields.field(np.float32)
def best_B(outcome_PG, learn_PG, lengths_B):
  """The largest verdict of the group, on each of its rows."""
  return np.where(learn_PG, outcome_PG, 0).max(axis=1).repeat(outcome_PG.shape[1]) + 0 * lengths_B

@fields.field(np.float32, where="model")
def surprise_B(passes, letters_B, best_B, learn_BT):
  """Minus the log-prob of the completion under the policy, and its letters."""
  logps_BT = passes.logps("policy", is_drawn=True)
  surprise_BT = masked.where_valid(-logps_BT, passes.rollouts.action_BT)
  return surprise_BT.sum(axis=1) + 0 * letters_B * best_B

def brief(outcome_B, letters_B, surprise_B, learn_B, *, weight=0.5):
  return masked.where_valid(outcome_B - weight * letters_B + 0 * surprise_B, learn_B)

def has_letters(prompt, text, letters_B):
  assert letters_B == sum(x in "abc" for x in text)
  return float(letters_B > 0)
has_letters.is_bounded = True
'''


def test_what_is_logged_of_a_field(tiny_files):
  """Means and entries of known values, of completions with tokens; not of what is on devices."""
  @fields.field(np.float32, measure=fields.mean, show=fields.number)
  def share_B(texts):
    """A share."""
    return texts
  annotated = annotate.Annotated(
      types.SimpleNamespace(completion_len_B=np.array([1, 0, 2, 3])),
      records.Batch(share_B=np.float32([.25, 9, np.nan, .5])), {}, [share_B.field])
  assert annotated.measure() == {"share/mean": .375}
  assert [annotated.show(b) for b in (0, 2)] == [dict(share=.25), dict(share=None)]
  assert fields.mean([]) == fields.mean([np.nan]) == {}
  step = tiny.build_run(tiny.config(tiny_files, **OUTCOME)).annotate
  for name, message in (("length_B", "length_B: 'length' stands for something else in the "),
                        ("policy_B", "policy_B: 'policy' stands for")):
    with pytest.raises(ValueError, match=message):
      dataclasses.replace(step, columns=dataclasses.replace(
          step.columns, planned=[dataclasses.replace(share_B.field, name=name)]))
  with pytest.raises(ValueError, match="where=.model.: measure and show are for fields on the "):
    fields.field(np.float32, where="model", show=fields.number)


def test_a_field_a_reward_and_a_verifier_from_outside_the_package(
    tiny_files, tmp_path, monkeypatch):
  (tmp_path / "outside.py").write_text(OUTSIDE)
  monkeypatch.syspath_prepend(tmp_path)
  c = tiny.config(tiny_files, steps=2, eval__answer="abc", rewards=dict(
      outcome=dict(name="outside:brief", coef=1.0)), advantages=OUTCOME["advantages"],
                  prompts__columns=dict(verifier="outside:has_letters"),
                  rollouts__filter_groups=dict(name="filter_groups.with_verdict"))
  run = build.build(c)
  with tiny.building(run): rl.train(c, tmp_path / "run")
  lines = io_metrics.read(tmp_path / "run")
  assert len(lines) == 2 and all(l["policy/grad_norm"] > 0 for l in lines)
  assert 0 < lines[0]["rollouts/accuracy"] < 1
  rows = [row for row in io_metrics.tables(tmp_path / "run") if row["step"] == 0]
  assert [row["letters"] for row in rows] == [
      sum(x in "abc" for x in row["completion"]) for row in rows] and rows
  assert [row["unread"] for row in rows] == [row["completion"].upper() for row in rows]
  assert 0 < lines[0]["letters/mean"] <= lines[0]["unread/most"] <= 4
  placed, _ = stages.collected(run, run.init(), host_state.HostState(rehearsed={}), 0, tiny.CLOCK)
  texts = [run.texts.tokenizer.decode(ids) for ids in padding.completions(placed.host)]
  want_B = np.array([sum(x in "abc" for x in text) for text in texts])
  np.testing.assert_array_equal(placed.batch.letters_B, want_B)
  np.testing.assert_array_equal(placed.batch.outcome_B, want_B > 0)
  rewards_B = run.methods.rewards["outcome"][1](placed.batch)
  np.testing.assert_allclose(rewards_B, (want_B > 0) - 0.5 * want_B)
  assert (placed.batch.surprise_B > 0).all()
  np.testing.assert_array_equal(placed.batch.best_PG[:, 0], placed.batch.outcome_PG.max(axis=1))
  sys.modules.pop("outside")


def _table():
  @fields.field(np.float32)
  def one_B(texts): return [len(t) for t in texts]
  @fields.field(np.float32, needs={"key": 0})
  def two_B(one_B): return 2 * one_B
  @fields.field(np.float32)
  def early_B(late_B): return late_B
  @fields.field(np.float32, where="model")
  def late_B(one_B): return one_B
  @fields.field(np.float32)
  def left_B(right_B): return right_B
  @fields.field(np.float32)
  def right_B(left_B): return left_B
  return fields.table(types.SimpleNamespace(**{
      fn.__name__: fn for fn in (one_B, two_B, early_B, late_B, left_B, right_B)}, __name__="m"))


def _plan(required=(), optional=(), key=1):
  return [f.name for f in fields.plan(
      _table(), [fields.Reader("rewards.mine", required, optional)], ("texts",), lambda _: key)]


def test_the_plan_computes_what_is_read_in_order_and_nothing_else():
  assert _plan(("two_PG", "late_B")) == ["one_B", "two_B", "late_B"]
  assert _plan(optional=("two_B",)) == ["one_B", "two_B"]
  assert _plan(optional=("two_B",), key=0) == []
  assert _plan(optional=("unknown_B",)) == []
  declared = _table()
  values = fields.compute([declared[n] for n in ("one_B", "two_B")], "host",
                          dict(texts=["a", "bcd"]), {})
  np.testing.assert_array_equal(values["two_B"], [2, 6])
  assert values["two_B"].dtype == np.float32


@pytest.mark.parametrize("required, key, message", [
    (("none_B",), 1, "rewards.mine reads none_B, which nothing computes."),
    (("two_B",), 0, "key=0: rewards.mine reads two_B, which needs it."),
    (("early_B",), 1, "early_B is computed in the stage 'host' and reads late_B"),
    (("left_B",), 1, "left_B <- right_B <- left_B: fields need each other.")])
def test_a_plan_that_cannot_be(required, key, message):
  with pytest.raises(ValueError, match=message): _plan(required, key=key)


def test_two_declarations_of_one_name():
  one = fields.Field("same_B", np.float32, "One.")
  other = fields.Field("same_B", np.float32, "Other.")
  with pytest.raises(ValueError, match="same_B is declared twice, also in m"):
    fields.table(types.SimpleNamespace(FIELDS=(one, other), __name__="m"))


def test_a_batch_says_what_it_has():
  batch = records.Batch(2, action_BT=np.ones((4, 1), bool), outcome_B=np.float32([1, 0, np.nan, 1]))
  assert batch.outcome_PG.shape == (2, 2) and "demo_B" not in batch
  np.testing.assert_array_equal(batch.learn_B, [True, True, False, True])
  excluded_B = np.int8([records.EXCLUDED.index("filtered"), 0, 0, 0])
  np.testing.assert_array_equal(batch.replace(excluded_B=excluded_B).learn_BT[:, 0],
                                [False, True, False, True])
  with pytest.raises(AttributeError, match=r"The batch has no demo_B; it has \['action_BT', 'out"):
    batch.demo_B  # pylint: disable=pointless-statement


# One way of not learning each: changes of the config, and how many rows of 32 it leaves out.
EXCLUDED = {
    "filtered": (dict(rollouts__filter_groups=dict(name="filter_groups.accuracy_band"),
                      rollouts__fill="drop", rollouts__max_draws=1), 16),
    "thinned": (dict(rollouts__select_completions=dict(name="select_completions.truncated")), None),
    "not_drawn": (dict(rollouts__budget=dict(name="budget.dars", first=2)), None),
    "stored": (dict(rollouts__rehearsal=2, learner__auxiliary=dict(
        name="auxiliary.rehearsal", coef=1.0)), 2),
    "unknown": ({}, 1)}


@pytest.mark.parametrize("reason", EXCLUDED)
def test_a_row_that_does_not_learn_keeps_its_verdict_and_is_counted(tiny_files, reason):
  changes, expected = EXCLUDED[reason]
  run = build.build(tiny.config(tiny_files, **dict(
      OUTCOME | dict(rollouts__filter_groups=dict(name="filter_groups.with_verdict"),
                     rollouts__oversample=1.0, learner__minibatches=1), **changes)))
  said = {}

  def verify(prompts, rollouts):
    """Groups in turn all right and half right; unknown for one prompt."""
    group = len(rollouts.finish_B) // len(prompts)
    outcome_PG = np.zeros((len(prompts), group))
    outcome_PG[::2] = 1
    outcome_PG[1::2, :group // 2] = 1
    if reason == "unknown": outcome_PG[0, 0] = np.nan
    for p, ids_G, outcome_G in zip(prompts, np.array(
        padding.completions(rollouts), object).reshape(len(prompts), group), outcome_PG):
      said.update({(p.id, tuple(ids)): o for ids, o in zip(ids_G, outcome_G)})
    return outcome_PG

  run = stages.with_rewards(run, verify)
  host = host_state.HostState(rehearsed={} if reason != "stored" else {
      p.id: [3, run.texts.tokenizer.end_id] for p in run.prompts.first(4)})
  state = run.init()
  batch, _ = run.collect(state, host, 0, tiny.CLOCK)
  annotated = run.annotate(state, batch)
  _, metrics = run.rewards_advantages(state, run.score(state, run.place(annotated)))
  counts = {name: int(metrics[f"rollouts/excluded/{name}"]) for name in records.EXCLUDED[1:]}
  assert counts[reason] > 0 and (expected is None or counts[reason] == expected), counts
  assert sum(counts.values()) == 32 - int(annotated.batch.learn_B.sum())
  code = records.EXCLUDED.index(reason)
  rows = zip([p for p in batch.prompts for _ in range(len(batch.reward_B) // len(batch.prompts))],
             padding.completions(batch.rollouts), annotated.batch.reward_B,
             annotated.batch.excluded_B)
  checked = 0
  for p, ids, outcome, excluded in rows:
    assert np.isnan(outcome) == (reason == "unknown" and not excluded and np.isnan(
        said.get((p.id, tuple(ids)), 0)))
    if excluded and excluded != code: continue
    if ids and reason != "stored":
      np.testing.assert_equal(outcome, said[p.id, tuple(ids)])
      checked += 1
    if excluded and reason == "stored": assert outcome == 1  # It was right when it was stored.
  assert checked or reason == "stored"


def test_an_empty_row_is_counted():
  batch = records.Batch(2, action_BT=np.array([[True], [False]]), outcome_B=np.array([1., 0.]))
  counts = rewards_advantages.count_excluded(batch)
  assert {k: int(v) for k, v in counts.items() if v} == {"rollouts/excluded/empty": 1}


@pytest.mark.parametrize("minibatches, plans", [(1, 1), (2, 5)])
def test_a_step_reads_devices_once_a_draw_and_plans_once(
    tiny_files, monkeypatch, minibatches, plans):
  """After its completions arrive, nothing is fetched but the order of shuffled minibatches;
  one packing plan for all passes over the batch, and one for each minibatch of a model. Each
  completion is decoded once."""
  fetches, is_allowed, fetch = [], [], hosts.fetch

  def counted(tree):
    fetches.append(tree)
    is_allowed.append(True)
    try:
      return fetch(tree)
    finally:
      is_allowed.pop()

  monkeypatch.setattr(hosts, "fetch", counted)
  run = build.build(tiny.config(
      tiny_files, learner__pack=True, learner__minibatches=minibatches,
      verifier__scores=("format.ascii_share",),
      prm__minibatches=minibatches, rollouts__oversample=1.0, rollouts__max_draws=1,
      rollouts__filter_groups=dict(name="filter_groups.with_verdict")))
  state, host = run.init(), host_state.HostState(rehearsed={})
  made, plan = [], packing.plan
  decoded, decode = [], tokenizer.Tokenizer.decode
  monkeypatch.setattr(tokenizer.Tokenizer, "decode",
                      lambda self, ids: decoded.append(1) or decode(self, ids))
  monkeypatch.setattr(packing, "plan", lambda *a, **k: made.append(1) or plan(*a, **k))
  array = type(jax.numpy.zeros(1))
  value = array._value  # What every way to read an array on the host goes through.

  def read(self):
    assert is_allowed, "A device array was read without hosts.fetch."
    return value.fget(self)

  def guarded(convert):  # On a CPU these may read the buffer of an array themselves.
    def guard(x, *args, **kwargs):
      assert is_allowed or not isinstance(x, array), "A device array was read without hosts.fetch."
      return convert(x, *args, **kwargs)
    return guard

  with monkeypatch.context() as m:
    m.setattr(array, "_value", property(read))
    for name in ("asarray", "array", "where", "ravel", "isnan"):
      m.setattr(np, name, guarded(getattr(np, name)))
    fetches.clear()
    state, annotated, batch, metrics = rl.iteration(run, state, host, 0, tiny.CLOCK)
    in_step = len(fetches)
    with pytest.raises(AssertionError, match="read without hosts.fetch"):
      float(metrics["policy/loss"])
    assert not rl.is_skipped(metrics) and len(fetches) == in_step + 1
  assert len(made) == plans and len(decoded) == len(annotated.rollouts.finish_B)
  assert in_step <= 2 + (minibatches > 1)  # One chunk's state, the completions, the order.


def test_observations_are_read_and_not_learned(tiny_files):
  """Two actions with an observation between them: what it says gets no gradient."""
  config = tiny.config(tiny_files, **OUTCOME, prompts__per_step=1, learner__minibatches=1,
                       prm__minibatches=1, rollouts__max_tokens=8, rollouts__chunk=8)
  run = build.build(config)
  ids = run.texts.tokenizer.encode("abcdefgh", add_bos=False)
  def rollouts(observation):
    rows = [[("action", ids[i:i + 2]), ("observation", observation), ("action", ids[i + 1:i + 3])]
            for i in range(4)]
    return trajectories.rows([ids[:2]] * 4, rows, prompt_width=4, width=8,
                             pad_id=run.texts.tokenizer.pad_id).replace(
                                 prompt_P=np.array([rng.number("x")], np.uint32))
  state = run.init()
  placed = stages.score(run, state, rollouts(ids[5:7]), [1, 0, 0, 1])
  np.testing.assert_array_equal(placed.batch.turn_BT[0], [0, 0, -1, -1, 1, 1, -1, -1])
  np.testing.assert_array_equal(placed.batch.action_BT[0], [1, 1, 0, 0, 1, 1, 0, 0])
  batch, _ = run.rewards_advantages.compute_from_batch(state, placed.batch)
  advantages_BT = np.asarray(batch.advantages_BT)
  assert (advantages_BT[:, 2:4] == 0).all() and (advantages_BT[:, [0, 1, 4, 5]] != 0).all()
  np.testing.assert_array_equal(batch.lengths_B, 4)

  def gradient(mask_observation):
    """Of the policy's loss by the log-prob of each token, before any model."""
    loss = updates.policy_loss_of(config, run.methods)
    logps_BT = -1.0 - 0.1 * np.arange(8)[None] * np.ones((4, 1), np.float32)
    if mask_observation: logps_BT[:, 2:4] = np.nan
    return whole.jit(jax.grad(lambda x: loss(batch.replace(
        logps_BT=x, entropy_BT=x), np.zeros(4))[0].total))(logps_BT)

  grad_BT = np.asarray(gradient(True))  # NaN on what was only read reaches nothing.
  assert np.isfinite(grad_BT).all() and (grad_BT[:, 2:4] == 0).all()
  assert (grad_BT[:, [0, 1, 4, 5]] != 0).all()
  np.testing.assert_array_equal(grad_BT, gradient(False))
  _, _, metrics = run.update_policy(state, placed.replace(batch=batch), 0)
  assert metrics["policy/grad_norm"] > 0
