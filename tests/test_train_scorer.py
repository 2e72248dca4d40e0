"""Training a PRM on stored completions, and what evaluation makes of it."""
import dataclasses
import json
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.papers import implicit_prm
from rlx import build
from rlx.build import load, methods as build_methods, options as options_lib
from rlx.core import records, rng
from rlx.evals import best_of_n
from rlx.io import curves, metrics as io_metrics, weights
from rlx.loops import prm_sets, rl, stored, train_scorer
from rlx.stages import host_fields
from rlx.tools import evaluate
from rlx.verifiers import chain
from tests import stages, tiny


def config_of(**changes):
  c = implicit_prm.get_config("smoke")
  c.prompts.options.size = 256
  c.learner.pack = False                      # One shape to compile, not one a batch.
  c.rollouts.bucket = c.rollouts.max_tokens
  for key, value in changes.items():
    section, _, name = key.rpartition("__")
    (c[section] if section else c)[name] = value
  return c


@pytest.fixture(scope="module")
def implicit(tmp_path_factory):
  """(workdir, summary, built run, last state) of a trained implicit PRM."""
  workdir, run = tmp_path_factory.mktemp("implicit"), tiny.build_run(config_of(), learns="prm")
  with tiny.building(run): summary = train_scorer.train(config_of(), workdir)
  return workdir, summary, run, tiny.restored(run, workdir)[0]


def test_the_prm_learns_and_the_policy_does_not(implicit):
  workdir, summary, run, state = implicit
  start = jax.device_get(run.init())
  tiny.assert_equal_trees(state.policy, start.policy)
  assert any(jax.tree.leaves(jax.tree.map(lambda a, b: (a != b).any(), state.prm, start.prm)))
  rows = [json.loads(l) for l in (workdir / "rollouts.jsonl").read_text().splitlines()]
  assert len(rows) == 16 * 4 == summary["completions"]
  assert summary["sampled_tokens"] == sum(r["sampled"] for r in rows)
  # Of rows that do not say how many tokens were sampled for them it is unknown.
  plain = [dataclasses.replace(x, row={})
           for x in stored.read(workdir / "rollouts.jsonl", run.texts)]
  assert train_scorer.describe(plain, summary["training_tokens"]) == (
      f"64 completions, {summary['training_tokens']} tokens trained on")
  # Two steps of half of the groups each: every completion was trained on once.
  assert summary["training_tokens"] == summary["sampled_tokens"]
  lines = io_metrics.read(workdir)
  assert [l["step"] for l in lines] == [0, 1] and lines[0]["prm/accuracy"] == 0.5
  assert lines[0]["prm/loss"] == pytest.approx(np.log(2), rel=1e-5)
  assert summary["prm"]["held out"]["f1/step"]["solutions"] > 32
  assert (workdir / "at_k.png").exists()


def test_stored_files_and_a_resume_give_the_same_bits(implicit, tmp_path, monkeypatch):
  """From another's files, one step and one more; and without any prompts."""
  workdir, summary, _, state = implicit
  monkeypatch.setattr(curves, "draw_at_k", lambda *_: None)
  changes = dict(train_scorer__rollouts=str(workdir / "rollouts.jsonl"),
                 train_scorer__held_out=str(workdir / "held_out.jsonl"),
                 prompts__source="jsonl:/nowhere", prompts__options={})
  run = tiny.build_run(config_of(**changes), learns="prm")
  with tiny.building(run):
    train_scorer.train(config_of(**changes, steps=1), tmp_path)
    again = train_scorer.train(config_of(**changes), tmp_path)
  tiny.assert_equal_trees(tiny.restored(run, tmp_path)[0].prm, state.prm)
  timeless = lambda s: {k: v for k, v in s.items() if k != "seconds"}
  np.testing.assert_equal(timeless(again), timeless(summary))


