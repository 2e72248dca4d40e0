"""Scorers of all kinds: their losses by hand, on packed rows and devices, resumed, read in RL."""
import dataclasses
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx import build
from rlx.build import measuring, memory, methods, options as options_lib
from rlx.core import records, rng
from rlx.io import curves, energy as energy_io, hf, metrics as io_metrics, tokenizer, weights
from rlx.loops import prm_sets, stored, train_scorer
from rlx.models import energy, logps, value
from rlx.rollouts import padding, trajectories
from rlx.stages import passes
from tests import stages, tiny

KNOWN = "0123456789abcdefgh;YN?"
# Four completions each of eight questions, of which some are rated alike.
LISTS = [dict(prompt=f"a{i:02d}", completions=[f"1;{i % 10}", "3;b", f"{i % 10}5;6", "7"],
              verdicts=[1.0, 0.5, 0.0, 0.5]) for i in range(8)]
PAIRS = [dict(prompt=f"a{i:02d}", chosen=f"1;{i % 10}", rejected="7;;b", margin=0.5 * (i % 3))
         for i in range(8)]
# Three completions each, of which each has a margin.
RATED = [dict(prompt=f"a{i:02d}", completion=text, verdict=verdict, margin=margin)
         for i in range(8) for text, verdict, margin in (
             (f"1;{i}", 1.0, 2.5 + i), ("3", 0.25, 1.0), ("7;;b", 0.0, 0.5))]
ASKED = dict(head="yes_no", question="?", yes="Y", no="N")


@pytest.fixture(scope="module", name="folder")
def written(tmp_path_factory):
  folder = tmp_path_factory.mktemp("scorer_training")
  tiny.write(folder, alphabet=KNOWN)
  return folder


def config_of(folder, rows, loss="bce", more=(), **options):
  """The config that trains on these rows; `options` are of train_scorer, `more` of other keys."""
  path = folder / f"rows{abs(hash(json.dumps(rows)))}.jsonl"
  path.write_text("".join(json.dumps(row) + "\n" for row in rows))
  options = dict(labels="outcome", rollouts=str(path), held_out=str(path)) | options
  common = dict(
      train_scorer__loss=dict(name=f"reward_model.{loss}"), rollouts__max_tokens=8,
      rollouts__bucket=8, rollouts__chunk=8, rollouts__step_separator=";", prm__minibatches=1,
      steps=2, learner__pack=True, eval__samples=4, model__remat="none", learner__minibatches=1,
      rollouts__oversample=1.0)
  return tiny.config(folder, **common | {
      f"train_scorer__{name}": x for name, x in options.items()} | dict(more))


def first_batch(c):
  """(run, state, (rollouts, verdicts, columns), Placed) of a config, with numbers in its head."""
  run = build.build(c, learns="prm")
  state = run.init()
  if run.passes.asked_scorer is None:
    draw = np.random.default_rng(0)
    head = jax.tree.map(lambda x: jnp.float32(draw.normal(size=x.shape)), state.prm["value"])
    state = state.replace(prm={**state.prm, "value": head})
  read = stored.read(c.train_scorer.rollouts, run.texts)
  read = stored.label_all(read, run, c.train_scorer.merge_steps)
  groups = stored.split_groups(stored.group_completions(read), run.sizes.group)
  rollouts, outcome_B, columns = batch = stored.batch(groups, 0, run)
  annotated = stages.annotate(run, state, rollouts, outcome_B)
  return run, state, batch, train_scorer._place(run, state, annotated, columns)


def numbers(run, state, rollouts):
  """What the head gives at each token, by a pass over whole rows without packing: [B, T + 1, C]."""
  longer = padding.append(rollouts, 0)
  return np.asarray(_outputs(state.prm, run.passes.models["prm"], longer, None))


_outputs = jax.jit(passes.outputs, static_argnums=1)


def loss_of(run, state, placed):
  """The loss of the batch as an update computes it, packed, without its gradient."""
  stage = run.update_prm
  part = next(stage.learner.make_minibatches(placed)).replace(whole={})
  return float(jax.jit(lambda params, part: stage._loss(params, part)[0].mean())(state.prm, part))


def soft(x): return np.logaddexp(0, x)
def sigmoid(x): return 1 / (1 + np.exp(-x))