def test_evaluate_reads_it_on_another_set_of_prompts(implicit):
  """Difficulty, the oracle's set, and that set read back from its file."""
  workdir, _, run, state = implicit
  c = config_of(prompts__options=dict(size=64, n_min=3, n_max=4, ops="M"))
  metrics = evaluate.evaluate(c, workdir)
  assert json.loads((workdir / "evaluate.json").read_text()) == json.loads(json.dumps(metrics))
  assert (workdir / "evaluate.png").exists()
  parts = [x for name, x in metrics.items() if name.startswith("difficulty/")]
  assert {"difficulty/3", "difficulty/4"} <= set(metrics)
  assert sum(x["prompts"] * x["mean"] for x in parts) == pytest.approx(
      16 * metrics["sampled"]["mean"])
  assert metrics["pass@1"]["mean"] == pytest.approx(metrics["sampled"]["mean"])
  assert metrics["maj@1"]["mean"] >= metrics["pass@1"]["mean"] == metrics["best@1/min"]["mean"]
  assert metrics["pass@4"]["mean"] >= metrics["best@4/product/no_ref"]["mean"]
  marked = metrics["prm"]["chain.steps"]
  again = prm_sets.measure(run, state, prm_sets.read(workdir / "chain.steps.jsonl", run.texts))
  assert set(again) == {name for name in marked if name.startswith("f1/")}
  for name, x in again.items():
    assert x["solutions"] > 32 and 0 < x["mean"] < 1
    for key in x: assert x[key] == pytest.approx(marked[name][key]), (name, key)


def test_step_rewards_add_up_to_the_log_ratio_with_eos(implicit):
  workdir, _, run, state = implicit
  completions = stored.read(workdir / "held_out.jsonl", run.texts)[:32]
  steps = prm_sets.score(run, state, [x.prompt for x in completions], [x.ids for x in completions])
  rollouts, _, _ = stored.batch([completions[i:i + 4] for i in range(0, 32, 4)], 0, run)
  copy = jax.tree.map(jnp.copy, state)  # The update takes the state's memory.
  scored = jax.device_get(
      run.update_prm(copy, stages.score(run, state, rollouts, np.zeros(32)))[1].batch)
  ratio_B = np.where(scored.action_BT, scored.prm_logps_BT - scored.prm_ref_logps_BT, 0).sum(1)
  by_text = dict(zip(map(bytes, np.asarray(rollouts.tokens_BS)), .5 * ratio_B))  # beta = 0.5
  got = best_of_n.scores(steps[""])["sum"]
  assert len(by_text) > 8
  rows = {tuple(x.prompt + x.ids): s for x, s in zip(completions, got)}
  for ids, want in zip(np.asarray(rollouts.tokens_BS), .5 * ratio_B):
    key = tuple(int(i) for i in ids if i != run.texts.tokenizer.pad_id)
    assert rows[key] == pytest.approx(want, abs=1e-5)
  assert np.abs(ratio_B).max() > 1e-3


def test_a_head_learns_labels_made_by_going_on_from_each_step(implicit, tmp_path, monkeypatch):
  workdir, *_ = implicit
  monkeypatch.setattr(curves, "draw_at_k", lambda *_: None)
  changes = dict(train_scorer__labels="soft",
                 train_scorer__held_out=str(workdir / "held_out.jsonl"),
                 train_scorer__rollouts=str(workdir / "rollouts.jsonl"))
  run = tiny.build_run(config_of(**changes), learns="prm")
  with tiny.building(run): summary = train_scorer.train(config_of(**changes), tmp_path)
  rows = [json.loads(l) for l in (tmp_path / "labelled.jsonl").read_text().splitlines()]
  for row in rows:
    steps = row["completion"].count(";") + 1
    assert len(row["values"]) == steps and row["values"][-1] == row["verdict"]
    assert set(row["values"][:-1]) <= {0, .5, 1}          # Two completions each.
    assert row["sampled"] >= len(row["completion"]) + 1 + 2 * (steps - 1)
  before = [v for row in rows for v in row["values"][:-1]]
  # The same policy goes on: the mean of values is near that of verdicts.
  assert np.mean(before) == pytest.approx(np.mean([r["verdict"] for r in rows]), abs=.15)
  assert summary["sampled_tokens"] == sum(r["sampled"] for r in rows)
  lines = io_metrics.read(tmp_path)
  assert lines[0]["prm/loss"] == pytest.approx(np.log(2), rel=1e-5)   # The head starts at 0.
  assert "best@4/min" in summary and "best@4/min/no_ref" not in summary

  # The score of a step is read after its last token and sees nothing behind it.
  state, _ = tiny.restored(run, tmp_path)
  x, *_ = [x for x in stored.read(workdir / "held_out.jsonl", run.texts) if len(x.ids) > 8]
  end = host_fields.columns_of_steps([x.ids], run.texts.tokenizer, ";")[0][1]
  other = [*x.ids[:end + 1], *reversed(x.ids[end + 1:])]
  whole = prm_sets.score(run, state, [x.prompt] * 2, [x.ids, other], [[end]] * 2)[""]
  assert whole[0, 0] == pytest.approx(whole[1, 0], abs=1e-6) and whole[0, 0] != 0
  changed = [*x.ids[:end], run.texts.tokenizer.vocabulary["+"], *x.ids[end + 1:]]
  moved = prm_sets.score(run, state, [x.prompt] * 2, [x.ids, changed], [[end]] * 2)[""]
  assert abs(moved[0, 0] - moved[1, 0]) > 1e-5

  # The value of the prompt is the same for its completions; values that rows have stay.
  some = [*stored.read(tmp_path / "labelled.jsonl", run.texts)[:4],
          *stored.read(workdir / "rollouts.jsonl", run.texts)[4:8]]
  stored.label(tmp_path / "starts.jsonl", run, state, some, 2, with_start=True)
  starts = [json.loads(l) for l in (tmp_path / "starts.jsonl").read_text().splitlines()]
  for row, was in zip(starts, rows): assert row["values"] == was["values"]
  for part in (starts[:4], starts[4:]):
    assert len({row["start"] for row in part}) == 1 and part[0]["start"] in (0, .5, 1)
    spent = [row["sampled"] for row in part]
    assert spent[1:] == [row["sampled"] for row in rows if row["group"] == part[0]["group"]][1:]
  assert starts[0]["sampled"] > rows[0]["sampled"]

  with pytest.raises(ValueError, match="train_scorer.labels='soft': None; the rewards of"):
    rl.train(config_of(train_scorer__labels="soft"), tmp_path / "rl")


def test_balanced_classes_have_half_of_the_loss_each(implicit):
  workdir, *_ = implicit
  run = tiny.build_run(config_of(train_scorer__labels="hard", train_scorer__balanced=True,
                                 prm__microbatches=2), learns="prm")
  completions = stored.read(workdir / "rollouts.jsonl", run.texts)
  steps = run.texts.step_columns([x.ids for x in completions])
  # In the first half of the groups all steps are right, in the others all but the last are wrong.
  groups = stored.group_completions([
      dataclasses.replace(x, labels=(1.,) * len(columns) if i < 32 else
                          (0.,) * (len(columns) - 1) + (1.,))
      for i, (x, columns) in enumerate(zip(completions, steps))])
  rollouts, outcome_B, columns = stored.batch(groups, 0, run)
  labels_BT = columns["labels_BT"]
  state, stage = run.init(), run.update_prm
  placed = train_scorer._place(run, state, stages.annotate(run, state, rollouts, outcome_B),
                               columns)
  part = next(stage.learner.make_minibatches(placed))

  def gradient(stage, cuts):
    """Of the head, added up over microbatches; of the bias it is w (1/2 - y) at a score of 0."""
    whole = stage.learner.add_whole(state.prm, part, stage._weigh, None)
    grads = [jax.grad(lambda params: stage._loss(
        records.join(state.frozen, params), jax.tree.map(lambda x: x[rows], whole))[0].total)(
            state.prm)["value"] for rows in np.split(np.arange(len(labels_BT)), cuts)]
    return jax.tree.map(lambda *x: np.sum(x, axis=0), *grads)

  labels = labels_BT[~np.isnan(labels_BT)]
  assert 0 < labels.mean() < 1 and labels.mean() != .5
  balanced = gradient(stage, [4])
  assert balanced["b_1"][0] == pytest.approx(0, abs=1e-4)
  # The classes are counted in the whole minibatch, however it is cut.
  np.testing.assert_allclose(balanced["w_D1"], gradient(stage, [])["w_D1"], atol=1e-4)
  assert gradient(dataclasses.replace(stage, balanced=False), [4])["b_1"][0] == pytest.approx(
      (.5 - labels).sum(), rel=1e-5)