def mean_of_pairs(label_B, loss):
  """The mean of loss(i, j) over the rows of a group of four in which i is better than j."""
  rows = range(len(label_B))
  return np.mean([loss(i, j) for i in rows for j in rows
                  if i // 4 == j // 4 and label_B[i] > label_B[j]])


def lists(s_B, y_B):
  total = 0
  for i in range(0, len(s_B), 4):
    for j in range(i, i + 4):
      below = [k for k in range(i, i + 4) if y_B[k] < y_B[j]]
      if below: total += np.log(sum(np.exp(s_B[k] - s_B[j]) for k in [j, *below]))
  return total / (len(s_B) // 4)


# case -> (rows, loss, options, function of the last token's numbers o_BC, those of the prompt x_BC,
# labels y_B and margins m_B that gives the loss).
CASES = {
    "lists": (LISTS, "plackett_luce", {}, lambda o, _, y, m: lists(o[:, 0], y)),
    "margin": (RATED, "bradley_terry", dict(margins=True), lambda o, _, y, m: mean_of_pairs(
        y, lambda i, j: soft(m[i] - m[j] - o[i, 0] + o[j, 0]))),
    "squared margin": (RATED, "squared_margin", dict(margins=True),
                       lambda o, _, y, m: mean_of_pairs(
                           y, lambda i, j: (o[i, 0] - o[j, 0] - m[i] + m[j])**2)),
    "margins are not read": (RATED, "bradley_terry", {}, lambda o, _, y, m: mean_of_pairs(
        y, lambda i, j: soft(o[j, 0] - o[i, 0]))),
    "strength": (RATED, "scaled_bradley_terry", {}, lambda o, _, y, m: mean_of_pairs(
        y, lambda i, j: (m[i] - m[j]) * soft(o[j, 0] - o[i, 0]))),
    "soft": (RATED, "soft_bradley_terry", {}, lambda o, _, y, m: mean_of_pairs(
        y, lambda i, j: soft(o[j, 0] - o[i, 0]) + sigmoid(m[j] - m[i]) * (o[i, 0] - o[j, 0]))),
    "gaussian": (LISTS, "gaussian", dict(head="spread"), lambda o, _, y, m: np.mean(
        (o[:, 0] - y)**2 / 2 / (soft(o[:, 1]) + .001)**2 + np.log(soft(o[:, 1]) + .001))),
    "uncertain": (LISTS, "uncertain_bradley_terry", dict(head="spread"),
                  lambda o, _, y, m: mean_of_pairs(y, lambda i, j: soft(
                      (o[j, 0] - o[i, 0]) / np.sqrt(1 + np.pi / 8 * (
                          (soft(o[i, 1]) + .001)**2 + (soft(o[j, 1]) + .001)**2))))),
    "mixture": (LISTS, "mixture", dict(head="mixture", heads=2),
                lambda o, x, y, m: mean_of_pairs(y, lambda i, j: -np.log(np.sum(
                    np.exp(x[i, 2:]) / np.exp(x[i, 2:]).sum() * sigmoid(o[i, :2] - o[j, :2])))))}


@pytest.mark.parametrize("case", CASES)
def test_losses_of_completions(folder, case):
  rows, loss, options, by_hand = CASES[case]
  run, state, (rollouts, _, columns), placed = first_batch(config_of(
      folder, rows, loss, **options))
  at = np.arange(len(rollouts.tokens_BS)), np.asarray(rollouts.completion_len_B)
  label_B = np.nansum(columns["labels_BT"], axis=1)
  known_B = ~np.isnan(columns["labels_BT"]).all(axis=1)
  all_BTC = numbers(run, state, rollouts)
  o_BC, x_BC = all_BTC[at], all_BTC[:, 0]
  if rows is LISTS: assert known_B.all() and set(label_B) == {0, .5, 1}
  want = by_hand(o_BC, x_BC, np.where(known_B, label_B, np.nan), columns.get("margin_B"))
  assert loss_of(run, state, placed) == pytest.approx(want, rel=1e-4)


def test_a_loss_of_the_features_of_pairs_is_added(folder):
  options = dict(name="reward_model.contrast_pairs", coef=.5, dropout=0., temperature=1.)
  run, state, (rollouts, _, columns), placed = first_batch(config_of(
      folder, PAIRS, "bradley_terry", auxiliary=options))
  at = np.arange(len(rollouts.tokens_BS)), np.asarray(rollouts.completion_len_B)
  longer, config = padding.append(rollouts, 0), run.passes.models["prm"]
  o_BC, x_BD = (np.asarray(x)[at] for x in jax.jit(
      passes.outputs_and_features, static_argnums=1)(state.prm, config, longer, None))
  w_D1 = np.asarray(state.prm["value"]["w_D1"])
  np.testing.assert_allclose(o_BC, x_BD @ w_D1 + np.asarray(state.prm["value"]["b_1"]),
                             rtol=1e-4, atol=1e-4)
  label_B = columns["labels_BT"][np.arange(len(x_BD)), np.maximum(at[1] - 1, 0)]
  pairs = [(i, i + 1) for i in range(0, len(label_B), 4)]
  assert all(label_B[i] == 1 and label_B[j] == 0 for i, j in pairs)
  h_ND = np.stack([x_BD[i] - x_BD[j] for i, j in pairs])
  h_ND /= np.linalg.norm(h_ND, axis=1, keepdims=True)
  z_NN = h_ND @ h_ND.T
  want = np.mean([soft(o_BC[j, 0] - o_BC[i, 0]) for i, j in pairs]) + .5 * np.mean(
      np.log(np.exp(z_NN).sum(axis=1)) - np.diag(z_NN))
  assert loss_of(run, state, placed) == pytest.approx(want, rel=1e-4)
  # Other steps have other draws, the same step the same; who draws nothing has no column for it.
  groups = stored.group_completions(stored.read(run_file(folder, PAIRS), run.texts))
  noise = [stored.batch(groups, step, run)[2]["noise_B"] for step in (0, 0, 1)]
  assert (noise[0] == noise[1]).all() and (noise[0] != noise[2]).all()
  assert "noise_B" not in first_batch(config_of(folder, PAIRS, "bradley_terry"))[2][2]


def test_a_yes_or_no_scorer_learns_the_log_odds_of_its_answer(folder):
  run, state, (rollouts, outcome_B, columns), placed = first_batch(config_of(
      folder, LISTS, **ASKED))
  assert "value" not in state.prm and columns["labels_BT"].shape == (32, 1)
  tokens, config = run.texts.tokenizer, run.passes.models["prm"]
  yes, no = (tokens.vocabulary[x] for x in "YN")
  asked = [(tokens.encode(row["prompt"] + text + "?"), verdict) for row in LISTS
           for text, verdict in zip(row["completions"], row["verdicts"])]
  whole = trajectories.pairs([ids for ids, _ in asked], [[0]] * len(asked), tokens, 1, 16)
  z_BV = np.asarray(jax.jit(logps.logits, static_argnums=1)(state.prm, config, whole))[:, 0]
  odds = {tuple(ids): (z_V[yes] - z_V[no], verdict) for (ids, verdict), z_V in zip(asked, z_BV)}
  want = np.mean([soft(s) - y * s for s, y in odds.values()])
  assert loss_of(run, state, placed) == pytest.approx(want, rel=1e-4)
  # The same number at evaluation.
  x, *_ = stored.read(run_file(folder, LISTS), run.texts)
  got = prm_sets.score(run, state, [x.prompt], [x.ids])[""]
  assert got[0, 0] == pytest.approx(odds[tuple(tokens.encode("a001;0?"))][0], abs=1e-5)


def ends_in_six(prompt, text): return float(text.endswith("6"))
ends_in_six.is_bounded = True


def run_file(folder, rows):
  return folder / f"rows{abs(hash(json.dumps(rows)))}.jsonl"


def test_tokens_have_the_values_of_prefixes_or_labels_of_parts(folder):
  rows = [dict(prompt="a00", completions=["1;2", "1;3", "4"], verdicts=[1., 0., 0.])]
  run, state, (rollouts, _, columns), placed = first_batch(config_of(
      folder, rows, "mse", labels="prefixes"))
  labels = {run.texts.tokenizer.decode(ids): labels_T[:len(ids)].tolist() for ids, labels_T in zip(
      padding.completions(rollouts), columns["labels_BT"]) if ids}
  # Two of three begin with "1;", of which one is right; the last label is that of EOS.
  assert labels == {"1;2": [.5, .5, 1, 1], "1;3": [.5, .5, 0, 0], "4": [0, 0]}
  known_BT = ~np.isnan(columns["labels_BT"])
  want = ((numbers(run, state, rollouts)[:, 1:, 0] - columns["labels_BT"])[known_BT]**2).mean()
  assert loss_of(run, state, placed) == pytest.approx(want, rel=1e-4)

  rows = [dict(prompt="a00", completion="12;34", verdict=None, spans=[[0, 2, 1], [3, 5, .25]])]
  run, _, (rollouts, _, columns), _ = first_batch(config_of(folder, rows, labels="spans"))
  first = int(np.argmax(rollouts.completion_len_B))
  np.testing.assert_array_equal(columns["labels_BT"][first, :6], [1, 1, np.nan, .25, .25, np.nan])


def test_steps_are_right_and_leave_a_right_answer_possible(folder):
  """DuaShepherd's two labels, of rows that may have one alone; the score is that of both."""
  rows = [dict(prompt="a00", completion="1;2;3", verdict=0, label=1, values=[1., .5, 0.]),
          dict(prompt="a01", completion="4;5", verdict=1, label=-1),
          dict(prompt="a02", completion="6", verdict=1, values=[.25])]
  run, state, (rollouts, _, columns), placed = first_batch(config_of(
      folder, rows, labels="both", head="product"))
  known = lambda x_T: x_T[~np.isnan(x_T)].tolist()
  found = {run.texts.tokenizer.decode(ids): (known(a_T), known(b_T)) for ids, a_T, b_T in zip(
      padding.completions(rollouts), columns["labels_BT"], columns["potential_BT"]) if ids}
  assert found == {"1;2;3": ([1, 0, 0], [1, .5, 0]), "4;5": ([1, 1], []), "6": ([], [.25])}
  o_BTC = numbers(run, state, rollouts)[:, 1:]
  each = [soft(o_BTC[..., k]) - y_BT * o_BTC[..., k]
          for k, y_BT in enumerate((columns["labels_BT"], columns["potential_BT"]))]
  want = np.mean(np.concatenate([x[~np.isnan(x)] for x in each]))
  assert loss_of(run, state, placed) == pytest.approx(want, rel=1e-4)
  x = stored.read(run_file(folder, rows), run.texts)[0]
  got = prm_sets.score(run, state, [x.prompt], [x.ids])[""]
  row = next(b for b, ids in enumerate(padding.completions(rollouts)) if ids == x.ids)
  at = run.texts.step_columns([x.ids])[0]
  np.testing.assert_allclose(sigmoid(got[0]), np.prod(sigmoid(o_BTC[row, at]), axis=1), rtol=1e-4)


def test_two_steps_as_one_have_the_label_of_the_later(folder):
  rows = [dict(prompt="a00", completion="1;2;3", verdict=1, values=[1., 0., 1.])]
  c = config_of(folder, rows, labels="until_first_zero", merge_steps=True)
  run = build.build(c, learns="prm")
  for seed in range(8):
    part = dataclasses.replace(run, passes=dataclasses.replace(run.passes, seed=seed))
    first, copy = stored.label_all(stored.read(c.train_scorer.rollouts, run.texts), part, True)
    assert first.labels == (1, 0, 0)
    # Steps 0 and 1 as one are wrong; 1 and 2 as one are right again.
    np.testing.assert_array_equal(copy.labels, {0: [np.nan, 0, 0], 1: [1, np.nan, 1]}[
        copy.row["merged"]])


def test_pairs_of_a_file_train_an_implicit_prm_by_dpo(folder):
  c = config_of(folder, PAIRS, labels=None, more=dict(prm__loss=dict(name="prm.dpo")))
  run = build.build(c, learns="prm")
  state = run.init()
  state = state.replace(prm=jax.tree.map(lambda x: 1.1 * x, state.prm))
  groups = stored.group_completions(stored.read(c.train_scorer.rollouts, run.texts))
  rollouts, outcome_B, _ = stored.batch(groups, 0, run)
  placed = train_scorer._place(run, state, stages.annotate(run, state, rollouts, outcome_B), {})
  own_BT, ref_BT = placed.passes.logps("prm", "prm"), placed.passes.prm_reference()
  ratio_B = np.where(rollouts.mask_BT, own_BT - ref_BT, 0).sum(axis=1)
  z_PG = c.prm.beta * ratio_B.reshape(-1, 4)
  want = np.mean(soft(z_PG[:, 1] - z_PG[:, 0]))
  assert np.asarray(outcome_B).reshape(-1, 4)[:, :2].tolist() == [[1, 0]] * 8
  assert loss_of(run, state, placed) == pytest.approx(want, rel=1e-4)


def test_pairs_are_chosen_and_swapped_by_frozen_scorers(folder, tmp_path, capsys):
  """As preferences.keep_agreed says of scores by passes over whole rows; margins are strengths."""
  config, params, tokens = weights.load(folder / "model")
  heads = {}
  for i in range(2):
    own = dataclasses.replace(config, has_head=True, tied_head=True)
    heads[f"s{i}"] = own, value.init(own, params)
    heads[f"s{i}"][1]["value"]["w_D1"] = np.random.default_rng(i).normal(
        size=(own.d_model, 1)).astype(np.float32)
    hf.save(folder / f"s{i}", *heads[f"s{i}"], tokens)
  rows = [{name: x for name, x in row.items() if name != "margin"} | dict(rejected=f"7;;{i}")
          for i, row in enumerate(PAIRS)]
  c = config_of(folder, rows, "soft_bradley_terry", dict(
      verifier__scores=("scorers.s0", "scorers.s1"),
      scorers={name: dict(path=str(folder / name)) for name in heads}),
                curate=dict(name="preferences.keep_agreed"))
  run = build.build(c, learns="prm")
  options = options_lib.read_options(train_scorer.Options, c, curate=methods.bind_curation(c))
  got, _ = train_scorer.data(run, run.init(), tmp_path, options)
  read = stored.read(c.train_scorer.rollouts, run.texts)
  longer = padding.append(run.texts.rollouts([x.prompt for x in read], [x.ids for x in read]), 0)
  at = np.arange(len(read)), [len(x.ids) for x in read]
  gap_NM = np.stack([np.asarray(_outputs(x, own, longer, None))[at][:, 0]
                     for own, x in heads.values()], axis=1).reshape(-1, 2, 2)
  gap_NM = gap_NM[:, 0] - gap_NM[:, 1]
  want = []
  for row, gap_M in zip(rows, gap_NM):
    if (gap_M > 0).all(): want.append((row["chosen"], row["rejected"], gap_M.mean()))
    if (gap_M < 0).all(): want.append((row["rejected"], row["chosen"], -gap_M.mean()))
  swapped = int((gap_NM < 0).all(axis=1).sum())
  assert 0 < swapped < len(want) < len(rows)
  said = f"of 8 pairs {swapped} are swapped and {len(rows) - len(want)} left out."
  assert said in capsys.readouterr().err
  again = stored.read(tmp_path / "curated.jsonl", run.texts)
  for found in (got, again):
    assert [x.row["completion"] for x in found] == [text for *pair, _ in want for text in pair]
    assert [x.verdict for x in found] == [1, 0] * len(want)
    np.testing.assert_allclose([x.row["margin"] for x in found[::2]], [m for *_, m in want],
                               rtol=1e-4)
  # Of a group with more completions the first best one and the first worst one are the pair, and a
  # verifier's scores are scores, too.
  c = config_of(folder, LISTS, "bradley_terry", dict(
      verifier__scores=("tests.test_scorer_training:ends_in_six",)),
                curate=dict(name="preferences.favour_feature"))
  run, by_feature = build.build(c, learns="prm"), methods.bind_curation(c)
  read = stored.read(c.train_scorer.rollouts, run.texts)
  got = stored.curate(tmp_path / "x", run, None, read, c.verifier.scores, by_feature)
  assert [x.row["completion"] for x in got] == [
      row["completions"][i] for row in LISTS for i in (
          (2, 0) if row["completions"][0] != "1;6" else (0, 2))]
  with pytest.raises(ValueError, match="train_scorer.curate: rows with pairs"):
    stored.curate(tmp_path / "x", run, None, read[1:2], c.verifier.scores, by_feature)


def test_labels_that_are_missing_are_those_of_other_models(folder, tmp_path):
  """DuaShepherd's, each of its kind, at the ends of steps."""
  config, params, tokens = weights.load(folder / "model")
  config = dataclasses.replace(config, has_head=True, tied_head=True)
  params = value.init(config, params)
  for i in range(2):
    params["value"]["w_D1"] = np.random.default_rng(i).normal(
        size=(config.d_model, 1)).astype(np.float32)
    hf.save(tmp_path / f"s{i}", config, params, tokens)
  rows = [dict(prompt="a00", completion="1;2;3", verdict=0, label=1),
          dict(prompt="a01", completion="4;5", verdict=1, values=[.25, 1.])]
  of = lambda kind: config_of(folder, rows, more=dict(
      verifier__scores=("scorers.s0", "scorers.s1"), scorers={
          f"s{i}": dict(path=str(tmp_path / f"s{i}"), kind=kind) for i in range(2)}),
                              labels="both", head="product", pseudo_labels=True)
  c = of("probability")
  run = build.build(c, learns="prm")
  (first, second), _ = train_scorer.data(run, run.init(), tmp_path, options_lib.read_options(
      train_scorer.Options, c))
  longer = padding.append(run.texts.rollouts([x.prompt for x in (first, second)],
                                             [x.ids for x in (first, second)]), 0)
  at = run.texts.step_columns([first.ids, second.ids])
  def probabilities(i, row):
    _, own, _ = weights.load(tmp_path / f"s{i}")
    return sigmoid(np.asarray(_outputs(own, config, longer, None))[row, 1:, 0][at[row]])
  assert first.labels == (1, 0, 0) and second.potentials == (.25, 1)
  np.testing.assert_allclose(first.potentials, probabilities(1, 0), rtol=1e-4)
  np.testing.assert_allclose(second.labels, probabilities(0, 1), rtol=1e-4)
  with pytest.raises(ValueError, match="verifier.scores=.*: two scorers of kind probability"):
    build.build(of("head"), learns="prm")


@pytest.mark.parametrize("head", ["mixture", "yes_no"])
def test_what_is_written_is_read_as_a_scorer(folder, tmp_path, monkeypatch, head):
  """With adapters; a policy's scores are those of the evaluation."""
  shutil.copytree(folder / "model", start := tmp_path / "start")
  told, chosen = tiny.say_more(start)
  monkeypatch.setattr(curves, "draw_at_k", lambda *_: None)
  rows, loss, options, scorer = dict(
      mixture=(LISTS, "mixture", dict(head="mixture", heads=3), dict(kind="head")),
      yes_no=(LISTS, "bce", ASKED, dict(kind="yes_no", question="?", yes="Y", no="N")))[head]
  c = config_of(folder, rows, loss, dict(lora__rank=2, model__path=str(start)), **options)
  run = tiny.build_run(c, learns="prm")
  with tiny.building(run): assert train_scorer.train(c, tmp_path)["loss"]
  trained, _ = tiny.restored(run, tmp_path)
  config, params, _ = weights.load(tmp_path / "scorer")
  assert config.has_head == (head != "yes_no") == ("value" in params)
  # What the model came with is kept, but for what says that it gives scores.
  read = lambda name: json.loads((tmp_path / "scorer" / name).read_text())
  scores = {} if head == "yes_no" else dict(architectures=["MistralForSequenceClassification"])
  new = {name: read("config.json")[name] for name in {*read("config.json")} - {*told}}
  assert read("config.json") == told | scores | new and read("generation_config.json") == chosen
  assert set(new) <= {"num_labels", "score_head"} and bool(new) == config.has_head
  assert tokenizer.load(tmp_path / "scorer").hf.chat_template == "{{ messages[0].content }}"
  policy = build.build(tiny.config(
      folder, verifier__scores=("scorers.own",), rollouts__max_tokens=8, rollouts__bucket=8,
      rollouts__chunk=8, scorers=dict(own=dict(path=str(tmp_path / "scorer"), **scorer)),
      rewards=dict(outcome=dict(name="outcome.score", coef=1.0)),
      advantages=dict(outcome=dict(name="group.rloo"), whiten=False)))
  read = stored.read(c.train_scorer.held_out, run.texts)[:4] * 8
  rollouts = run.texts.rollouts([x.prompt for x in read], [x.ids for x in read])
  scores_B = stages.score(policy, policy.init(), rollouts, np.ones(32)).batch.scores_B
  want_B = prm_sets.score(run, trained, [x.prompt for x in read], [x.ids for x in read])[""][:, 0]
  np.testing.assert_allclose(scores_B, sigmoid(want_B) if head == "yes_no" else want_B, atol=1e-4)


def test_a_head_is_resumed_bit_by_bit_and_the_same_on_eight_devices(folder, tmp_path, monkeypatch):
  monkeypatch.setattr(curves, "draw_at_k", lambda *_: None)
  more = [row | dict(prompt=f"b{i:02d}") for i, row in enumerate(LISTS[:4])]  # 1.5 steps an epoch.
  c = config_of(folder, LISTS + more, "bce", dict(steps=4, checkpoint__every=1))
  run = tiny.build_run(c, learns="prm")
  with tiny.building(run):
    train_scorer.train(c, tmp_path / "whole")
    train_scorer.train(_steps(c, 2), tmp_path / "parts")
    train_scorer.train(c, tmp_path / "parts")
  (state, host), (again, host_again) = (
      tiny.restored(run, tmp_path / name) for name in ("whole", "parts"))
  tiny.assert_equal_trees((again.prm, again.prm_opt), (state.prm, state.prm_opt))
  assert host_again.training_tokens == host.training_tokens > 0
  assert tiny.lines(tmp_path / "parts") == tiny.lines(tmp_path / "whole")
  spread = _steps(c, 4)
  spread.mesh.data, spread.mesh.fsdp = 2, 4
  other = build.build(spread, learns="prm")
  with tiny.building(other): train_scorer.train(spread, tmp_path / "mesh")
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4),
               tiny.restored(other, tmp_path / "mesh")[0].prm, state.prm)


def test_a_head_goes_on_from_that_of_its_start(folder, tmp_path):
  config, params, tokens = weights.load(folder / "model")
  config = dataclasses.replace(config, has_head=True, tied_head=True)
  params = value.init(config, params)
  params["value"]["w_D1"] = np.random.default_rng(5).normal(
      size=(config.d_model, 1)).astype(np.float32)
  hf.save(tmp_path / "start", config, params, tokens)
  of = lambda **options: build.build(config_of(
      folder, LISTS, more=dict(prm__path=str(tmp_path / "start")), **options), learns="prm")
  tiny.assert_equal_trees(of().init().prm["value"], params["value"])
  with pytest.raises(ValueError, match="prm.path=.*: a language model; this one has a head"):
    of(**ASKED)


def test_a_scorer_keeps_what_its_own_start_came_with(folder, tmp_path, monkeypatch):
  """Not what the policy came with, whose tokens are the same."""
  monkeypatch.setattr(curves, "draw_at_k", lambda *_: None)
  shutil.copytree(folder / "model", start := tmp_path / "start")
  _, chosen = tiny.say_more(start, top_k=5)
  c = config_of(folder, LISTS, "bce", dict(prm__path=str(start), steps=1))
  run = tiny.build_run(c, learns="prm")
  with tiny.building(run): train_scorer.train(c, tmp_path / "run")
  scorer = tmp_path / "run/scorer"
  assert json.loads((scorer / "generation_config.json").read_text()) == chosen
  assert tokenizer.load(scorer).hf.chat_template == "{{ messages[0].content }}"


def _steps(c, steps):
  c = c.copy_and_resolve_references()
  c.steps = steps
  return c


def test_a_mixture_has_the_weights_of_a_user(folder, tmp_path, monkeypatch, capsys):
  """As adapt_routing says of the heads by passes over whole rows, at each prompt."""
  monkeypatch.setattr(curves, "draw_at_k", lambda *_: None)
  c = config_of(folder, LISTS, "mixture", dict(steps=1), head="mixture", heads=3)
  train_scorer.train(c, tmp_path / "first")
  config, start, tokens = weights.load(tmp_path / "first/scorer")
  start["value"]["w_D1"] = np.random.default_rng(5).normal(
      size=(config.d_model, 6)).astype(np.float32)
  hf.save(tmp_path / "start", config, start, tokens)
  c = config_of(folder, PAIRS, "mixture", dict(steps=0, prm__path=str(tmp_path / "start")),
                head="mixture", heads=3, adapt_rate=.5)
  train_scorer.train(c, tmp_path / "user")
  assert "the weights of the heads are multiplied by" in capsys.readouterr().err
  _, params, _ = weights.load(tmp_path / "user/scorer")
  tiny.assert_equal_trees(*({**x, "value": x["value"]["w_D1"]} for x in (params, start)))
  run = build.build(c, learns="prm")
  read = stored.read(run_file(folder, PAIRS), run.texts)
  longer = padding.append(run.texts.rollouts([x.prompt for x in read], [x.ids for x in read]), 0)
  before, after = (np.asarray(_outputs(x, config, longer, None)) for x in (start, params))
  at = np.arange(len(read)), [len(x.ids) for x in read]
  gap_NK = before[at][::2, :3] - before[at][1::2, :3]
  pi_BK, new_BK = (np.exp(x[:, 0, 3:]) / np.exp(x[:, 0, 3:]).sum(axis=1, keepdims=True)
                   for x in (before, after))
  want_BK = pi_BK * np.exp(-.5 * soft(-gap_NK).sum(axis=0))
  np.testing.assert_allclose(new_BK, want_BK / want_BK.sum(axis=1, keepdims=True), rtol=1e-3)
  np.testing.assert_allclose(after[..., :3], before[..., :3], atol=1e-5)
  assert abs(new_BK - pi_BK).max() > .01


def test_an_energy_corrects_the_scores_of_a_head(folder, tmp_path, monkeypatch, capsys):
  """Trained on the pairs that the head ranks right, and read by a run and by what evaluates."""
  monkeypatch.setattr(curves, "draw_at_k", lambda *_: None)
  c = config_of(folder, PAIRS, "bradley_terry", dict(
      train_scorer__energy__steps=20, train_scorer__energy__rate=.003,
      train_scorer__energy__stds=(.5, 1.)))
  train_scorer.train(c, tmp_path / "first")
  path = tmp_path / "first/scorer"
  config, params, tokens = weights.load(path)
  learned = energy_io.load(path, config.d_model)
  run = build.build(c, learns="prm")
  read = stored.read(run_file(folder, PAIRS), run.texts)
  rollouts = run.texts.rollouts([x.prompt for x in read], [x.ids for x in read])
  o_BTC, x_BTD = jax.jit(passes.outputs_and_features, static_argnums=1)(
      params, config, padding.append(rollouts, 0), None)
  at = np.arange(len(read)), [len(x.ids) for x in read]
  s_B, x_BD = np.asarray(o_BTC)[at][:, 0], np.asarray(x_BTD)[at]
  # The same training by hand.
  is_right_N = np.repeat(s_B[::2] > s_B[1::2], 2)
  assert f"{is_right_N.sum() // 2} of 8 pairs are ranked right" in capsys.readouterr().err
  want, _ = energy.fit(
      energy.init(rng.key(c.seed, "energy"), config.d_model), rng.key(c.seed, "energy noise"),
      jnp.asarray(x_BD[is_right_N]), jnp.asarray(s_B[is_right_N]), steps=20, rate=.003,
      stds=(.5, 1.))
  assert {x.shape for x in jax.tree.leaves(learned)} == {x.shape for x in jax.tree.leaves(want)}
  for a, b in zip(jax.tree.leaves(learned), jax.tree.leaves(want)):
    np.testing.assert_allclose(a, b, rtol=.05, atol=.004)
  # A run reads corrected scores, which differ from those of the head.
  corrected_B = np.asarray(energy.correct(learned, x_BD, s_B))
  assert np.abs(corrected_B - s_B).max() > .01
  rl = tiny.config(folder, scorers=dict(own=dict(path=str(path), kind="energy")),
                   verifier__scores=("scorers.own",), rollouts__max_tokens=8, rollouts__bucket=8,
                   rollouts__chunk=8, rewards=dict(outcome=dict(name="outcome.score", coef=1.0)),
                   advantages=dict(outcome=dict(name="group.rloo"), whiten=False))
  policy, more = build.build(rl), np.arange(32) % len(read)
  ids = [read[i] for i in more]
  rows = run.texts.rollouts([x.prompt for x in ids], [x.ids for x in ids])
  state = policy.init()
  scores = stages.score(policy, state, rows, np.zeros(32, np.float32)).batch.scores_B
  np.testing.assert_allclose(scores, corrected_B[more], atol=2e-4)
  assert "scoring, scorers.own" in [
      p.name for p in memory.trace_programs(policy, policy.shapes())]
  judge = measuring.scorer_of(rl, "scorers.own")
  prompts = [records.Prompt(str(i), row["prompt"], "", meta=dict(is_rendered=True))
             for i, row in enumerate(PAIRS)]
  np.testing.assert_allclose(judge.score(prompts, [row["chosen"] for row in PAIRS]),
                             corrected_B[::2], atol=2e-4)
  with pytest.raises(ValueError, match=f"of {config.d_model} features, the model beside it has 3"):
    energy_io.load(path, 3)
  (path / "energy.npz").write_bytes(b"PK\3\4 damaged")
  with pytest.raises(ValueError, match="energy.npz is damaged"): build.build(rl)
  (path / "energy.npz").unlink()
  with pytest.raises(ValueError, match="energy.npz is missing; `rlx train_scorer` writes it"):
    build.build(rl)