def test_labels_of_steps_by_a_panel_of_judges_and_by_consensus(implicit, tmp_path):
  """papers/aurora and papers/prm_lessons; of the toy the judge says what chain.steps does."""
  workdir, _, _, state = implicit
  rows = [json.loads(line) for line in (workdir / "rollouts.jsonl").read_text().splitlines()][:16]

  def labels_of(key, name, rows):
    path = tmp_path / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    c = load.load_config(f"papers/{key}:smoke")
    c.prompts.options.size = 256
    c.train_scorer.rollouts, c.train_scorer.held_out = str(path), str(workdir / "held_out.jsonl")
    (folder := tmp_path / name).mkdir()
    run = build.build(c, learns="prm")
    found, _ = train_scorer.data(run, state, folder, train_scorer.read_options(c, run))
    right = [[float(x) for x in chain.steps(p, row["completion"])]
             for p, row in zip(run.prompts.by_id([row["group"] for row in rows]), rows)]
    run.close()
    return {(x.group, x.row["completion"]): x.labels for x in found}, right

  got, right = labels_of("aurora", "panel", rows)
  known = {(row["group"], row["completion"]): tuple(np.cumprod(steps))
           for row, steps in zip(rows, right) if len(steps) == row["completion"].count(";") + 1}
  assert got == known and len({y for ys in got.values() for y in ys}) == 2
  # Values that agree with the judge, that are of another first step, and unknown ones.
  first = [next((j for j, x in enumerate(steps) if not x), -1) for steps in right]
  i, wrong = next((i, e) for i, e in enumerate(first) if 0 < e < len(right[i]) - 1)
  n = len(right[i])
  moved = [[float(j < wrong) for j in range(n)], [float(j <= wrong) for j in range(n)],
           [None] + [1.0] * (n - 1)]
  got, _ = labels_of("prm_lessons", "agreed", [dict(rows[i], values=v) for v in moved])
  assert list(got.values()) == [tuple(moved[0])]


def test_labels_are_means_of_values_and_verdicts(implicit, tmp_path):
  """A quarter of what the checker of chains says; null where one of both is unknown."""
  workdir, *_ = implicit
  rows = [json.loads(line) for line in (workdir / "rollouts.jsonl").read_text().splitlines()][:8]
  rows = [row for row in rows if row["completion"].count(";") > 1]
  values = [[None if (i, j) == (1, 0) else .5 for j in range(row["completion"].count(";") + 1)]
            for i, row in enumerate(rows)]
  (path := tmp_path / "rows.jsonl").write_text("".join(
      json.dumps(row | dict(values=v)) + "\n" for row, v in zip(rows, values)))
  run, found = data_of(config_of(
      train_scorer__rollouts=str(path), train_scorer__held_out=str(path),
      train_scorer__labels="soft", train_scorer__labelled_by="mean",
      train_scorer__judged_share=.25, verifier__steps="chain.steps"), tmp_path)
  prompts = run.prompts.by_id([row["group"] for row in rows])
  want = [(row["completion"], tuple(
      .75 * .5 + .25 * ok for ok in chain.steps(p, row["completion"])))
          for i, (p, row) in enumerate(zip(prompts, rows)) if i != 1]
  assert [(x.row["completion"], x.labels) for x in found] == want
  assert len({y for _, ys in want for y in ys}) == 2


def test_the_label_of_the_whole_is_a_mean_of_verdict_and_scores(implicit, tmp_path):
  """papers/fin_prm: half of it is the share of known facts, of the toy that of right steps."""
  workdir, *_ = implicit
  rows = [json.loads(line) for line in (workdir / "rollouts.jsonl").read_text().splitlines()][:8]
  rows = [row | dict(values=[.5] * (row["completion"].count(";") + 1)) for row in rows]
  rows[0]["verdict"] = None
  (path := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
  c = load.load_config("papers/fin_prm:smoke")
  c.prompts.options.size, c.train_scorer.labelled_by = 256, "rollouts"
  c.train_scorer.rollouts = c.train_scorer.held_out = str(path)
  for _ in range(2):  # The second time the scores are read.
    run, found = data_of(c, tmp_path)
    share = [chain.step_share(p, row["completion"]) for p, row in zip(
        run.prompts.by_id([row["group"] for row in rows]), rows)]
    assert [x.row["completion"] for x in found] == [row["completion"] for row in rows]
    np.testing.assert_allclose([x.verdict for x in found], [
        np.nan if y["verdict"] is None else .5 * y["verdict"] + .5 * s
        for y, s in zip(rows, share)])
  assert len({*share}) > 2 and len({x.verdict for x in found[1:]}) > 2
  kept = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
  assert [(row["scores"], row["verdict"]) for row in kept] == [
      ([s], row["verdict"]) for s, row in zip(share, rows)]
  c.verifier.scores, c.train_scorer.scored_share = ("chain.step_share", "chain.form"), .25
  _, found = data_of(c, tmp_path / "two")
  form = [chain.form(p, row["completion"]) for p, row in zip(
      run.prompts.by_id([row["group"] for row in rows]), rows)]
  np.testing.assert_allclose([x.verdict for x in found[1:]], [
      .75 * y["verdict"] + .125 * (s + f) for y, s, f in [*zip(rows, share, form)][1:]])


def test_the_label_of_the_whole_is_what_a_judge_says(implicit, tmp_path):
  """papers/reasonflux:prm; of the toy the judge reads the answer. The rows have wrong verdicts."""
  workdir, *_ = implicit
  rows = [json.loads(line) for line in (workdir / "rollouts.jsonl").read_text().splitlines()][:8]
  (path := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row | dict(
      verdict=1 - row["verdict"], values=[.5] * (row["completion"].count(";") + 1))) + "\n"
                                                       for row in rows))
  c = load.load_config("papers/reasonflux:prm-smoke")
  c.prompts.options.size = 256
  c.train_scorer.rollouts = c.train_scorer.held_out = str(path)
  _, found = data_of(c, tmp_path)
  assert [x.verdict for x in found] == [row["verdict"] for row in rows]
  assert len({x.verdict for x in found}) == 2


def test_lines_of_right_completions_are_changed_and_labelled_by_the_verifier(tmp_path):
  c = load.load_config("papers/prlcoder:smoke")
  c.prompts.options.size = 64
  run = build.build(c, learns="prm")
  questions = run.prompts.first(4)
  right = [chain.answer.state(p) for p in questions]
  rows = [dict(question=p.text, completion=text, verdict=v, group=p.id)
          for p, text in zip(questions, right) for v in (1, 0)]
  run.close()
  (path := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
  c.train_scorer.rollouts = c.train_scorer.held_out = str(path)
  run, found = data_of(c, tmp_path)
  assert len(found) == 4 * (1 + c.train_scorer.mutate.copies)  # Of the right rows alone.
  kinds = []
  for i, x in enumerate(found):
    p, state, text = questions[i // 5], right[i // 5], x.row["completion"]
    if i % 5 == 0:
      assert text == state and set(x.labels) == {1} and x.ids[-1] == run.texts.tokenizer.end_id
      continue
    # The copy ends with the changed line; the whole is right if all of its steps are.
    lines, (*before, last) = state.replace(";", ";\n").split("\n"), x.labels
    kept, rest = "".join(lines[:len(before)]), "".join(lines[len(before) + 1:])
    assert set(before) <= {1} and text.startswith(kept) and x.ids[-1] != run.texts.tokenizer.end_id
    assert text != kept + lines[len(before)] and text[len(kept):].rstrip(";").count(";") == 0
    assert last == (chain.step_share(p, text + rest) == 1)
    kinds.append(last)
  assert kinds.count(0) > 8
  assert [x.row["completion"] for x in data_of(c, tmp_path)[1]] == [
      x.row["completion"] for x in found]


def test_leaves_of_a_tree_begin_as_a_completion_does(implicit, tmp_path):
  workdir, *_ = implicit
  lines = (workdir / "rollouts.jsonl").read_text().splitlines()[:8]
  (path := tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
  c = config_of(train_scorer__rollouts=str(path), train_scorer__held_out=str(path),
                train_scorer__labels="outcome", train_scorer__tree=True,
                train_scorer__loss=dict(name="reward_model.bradley_terry"))
  run, found = data_of(c, tmp_path)
  rows = [json.loads(line) for line in (tmp_path / "tree.jsonl").read_text().splitlines()]
  trunks = stored.read(path, run.texts)
  assert len(rows) == len(found) == 2 * 8
  prompts = run.prompts.by_id([row["group"] for row in rows])
  columns = run.texts.step_columns([x.ids for x in trunks])
  for i, (row, x) in enumerate(zip(rows, found)):
    trunk, n = trunks[i // 2], row["begun"]
    assert row["group"] == trunk.group and x.labels == (row["verdict"],)
    assert n - 1 in columns[i // 2][:-1] and x.ids[:n] == trunk.ids[:n]
    assert row["verdict"] == chain.answer(prompts[i], row["completion"])
    assert row["begun"] == rows[i - i % 2]["begun"] and len(x.ids) <= 18
  assert len({row["begun"] for row in rows}) > 1  # Where they part is drawn.
  assert len({row["completion"] for row in rows}) > 8


def data_of(c, workdir):
  """(run, the completions that it trains on) of a config whose rows are stored."""
  run = build.build(c, learns="prm")
  found, _ = train_scorer.data(run, run.init(), workdir, options_lib.read_options(
      train_scorer.Options, c, mutate=build_methods.bind_mutation(c)))
  run.close()
  return run, found


@pytest.mark.parametrize("changes, message", [
    (dict(train_scorer__reference="{}"),
     "train_scorer.reference='{}': None without train_scorer.labels"),
    (dict(train_scorer__labels="hard", train_scorer__labelled_by="verifier"),
     "verifier.steps=None: a verifier of steps, such as judge.steps, with train_scorer.labelled"),
    (dict(train_scorer__labels="outcome", train_scorer__labelled_by="consensus"),
     "train_scorer.labelled_by='consensus': rollouts with train_scorer.labels='outcome'"),
    (dict(train_scorer__labels="relative", train_scorer__labelled_by="mutations"),
     "train_scorer.labelled_by='mutations': rollouts with train_scorer.labels='relative'"),
    (dict(train_scorer__labels="hard", train_scorer__labelled_by="mutations",
          train_scorer__mutate=dict(name="mutations.swap_lines", copies=1)),
     "train_scorer.mutate.name='mutations.swap_lines': "),
    (dict(train_scorer__labels="outcome", train_scorer__add_outcome=True),
     "train_scorer.add_outcome=True: False with train_scorer.labels='outcome'"),
    (dict(train_scorer__scored_share=.5),
     "train_scorer.scored_share=0.5: 0.0 without train_scorer.labels"),
    (dict(train_scorer__labels="hard", train_scorer__scored_share=.5),
     "train_scorer.scored_share=0.5: 0 with train_scorer.labels='hard' and train_scorer.add_outc"),
    (dict(train_scorer__labels="outcome", train_scorer__scored_share=.5),
     "verifier.scores=.*: verifiers or scorers of kind probability, with train_scorer.scored_sha"),
    (dict(train_scorer__labels="outcome", train_scorer__curate=dict(name="preferences.keep_best")),
     "verifier.scores=.*: scorers and verifiers, none of kind yes_no, with train_scorer.curate.na"),
    (dict(train_scorer__labels="hard", train_scorer__curate=dict(name="preferences.keep_best")),
     "train_scorer.curate.name='preferences.keep_best': None with train_scorer.labels='hard'"),
    (dict(prm__order="none"), "prm.order='none': single, double or reverse"),
    (dict(train_scorer__labels="firm"), "train_scorer.labels='firm': one of \\('hard'"),
    (dict(train_scorer__balanced=True),
     "train_scorer.balanced=True: False without train_scorer.labels"),
    (dict(train_scorer__labels="soft", train_scorer__loss=dict(name="reward_model.bradley_terry")),
     "train_scorer.labels='soft': outcome with train_scorer.loss.name='reward_model.bradley_ter"),
    (dict(train_scorer__labels="outcome", train_scorer__loss=dict(name="policy.ppo_clip")),
     "train_scorer.loss.name='policy.ppo_clip': a loss of scores"),
    (dict(train_scorer__prompts=0), "train_scorer.prompts=0: a whole number from 1"),
    (dict(eval__prm_sets=("chain.step",)), "eval.prm_sets.name='chain.step': rlx/verifiers"),
    (dict(rollouts__step_separator=None), "rollouts.step_separator=None: .*needs it"),
], ids=str)
def test_refuses_in_one_line(changes, message, tmp_path):
  with pytest.raises(ValueError, match=message) as e:
    train_scorer.train(config_of(**changes), tmp_path)
  assert "\n" not in str(e.value)


def test_evaluate_says_when_there_is_no_trained_prm(tmp_path):
  with pytest.raises(ValueError, match="there is no trained PRM"):
    evaluate.evaluate(config_of(), tmp_path)


@pytest.mark.parametrize("loss", ["bradley_terry", "scaled_bradley_terry", "mse"])
def test_a_head_learns_verdicts_at_the_end_and_is_read_as_a_scorer(implicit, tmp_path, monkeypatch,
                                                                    loss):
  """Its loss by hand, and the file that a run reads as scorers.NAME.path."""
  workdir, *_ = implicit
  monkeypatch.setattr(curves, "draw_at_k", lambda *_: None)
  changes = dict(train_scorer__labels="outcome",
                 train_scorer__loss=dict(name=f"reward_model.{loss}"),
                 train_scorer__held_out=str(workdir / "held_out.jsonl"),
                 train_scorer__rollouts=str(workdir / "rollouts.jsonl"))
  if loss != "bradley_terry": changes |= dict(steps=0)
  run = build.build(config_of(**changes), learns="prm")
  completions = stored.label_outcomes(stored.read(workdir / "rollouts.jsonl", run.texts))
  groups = stored.group_completions(completions)
  rollouts, outcome_B, columns = stored.batch(groups, 0, run)
  labels_BT = columns["labels_BT"]
  last_B = np.asarray(rollouts.completion_len_B) - 1
  rows = np.arange(len(last_B))
  np.testing.assert_array_equal(labels_BT[rows[last_B >= 0], last_B[last_B >= 0]],
                                outcome_B[last_B >= 0])
  assert (~np.isnan(labels_BT)).sum(axis=1).tolist() == (last_B >= 0).astype(int).tolist()
  state = run.init()
  state = state.replace(prm={**state.prm, "value": dict(
      w_D1=0.3 * jax.random.normal(jax.random.key(0), state.prm["value"]["w_D1"].shape),
      b_1=jnp.float32([0.1]))})
  steps = prm_sets.score(run, state, [x.prompt for g in groups for x in g],
                         [x.ids for g in groups for x in g])[""][:, 0]
  score = dict(zip(map(id, (x for g in groups for x in g)), steps))
  chosen = [groups[i] for i in np.random.default_rng(
      [run.passes.seed, rng.number("train_prm"), 0]).permutation(len(groups))[:run.sizes.prompts]]
  pairs = [score[id(a)] - score[id(b)] for g in chosen for a in g for b in g
           if a.verdict > b.verdict]
  want = (np.mean(np.logaddexp(0, -np.array(pairs))) if loss != "mse" else
          np.mean([(score[id(x)] - x.verdict)**2 for g in chosen for x in g]))
  assert len(pairs) > 4
  placed = train_scorer._place(run, state, stages.annotate(run, state, rollouts, outcome_B),
                               columns)
  _, _, metrics = run.update_prm(jax.tree.map(jnp.copy, state), placed)
  assert metrics["prm/loss"] == pytest.approx(want, rel=1e-4)
  if loss != "bradley_terry": return
  with tiny.building(run): summary = train_scorer.train(config_of(**changes), tmp_path)
  assert "pair/sum" in summary["prm"]["held out"]
  assert summary["loss"] == f"reward_model.{loss}"
  assert {l["step"] for l in io_metrics.read(tmp_path)} == {0, 1}
  trained, _ = tiny.restored(run, tmp_path)
  config, params, _ = weights.load(tmp_path / "scorer")
  assert config.has_head
  tiny.assert_equal_trees(params["value"], trained.prm["value"])
  c = config_of(verifier__scores=("scorers.own",), scorers=dict(own=dict(
      path=str(tmp_path / "scorer"))), rewards=dict(outcome=dict(name="outcome.score", coef=1.0)),
                advantages=dict(outcome=dict(name="group.rloo"), whiten=False))
  policy = build.build(c)
  batch = stages.score(policy, policy.init(), rollouts, outcome_B).batch
  np.testing.assert_allclose(
      np.asarray(batch.scores_B)[last_B >= 0],
      prm_sets.score(run, trained, *zip(*[(x.prompt, x.ids) for g in chosen for x in g]))[""][:, 0],
      atol=1e-4)


TIED = [dict(prompt="4M7=", completions=["1", "2"], verdicts=[1, 1])]


def pairs(*margins):
  return [dict(prompt="4M7=", chosen="1", rejected="2", margin=m) for m in margins]


@pytest.mark.parametrize("loss, rows, message", [
    ("bradley_terry", TIED, "compares completions of a group, of which none of .* has two with "),
    ("plackett_luce", TIED, "compares completions of a group"), ("bce", TIED, None),
    ("prm.dpo", TIED, "compares completions of a group, .* is prm.ce"), ("prm.ce", TIED, None),
    ("prm.nca", pairs(0), None),
    ("prm.ce", [dict(prompt="4M7=", completion="1", verdict=None)], "no row of .* known verdict"),
    ("scaled_bradley_terry", pairs(-2, 1), "margins of .* weigh its pairs, -2 to 1; needed are "),
    ("scaled_bradley_terry", pairs(0, 0), "0 to 0; needed are numbers from 0 that are not all 0"),
    ("scaled_bradley_terry", pairs(0, 1), None), ("soft_bradley_terry", pairs(-2), None),
    ("bradley_terry", pairs(0), None)], ids=lambda x: str(x)[:30])
def test_rows_of_which_a_loss_learns_nothing_are_refused(implicit, tmp_path, loss, rows, message):
  texts, path = implicit[2].texts, tmp_path / "rows.jsonl"
  path.write_text("".join(json.dumps(row) + "\n" for row in rows))
  labels = None if loss.startswith("prm.") else "outcome"
  key, name = ("prm", loss) if labels is None else ("train_scorer", f"reward_model.{loss}")
  c = config_of(train_scorer__labels=labels, train_scorer__rollouts=str(path),
                train_scorer__held_out=str(path), **{f"{key}__loss": dict(name=name)})
  options = train_scorer.read_options(c, types.SimpleNamespace(
      methods=build_methods.resolve_methods(c)))
  groups = stored.group_completions(stored.read(path, texts))
  if message is None: return train_scorer._check_pairs(groups, options)
  with pytest.raises(ValueError, match=f"^{key}.loss.name='.*{loss}': .*{message}"):
    train_scorer._check_pairs(groups, options)
  if rows is TIED:  # It is the run that is refused.
    with pytest.raises(ValueError, match=message):
      train_scorer.train(c, tmp_path / "run")


def test_pairs_of_a_file_are_groups_of_two(implicit, tmp_path):
  workdir, _, run, _ = implicit
  row = json.loads((workdir / "rollouts.jsonl").read_text().splitlines()[0])
  path = tmp_path / "pairs.jsonl"
  path.write_text("".join(json.dumps(dict(prompt=row["prompt"], chosen=a, rejected=b)) + "\n"
                          for a, b in (("1", "2"), ("3", "4"))))
  groups = stored.group_completions(stored.read(path, run.texts))
  assert [[(x.row["completion"], x.verdict) for x in g] for g in groups] == [
      [("1", 1.), ("2", 0.)], [("3", 1.), ("4", 0.)]]
