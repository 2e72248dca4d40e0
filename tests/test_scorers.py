"""Frozen models of `scorers`: what they give as scores, their memory, and what is refused."""
import dataclasses
import pathlib

import jax
import numpy as np
import pytest

from rlx import build
from rlx.build import load, memory
from rlx.io import hf, tokenizer, weights
from rlx.loops import rl
from rlx.models import logps, transformer, value
from rlx.rollouts import padding, trajectories
from rlx.stages import collect, columns, host_state, model_fields, passes, update_prm
from rlx.tools import convert
from tests import stages, tiny

KNOWN = "0123456789abcdefgh;YN?"
ENSEMBLE = dict(rewards=dict(outcome=dict(name="shaping.ensemble", kind="mean", coef=1.0)),
                advantages=dict(outcome=dict(name="group.rloo"), whiten=False))
QUESTION = dict(question="?", yes="Y", no="N")
KINDS = dict(head=dict(kind="head"), likely=dict(kind="probability"), ratio=dict(kind="implicit"),
             asked=dict(kind="yes_no", **QUESTION))
TEXTS = ["1a2;b", "b", "", "c;cc"] * 8
# Prompts with a reference answer.
ANSWERED = dict(prompts__columns=dict(verifier="format.ascii_share", answer="question"))


@pytest.fixture(scope="module", name="folder")
def written(tmp_path_factory):
  """A policy, a language model "text" and a model with a head, "head", of another size."""
  folder = tmp_path_factory.mktemp("scorers")
  tiny.write(folder, alphabet=KNOWN)
  for name, alphabet, has_head in (("text", KNOWN, False), ("head", KNOWN, True),
                                   ("short", KNOWN, True), ("other", KNOWN[:-1] + "x", True)):
    tokens = tokenizer.characters(alphabet)
    config = transformer.DecoderConfig(
        vocab_size=len(tokens.vocabulary), d_model=24, n_layers=2, n_heads=4, n_kv_heads=2,
        head_dim=6, d_ff=16, has_head=has_head, context=15 if name == "short" else None)
    params = tiny.draw_decoder(config)
    if has_head:
      params = value.init(config, params)
      params["value"] = {"w_D1": params["embed"]["w_VD"][:1].T, "b_1": np.float32([0.25])}
    hf.save(folder / name, config, params, tokens)
  return folder


def config_of(folder, names, changes=(), **more):
  changes = ENSEMBLE | dict(changes)
  parts = {name: dict(path=str(folder / ("text" if name in ("ratio", "asked") else "head")),
                      **KINDS[name]) for name in names}
  return tiny.config(folder, scorers=parts, **dict(
      learner__pack=True, rollouts__max_tokens=8, rollouts__bucket=8, rollouts__chunk=8,
      rollouts__step_separator=";") | changes | more)


def expected(run, state, rollouts):
  """{kind: scores_BT} by forward passes of whole rows without packing."""
  models = {name: dataclasses.replace(x, remat="none") for name, x in run.passes.models.items()}
  params = state.frozen_models
  longer = padding.append(jax.device_get(rollouts), 0)
  head_BT = np.asarray(value.values(
      params["scorers.head"], models["scorers.head"], longer.tokens_BS, longer.positions_BS,
      longer.valid_BS, completion_width=longer.sampler_logps_BT.shape[1]))[:, 1:]
  found = dict(head=head_BT, likely=1 / (1 + np.exp(-head_BT)))
  if "scorers.ratio" not in params: return found
  drawn = [np.take_along_axis(np.asarray(jax.nn.log_softmax(logps.logits(p, models[m], rollouts))),
                              np.asarray(rollouts.completions_BT)[..., None], 2)[..., 0]
           for p, m in ((params["scorers.ratio"], "scorers.ratio"), (state.reference, "policy"))]
  return found | dict(ratio=np.cumsum(np.where(rollouts.mask_BT, drawn[0] - drawn[1], 0), axis=1))


def test_a_batch_has_the_scores_of_all_kinds_and_of_verifiers(folder):
  names = ("scorers.likely", "format.ascii_share", "scorers.head", "scorers.ratio", "scorers.asked")
  run = build.build(config_of(folder, KINDS, dict(verifier__scores=names)))
  assert [f.where for f in run.planned if f.name == "scores_BE"] == ["model"]
  state, prompts = run.init(), run.prompts.take(8)
  rollouts = stages.rollouts(run, prompts, [run.texts.tokenizer.encode(t) for t in TEXTS], 8)
  placed = stages.score(run, state, rollouts, np.float32([1, 0, 0, 1] * 8), prompts)
  batch = placed.batch
  all_BT, len_B = expected(run, state, rollouts), np.asarray(rollouts.completion_len_B)
  at = np.maximum(len_B - 1, 0)[:, None]
  want = {f"scorers.{name}": np.take_along_axis(x_BT, at, 1)[:, 0] for name, x_BT in all_BT.items()}
  tokens = run.texts.tokenizer
  asked = [np.concatenate([run.texts.prompt_ids(p), tokens.encode(TEXTS[4 * i + g] + "?")])
           for i, p in enumerate(prompts) for g in range(4)]
  config = dataclasses.replace(run.passes.models["scorers.asked"], remat="none")
  yes, no = (tokens.vocabulary[x] for x in "YN")
  after = []
  for ids in asked:  # The logits after the question.
    rows = trajectories.pairs([ids.tolist()], [[0]], tokens, 1, len(ids))
    logits_V = np.asarray(logps.logits(state.frozen_models["scorers.asked"], config, rows))[0, 0]
    after.append(1 / (1 + np.exp(logits_V[no] - logits_V[yes])))
  want["scorers.asked"] = np.array(after)
  scores_BE = np.asarray(batch.scores_BE)
  for e, name in enumerate(names):
    if name in want:
      np.testing.assert_allclose(scores_BE[:, e], np.where(len_B > 0, want[name], np.nan),
                                 atol=1e-5, err_msg=name)
      assert np.nanstd(scores_BE[:, e]) > 1e-4
    else: np.testing.assert_allclose(scores_BE[:4, e], [run.pool.verify([prompts[0]], [t])[0]
                                                        for t in TEXTS[:4]])
  assert not np.asarray(batch.learn_B)[len_B == 0].any() and np.asarray(batch.learn_B).any()
  assert "scorers.head" in memory.count_state_bytes(run.shapes())
  traced = [p.name for p in memory.trace_programs(run, run.shapes())]
  assert {f"scoring, {name}" for name in ("scorers.head", "scorers.ratio", "scorers.asked")} <= {
      *traced}
  _, _, metrics = stages.update(run, state, placed)
  assert np.isfinite(metrics["policy/loss"])


def test_scores_of_steps_and_of_tokens(folder):
  """steps.completion reads the scorer of verifier.steps, steps.redistribute the first score."""
  rewards = dict(step=dict(name="steps.completion", kind="mean", coef=1.0),
                 spread=dict(name="steps.redistribute", coef=1.0),
                 tokens=dict(name="steps.spans", coef=1.0))
  run = build.build(config_of(folder, ("head", "likely", "ratio"), dict(
      rewards=rewards, advantages=dict(total=dict(name="process.reinforce"), whiten=False),
      verifier__scores=("scorers.ratio", "scorers.head"), verifier__steps="scorers.likely",
      verifier__spans="scorers.likely")))
  state, tokens = run.init(), run.texts.tokenizer
  ids = [tokens.encode(t) + [tokens.end_id] * (i % 4 == 3) for i, t in enumerate(TEXTS)]
  rollouts = stages.rollouts(run, run.prompts.take(8), ids, 8,
                             np.arange(32, dtype=np.int32) % 4 == 3)
  batch = stages.score(run, state, rollouts, np.float32([1, 0, 0, 1] * 8)).batch
  all_BT, ends_BT = expected(run, state, rollouts), np.asarray(batch.step_ends_BT)
  assert ends_BT.sum(axis=1)[:4].tolist() == [2, 1, 0, 2]
  for field, name in (("step_scores_BT", "likely"), ("prefix_scores_BT", "ratio")):
    np.testing.assert_allclose(getattr(batch, field), np.where(ends_BT, all_BT[name], 0), atol=1e-5)
  has_text_BT = np.arange(8) < np.array([len(t) for t in TEXTS])[:, None]  # All but EOS.
  np.testing.assert_allclose(batch.span_scores_BT, np.where(has_text_BT, all_BT["likely"], .5),
                             atol=1e-5)


def test_a_head_reads_the_reference_answer(folder):
  """Between prompt and completion, of completions and of their steps."""
  c = config_of(folder, ("head", "likely"), dict(
      verifier__scores=("scorers.head",), verifier__steps="scorers.likely", rewards=dict(
          outcome=dict(name="outcome.score", coef=1.0),
          step=dict(name="steps.completion", kind="mean", coef=1.0)),
      advantages=dict(total=dict(name="group.rloo"), whiten=False), **ANSWERED))
  for part in c.scorers.values(): part.update(dict(reference="{};", reference_tokens=4))
  run = build.build(c)
  state, prompts, tokens = run.init(), run.prompts.take(8), run.texts.tokenizer
  prompts = [dataclasses.replace(p, answer=str(i)) for i, p in enumerate(prompts)]
  ids = [tokens.encode(t, add_bos=False) for t in TEXTS]
  rollouts = stages.rollouts(run, prompts, ids, 8)
  batch = stages.score(run, state, rollouts, np.float32([1, 0, 0, 1] * 8), prompts).batch
  asked = [list(run.texts.prompt_ids(p)) for p in prompts]
  rows = trajectories.pairs(
      [asked[b // 4] + tokens.encode(f"{b // 4};", add_bos=False) for b in range(32)], ids, tokens,
      8, 16)
  head_BT = expected(run, state, rows)["head"]
  len_B = np.asarray(rollouts.completion_len_B)
  want_B = np.where(len_B > 0, head_BT[np.arange(32), np.maximum(len_B - 1, 0)], np.nan)
  np.testing.assert_allclose(batch.scores_B, want_B, atol=1e-5)
  np.testing.assert_allclose(batch.step_scores_BT, np.where(
      batch.step_ends_BT, 1 / (1 + np.exp(-head_BT)), 0), atol=1e-5)
  prompts[3] = dataclasses.replace(prompts[3], answer="12345")
  with pytest.raises(ValueError, match="scorers.head.reference_tokens=4: .* has 6 tokens"):
    stages.score(run, state, rollouts, np.float32([1, 0, 0, 1] * 8), prompts)


def test_a_saved_head_is_read_again_and_by_no_other_key(folder):
  config, params, _ = weights.load(folder / "head")
  assert config.has_head and config.tied_head and "head" not in params
  assert params["value"]["b_1"] == [0.25]
  c = config_of(folder, (), verifier__scores=("format.ascii_share",))
  c.model.path = str(folder / "head")
  with pytest.raises(ValueError, match="a language model; this one has a head for scores"):
    build.build(c)


def reads_later(logps_BT): return logps_BT


def reads_greedy(greedy_PG): return greedy_PG


LONE = dict(verifier__scores=("scorers.head",))
GAE = dict(rewards=dict(outcome=dict(name="outcome.score", coef=1.0)),
           advantages=dict(outcome=dict(name="temporal.gae", lam=1.0), whiten=False))


FILTERED = dict(
    verifier__scores=("scorers.head", "scorers.likely", "format.ascii_share"),
    rollouts__filter_groups=dict(name="filter_groups.score_band", low=0.26, least_std=0.2),
    rollouts__select_completions=dict(name="select_completions.agreed", most=0.3))


@pytest.mark.parametrize("more", [
    dict(), dict(learner__microbatches=2, learner__minibatches=1),
    dict(rollouts__bucket=4, learner__pack=False),
    dict(mesh=dict(data=2, fsdp=2, tensor=1))], ids=str)
def test_filters_read_scores_of_models_which_are_computed_once(folder, more, monkeypatch):
  """Groups by a score and completions by the disagreement of an ensemble, in several draws."""
  run = build.build(config_of(folder, ("head", "likely"), FILTERED | more))
  state, host = run.init(), host_state.HostState(rehearsed={})
  asked, verify = [], run.pool.verify
  monkeypatch.setattr(run.pool, "verify", lambda p, t: asked.append(len(t)) or verify(p, t))
  batch, metrics = run.collect(state, host, 0, tiny.CLOCK)
  rows = run.sizes.draw * 4 * metrics["rollouts/draws"]
  assert metrics["rollouts/draws"] > 1 and sum(asked) == 2 * rows  # The verdict and the score.
  annotated = run.annotate(state, batch)
  assert sum(asked) == 2 * rows
  host_BE = annotated.batch.scores_BE
  monkeypatch.setattr(passes.Passes, "token_scores", None)  # Nothing is scored again.
  placed = run.score(state, run.place(annotated))
  np.testing.assert_array_equal(placed.batch.scores_BE, host_BE)
  all_BT = expected(run, state, batch.rollouts)
  at = np.maximum(batch.rollouts.completion_len_B - 1, 0)[:, None]
  has_any_B = batch.rollouts.completion_len_B > 0
  for e, name in enumerate(("head", "likely")):
    np.testing.assert_allclose(host_BE[has_any_B, e], np.take_along_axis(
        all_BT[name], at, 1)[has_any_B, 0], atol=1e-5)
  learn_PG = annotated.batch.replace(excluded_B=np.zeros(32, np.int8)).learn_PG
  score_PG = np.where(learn_PG, host_BE[:, 0].reshape(-1, 4), np.nan)
  keep_P = (np.nanmean(score_PG, axis=1) >= 0.26) & (np.nanstd(score_PG, axis=1) >= 0.2)
  assert list(keep_P) == sorted(keep_P, reverse=True) and keep_P.any()  # Those that failed last.
  kept_PG = learn_PG & (host_BE.std(axis=1).reshape(-1, 4) <= 0.3)
  np.testing.assert_array_equal(annotated.batch.learn_PG, kept_PG)
  assert 0 < kept_PG.sum() < learn_PG.sum()


def test_a_run_with_filters_of_scores_resumes_bit_for_bit(folder, tmp_path):
  """With a scorer that learns and reads reference answers, and stored completions, which are scored
  with the batch."""
  c = config_of(folder, ("head", "likely"), FILTERED | ANSWERED | dict(
      rollouts__select_completions=dict(name="select_completions.everything"),
      rollouts__rehearsal=2,
      learner__auxiliary=dict(name="auxiliary.rehearsal", coef=1.0)), steps=2,
                checkpoint__every=1)
  c.scorers.head.update(update_of("verdicts", "bce") | dict(
      reference="{};", reference_tokens=4))
  run = build.build(c)
  assert {"appended_passes", "scores_BE"} <= {f.name for f in run.score.planned}
  batches, score = [], run.score.__call__
  def kept(state, placed):
    batches.append(score(state, placed))
    return batches[-1]
  run = dataclasses.replace(run, score=kept)
  stored = {p.id: [3, run.texts.tokenizer.end_id] for p in run.prompts.first(4)}
  with tiny.building(run), pytest.MonkeyPatch.context() as patch:
    patch.setattr(collect.Collect, "find_solved", lambda *_: stored)
    rl.train(c, tmp_path / "whole")
    rl.train(c, tiny.killed_after(tmp_path / "whole", 1, tmp_path / "resumed"))
  assert tiny.lines(tmp_path / "resumed") == tiny.lines(tmp_path / "whole")
  scores_BE = np.asarray(batches[0].batch.scores_BE)  # The last row of two groups is stored.
  assert np.isfinite(scores_BE[[27, 31]]).all() and np.isnan(scores_BE[28:31, 0]).all()
  ends = [tiny.restored(run, tmp_path / x)[0] for x in ("whole", "resumed")]
  tiny.assert_equal_trees(*((x.policy, x.scorers, x.scorers_opt) for x in ends))
  assert np.any(ends[0].scorers["scorers.head"]["value"]["b_1"] != [0.25])  # Where it started.
  convert.convert(tmp_path / "resumed", tmp_path / "scorer", model="head")
  tiny.assert_equal_trees(weights.load(tmp_path / "scorer")[1], ends[0].scorers["scorers.head"])


def test_without_such_a_filter_nothing_is_scored_before_the_batch(folder, monkeypatch):
  """The programs are those of a run that cannot do it; a selection alone scores no draw."""
  monkeypatch.setattr(columns, "passes_lib", None)  # What early passes would need.
  one = dict(verifier__scores=FILTERED["verifier__scores"])
  state, host = None, host_state.HostState(rehearsed={})
  for changes, is_early in ((one, False), ({k: x for k, x in FILTERED.items()
                                           if "filter" not in k}, True)):
    run = build.build(config_of(folder, ("head", "likely"), changes))
    assert run.collect.columns is None and (run.score.planned == run.planned) is not is_early
    state = state or run.init()
    batch, _ = run.collect(state, host, 0, tiny.CLOCK)
    if not is_early: assert len(run.annotate(state, batch).batch.learn_B) == 32
    else:
      with pytest.raises(AttributeError): run.annotate(state, batch)


@pytest.mark.parametrize("path", ["scorers.head", "head"])
def test_the_first_values_are_the_scores_of_a_scorer(folder, path):
  """V before a token is the score up to the token before it; of a model of another size."""
  c = config_of(folder, ("head",), LONE | GAE | dict(
      value__path=path if "." in path else str(folder / path)))
  run = build.build(c)
  state = run.init()
  rollouts = stages.rollouts(run, run.prompts.take(8), [
      run.texts.tokenizer.encode(t, add_bos=False) for t in TEXTS], 8)
  placed = stages.score(run, state, rollouts, np.float32([1, 0, 0, 1] * 8))
  head_BT = expected(run, state, rollouts)["head"]
  after_BT = np.asarray(rollouts.mask_BT)[:, 1:]
  np.testing.assert_allclose(np.where(after_BT, placed.batch.values_BT[:, 1:], 0),
                             np.where(after_BT, head_BT[:, :-1], 0), atol=1e-5)
  assert (np.abs(head_BT[:, :-1])[after_BT] > 0.01).all()
  placed, _ = run.rewards_advantages(state, placed)
  scorer = np.asarray(state.frozen_models["scorers.head"]["value"]["w_D1"])
  state, metrics = run.update_value(state, placed, 0)
  assert metrics["value/grad_norm"] > 0
  assert np.any(np.asarray(state.value["value"]["w_D1"]) != scorer)
  np.testing.assert_array_equal(state.frozen_models["scorers.head"]["value"]["w_D1"], scorer)


def update_of(labels, loss, **more):
  return dict(online=dict(labels=labels, loss=dict(name=f"reward_model.{loss}"),
                          optimizer=dict(lr=3e-2), **more))


@pytest.mark.parametrize("loss, more, mesh", [
    ("bce", dict(microbatches=2), dict()),
    ("bradley_terry", dict(minibatches=2), dict(mesh=dict(data=2, fsdp=2, tensor=1)))], ids=str)
def test_a_scorer_learns_verdicts_beside_the_policy(folder, loss, more, mesh):
  """Its loss by hand; rewards read the scores before the update, and the next step those after."""
  c = config_of(folder, ("head", "likely"), dict(
      mesh, verifier__scores=("scorers.head", "scorers.likely")))
  c.scorers.head.update(update_of("verdicts", loss, **more))
  run = build.build(c)
  state = run.init()
  assert set(state.scorers) == {"scorers.head"} and set(state.frozen_models) == {"scorers.likely"}
  rollouts = stages.rollouts(run, run.prompts.take(8),
                             [run.texts.tokenizer.encode(t, add_bos=False) for t in TEXTS], 8)
  outcome_B = np.float32([1, 0, 0, 1] * 7 + [np.nan, 0, 0, 1])
  placed = stages.score(run, state, rollouts, outcome_B)
  before_BE, learn_B = np.array(placed.batch.scores_BE), np.asarray(placed.batch.learn_B)
  after, metrics = run.update_scorers(jax.tree.map(np.copy, state), placed)
  score_B, known_B = before_BE[:, 0], learn_B & ~np.isnan(outcome_B)
  if loss == "bce": want = np.mean((np.logaddexp(0, score_B) - outcome_B * score_B)[known_B])
  else:  # The first half, as a minibatch; each pair of a right and a wrong one of a group.
    pairs = [score_B[i] - score_B[j] for g in range(0, 16, 4) for i in range(g, g + 4)
             for j in range(g, g + 4) if known_B[i] and known_B[j] and outcome_B[i] > outcome_B[j]]
    want = np.mean(np.logaddexp(0, -np.array(pairs)))
  if loss == "bce": np.testing.assert_allclose(metrics["scorers.head/loss"], want, rtol=1e-5)
  else: assert 0 < metrics["scorers.head/loss"] and want > 0
  np.testing.assert_array_equal(placed.batch.scores_BE, before_BE)
  again_BE = np.asarray(stages.score(run, after, rollouts, outcome_B).batch.scores_BE)
  np.testing.assert_array_equal(again_BE[:, 1], before_BE[:, 1])  # The frozen one.
  gap = lambda x_BE: np.mean(x_BE[known_B & (outcome_B == 1), 0]) - np.mean(
      x_BE[known_B & (outcome_B == 0), 0])
  assert gap(again_BE) > gap(before_BE) + 0.01
  held, traced = memory.count_state_bytes(run.shapes()), memory.trace_programs(run, run.shapes())
  assert held["scorers.head + optimizer"] > 2.9 * memory.memory.tree_bytes(state.scorers)
  assert "scorers.head update" in {p.name for p in traced}


def grade(prompt, text): return sum(map(ord, text)) % 4 / 4


def is_graded(prompt, text): return float(len(text) % 2)


def test_a_scorer_learns_scores_that_not_all_completions_have(folder):
  """The loss by hand: of the first score, where the second is above 1/2."""
  names = ("tests.test_scorers:grade", "tests.test_scorers:is_graded", "scorers.head")
  c = config_of(folder, ("head",), dict(verifier__scores=names))
  c.scorers.head.update(update_of("scores", "bce"))
  run = build.build(c)
  state, prompts = run.init(), run.prompts.take(8)
  rollouts = stages.rollouts(
      run, prompts, [run.texts.tokenizer.encode(t, add_bos=False) for t in TEXTS], 8)
  placed = stages.score(run, state, rollouts, np.float32([1, 0, 0, 1] * 7 + [np.nan, 0, 0, 1]),
                        prompts)
  label_B, has_B, score_B = np.array(placed.batch.scores_BE).T
  known_B = (has_B > 0.5) & np.asarray(placed.batch.learn_B)
  assert 4 < known_B.sum() < placed.batch.learn_B.sum() and len({*label_B[known_B]}) > 1
  _, metrics = run.update_scorers(jax.tree.map(np.copy, state), placed)
  want = np.mean((np.logaddexp(0, score_B) - label_B * score_B)[known_B])
  np.testing.assert_allclose(metrics["scorers.head/loss"], want, rtol=1e-5)


def test_pairs_of_a_right_completion_and_of_it_with_another_answer(folder):
  """Answers are replaced by the first other one, and only what the verifier rejects is a pair."""
  c = config_of(folder, ("head",), LONE)
  c.scorers.head.update(update_of("altered", "bradley_terry"))
  c.eval.answer = ";(.)"
  run = build.build(c)
  state, prompts, tokens = run.init(), run.prompts.take(8), run.texts.tokenizer
  # Right with "a", and the next answer of the prompt is "b"; no right one; the verifier accepts "a"
  # of another prompt, too; none is stated.
  texts = ["1;a", "2;b", "3", "4;a"] + ["1;a"] * 4 + ["5;c"] * 4 + ["c"] * 4 + ["1;a"] * 16
  right_B = np.float32(([0, 0, 0, 1] + [0] * 4 + [1] * 4 + [1] * 4 + [0] * 16))
  asked = []
  def verify(path, some, altered):
    asked.extend(zip((p.id for p in some), altered))
    return [float(text == "5;a") for text in altered]
  annotate_ = dataclasses.replace(run.annotate, columns=dataclasses.replace(
      run.annotate.columns, resources=dict(run.annotate.columns.resources, verify=verify)))
  run = dataclasses.replace(run, annotate=annotate_)
  rollouts = stages.rollouts(run, prompts, [
      [*tokens.encode(t, add_bos=False), tokens.end_id] for t in texts], 8)
  placed = stages.score(run, state, rollouts, right_B, prompts)
  assert asked == [(prompts[0].id, "4;b"), (prompts[2].id, "5;a")]
  rows, labels_BT = placed.values["altered_rows"]
  got = {b: tokens.decode(ids[:-1]) for b, ids in enumerate(padding.completions(rows))
         if len(ids) > 1}
  assert got == {0: "4;a", 1: "4;b"} and rows.completions_BT[1, 3] == tokens.end_id
  assert np.argwhere(~np.isnan(labels_BT)).tolist() == [[0, 3], [1, 3]]
  assert labels_BT[:2, 3].tolist() == [1, 0]
  x = rows.prompt_width
  np.testing.assert_array_equal(rows.tokens_BS[1, x - rows.prompt_len_B[1]:x],
                                run.texts.prompt_ids(prompts[0]))
  after, metrics = run.update_scorers(jax.tree.map(np.copy, state), placed)
  head_BT = np.asarray(value.values(
      state.scorers["scorers.head"], dataclasses.replace(
          run.passes.models["scorers.head"], remat="none"), rows.tokens_BS, rows.positions_BS,
      rows.valid_BS, completion_width=9))[:, 1:]
  np.testing.assert_allclose(metrics["scorers.head/loss"], np.logaddexp(
      0, head_BT[1, 3] - head_BT[0, 3]), rtol=1e-5)
  assert np.any(after.scorers["scorers.head"]["value"]["w_D1"]
                != np.asarray(state.scorers["scorers.head"]["value"]["w_D1"]))
  none = stages.score(run, state, rollouts, 0 * right_B, prompts)  # Nothing to learn from.
  same, metrics = run.update_scorers(jax.tree.map(np.copy, state), none)
  assert metrics["scorers.head/empty"] == 1
  tiny.assert_equal_trees(same.scorers, jax.device_get(state.scorers))


@pytest.mark.parametrize("more", [
    dict(learner__pack=False), dict(mesh=dict(data=2, fsdp=1, tensor=1))], ids=str)
def test_scorers_that_learn_read_the_reference_answer(folder, more, monkeypatch):
  """The update reads the tokens that the score reads, each scorer with its own text, in the rows
  of the batch and in pairs: its loss is that of the scores before it."""
  c = config_of(folder, ("head", "likely"), ANSWERED | dict(
      more, verifier__scores=("scorers.head", "scorers.likely"), eval__answer=";(.)"))
  c.scorers.head.update(update_of("altered", "bradley_terry", microbatches=2) | dict(
      reference="{};", reference_tokens=4))
  c.scorers.likely.update(update_of("verdicts", "bce", microbatches=2) | dict(
      reference=";;{}", reference_tokens=5))
  run = build.build(c)
  state, prompts, tokens = run.init(), run.prompts.take(8), run.texts.tokenizer
  prompts = [dataclasses.replace(p, answer=str(i)[:1 + i % 2] * (1 + i % 2))
             for i, p in enumerate(prompts)]
  texts = ["1;a", "23;b", "", "4"] * 7 + ["5", "6", "7", "8"]  # No pair in the last group.
  ids = [tokens.encode(t, add_bos=False) + [tokens.end_id] * bool(t) for t in texts]
  right_B = np.float32([0, 1, 0, 0] * 8)
  resources = dict(run.annotate.columns.resources,
                   verify=lambda path, some, altered: [0.0] * len(altered))
  run = dataclasses.replace(run, annotate=dataclasses.replace(
      run.annotate, columns=dataclasses.replace(run.annotate.columns, resources=resources)))
  rollouts = stages.rollouts(run, prompts, ids, 8)
  placed = stages.score(run, state, rollouts, right_B, prompts)
  before_BE, read = np.array(placed.batch.scores_BE), {}
  call = update_prm.UpdatePrmHead.__call__
  monkeypatch.setattr(update_prm.UpdatePrmHead, "__call__", lambda self, state, own: (
      read.update({self.learner.name: own.host}) or call(self, state, own)))
  after, metrics = run.update_scorers(jax.tree.map(np.copy, state), placed)

  asked = [list(run.texts.prompt_ids(p)) for p in prompts]
  def by_hand(template, completions):
    """(rows, h at the last token of each) of completions, equally many of each prompt."""
    numbers = np.repeat(range(8), len(completions) // 8)
    rows = trajectories.pairs([
        asked[i] + tokens.encode(template.replace("{}", prompts[i].answer), add_bos=False)
        for i in numbers], completions, tokens, 8, 16)
    head_BT = expected(run, state.replace(frozen_models=state.scorers), rows)["head"]
    return rows, head_BT[np.arange(len(rows.finish_B)), np.maximum(rows.completion_len_B - 1, 0)]
  def tokens_of(rows):
    x = rows.prompt_width
    return [[*row[x - n:x], *row[x:x + m - 1]] for row, n, m in zip(
        rows.tokens_BS.tolist(), rows.prompt_len_B, rows.completion_len_B)]

  learn_B = np.asarray(placed.batch.learn_B)
  rows, h_B = by_hand(";;{}", ids)
  np.testing.assert_allclose(before_BE[learn_B, 1], 1 / (1 + np.exp(-h_B[learn_B])), atol=1e-5)
  assert tokens_of(read["scorers.likely"]) == tokens_of(padding.append(rows, 0))
  h_B = np.log(before_BE[:, 1] / (1 - before_BE[:, 1]))[learn_B]
  np.testing.assert_allclose(metrics["scorers.likely/loss"], np.mean(
      np.logaddexp(0, h_B) - right_B[learn_B] * h_B), rtol=1e-5)

  altered = tokens.encode("23;a", add_bos=False) + [tokens.end_id]
  rows, worse_P = by_hand("{};", [altered] * 7 + [[]])
  assert tokens_of(read["scorers.head"])[1::2] == tokens_of(padding.append(rows, 0))
  better_P = before_BE[1::4, 0]
  np.testing.assert_allclose(metrics["scorers.head/loss"], np.mean(
      np.logaddexp(0, worse_P - better_P)[:7]), rtol=1e-5)
  for name in state.scorers:
    assert np.any(after.scorers[name]["value"]["w_D1"]
                  != np.asarray(state.scorers[name]["value"]["w_D1"]))
  traced = {p.name: p.traced for p in memory.trace_programs(run, run.shapes())}
  for name, host in read.items():  # What the memory of the update is measured by.
    part = traced[f"{name} update"].args_info[0][2]
    assert part.rollouts.tokens_BS.shape == host.tokens_BS.shape


# What of a trained model the variant :scorer of a paper's config reads.
ARMS = dict(pf_ppo="scores_BE", hero="scores_BE", par="scores_BE", lsc="scores_BE",
            pure="step_scores_BT", clip_delta="step_scores_BT", rsbs="step_scores_BT",
            prof="step_scores_BT", rm_ens="scores_BE", herding="scores_BE",
            brme="scores_BE score_spreads_BE",
            reasonflux="step_scores_BT scores_BE") | {
                "fin_prm:rl": "step_scores_BT scores_BE", "prlcoder:rl": "step_scores_BT"}
MODELS = dict(lsc=2, rm_ens=5, herding=5, brme=5)  # Others: one.


@pytest.fixture(scope="module", name="trained")
def written_for_chains(tmp_path_factory):
  """A small model with a head, and "spread" with two numbers; the tokenizer of the toy's policy."""
  folder = tmp_path_factory.mktemp("trained")
  tokens = weights.load_tokenizer(pathlib.Path("configs/models/chain"))
  config = transformer.DecoderConfig(
      vocab_size=len(tokens.vocabulary), d_model=16, n_layers=1, n_heads=2, n_kv_heads=2,
      head_dim=8, d_ff=16, has_head=True)
  for kind, path in (("plain", folder), ("spread", folder / "spread")):
    config = dataclasses.replace(config, score_head=kind, outputs=value.count_outputs(kind, 1))
    params = value.init(config, tiny.draw_decoder(config))
    params["value"]["w_D1"] = params["embed"]["w_VD"][:config.outputs].T
    hf.save(path, config, params, tokens)
  return str(folder)


@pytest.mark.parametrize("key", ARMS)
def test_configs_of_papers_take_a_trained_scorer(key, trained):
  c = load.load_config(f"papers/{key if ':' in key else key + ':scorer'}-smoke")
  assert len(c.scorers) == MODELS.get(key, 1)
  for part in c.scorers.values(): part.path = trained + "/spread" * (key == "brme")
  run = build.build(c)
  planned = {f.name: f.where for f in run.planned}
  assert all(planned[name] == "model" for name in ARMS[key].split())
  if key != "pf_ppo": return
  state, host = run.init(), host_state.HostState(rehearsed={})
  for step in range(2):
    state, annotated, batch, metrics = rl.iteration(run, state, host, step, tiny.CLOCK)
    assert np.isfinite(metrics["policy/loss"]) and not rl.is_skipped(metrics)
    # The best one and the first of the others.
    score_PG = np.where(batch.lengths_B > 0, batch.scores_BE[:, 0], -np.inf).reshape(-1, 4)
    kept_PG, rows = annotated.batch.learn_PG, np.arange(len(score_PG))
    assert kept_PG[rows, score_PG.argmax(axis=1)].all() and (kept_PG.sum(axis=1) == 2).all()


def test_a_head_predicts_the_spread_of_its_score(trained):
  """That of the last token of a completion, as a pass over whole rows without packing gives it."""
  c = load.load_config("papers/brme:scorer-smoke")
  c.verifier.scores = c.verifier.scores[:1]
  c.scorers = dict(trained1=dict(path=trained, kind="head"))
  with pytest.raises(ValueError, match="scorers.trained1.path=.*: a scorer with train_scorer.head"):
    build.build(c)
  c.scorers.trained1.path = f"{trained}/spread"
  run = build.build(c)
  state, prompts = run.init(), run.prompts.take(run.sizes.prompts)
  texts = ["7;2#2", "3", "", "1;#4"] * (run.sizes.rows // 4)
  rollouts = stages.rollouts(run, prompts, [run.texts.tokenizer.encode(t) for t in texts], 18)
  batch = stages.score(run, state, rollouts, np.ones(len(texts), np.float32), prompts).batch
  longer = padding.append(jax.device_get(rollouts), 0)
  config = dataclasses.replace(run.passes.models["scorers.trained1"], remat="none")
  o_BT2 = np.asarray(passes.outputs(state.frozen_models["scorers.trained1"], config, longer, None))
  len_B = np.asarray(rollouts.completion_len_B)
  want_B = np.where(len_B > 0, np.log1p(np.exp(o_BT2[np.arange(len(texts)), len_B, 1])) + .001, 0)
  np.testing.assert_allclose(np.asarray(batch.score_spreads_BE)[:, 0], want_B, atol=1e-5)
  c.verifier.scores = (*c.verifier.scores, "chain.answer")
  with pytest.raises(ValueError, match="verifier.scores=.*: scorers of kind head alone, as rewa"):
    build.build(c)


def test_cooper_starts_from_the_policy_with_a_head_of_zeros():
  """Its first rewards are 1/2; pairs of the toy's completions then move them. It reads the answer
  before the completion."""
  run = build.build(load.load_config("papers/cooper:smoke"))
  state, host = run.init(), host_state.HostState(rehearsed={})
  spreads = []
  for step in range(2):
    state, annotated, batch, metrics = rl.iteration(run, state, host, step, tiny.CLOCK)
    rows, labels_BT = annotated.values["altered_rows"]
    is_pair_P = ~np.isnan(labels_BT).all(axis=1).reshape(-1, 2)[:, 0]
    right_P = (batch.outcome_PG > 0.5).any(axis=1)
    assert is_pair_P.any() and (right_P | ~is_pair_P).all()
    texts = [run.texts.tokenizer.decode(ids[:-1]) for ids in padding.completions(rows)]
    own = annotated.values["altered_reference_rows"]["scorers.trained"]
    ends = [run.texts.tokenizer.decode(ids) for ids in own.tokens_BS[
        :, own.prompt_width - 3:own.prompt_width]]
    for right, altered, *both in zip(texts[::2], texts[1::2], ends[::2], ends[1::2]):
      if not right: continue
      assert right[:-1] == altered[:-1] and right[-2] == "#" and right[-1] != altered[-1]
      assert both == [f"={right[-1]}="] * 2
    spreads.append(np.nanstd(np.asarray(batch.scores_BE)))
    if not step: np.testing.assert_allclose(metrics["scorers.trained/loss"], np.log(2), rtol=1e-6)
  assert spreads[0] == 0 < spreads[1]


def test_what_an_ensemble_says_of_a_completion():
  scores_BE = np.float32([[1, 2, 6], [0, np.nan, 1]])
  of = lambda name, **options: np.asarray(getattr(model_fields, name)(scores_BE, **options))
  np.testing.assert_allclose(of("mean_scores_B"), [3, np.nan])
  np.testing.assert_allclose(of("std_scores_B"), [np.sqrt(14 / 3), np.nan], rtol=1e-6)
  np.testing.assert_allclose(of("min_scores_B"), [1, np.nan])
  np.testing.assert_allclose(of("low_scores_B", quantile=0.25), [1.5, np.nan])


@pytest.mark.parametrize("names, changes, message", [
    (("head",), dict(), "scorers.head: verifier.scores and verifier.steps do not name it"),
    (("head",), dict(verifier__scores=("scorers.hed",)), "verifier.scores=.*is no scorers.hed"),
    (("head",), dict(verifier__scores=("scorers.head",), scorers__head__path=None),
     "scorers.head.path=None: the folder `scorer` that `rlx train_scorer` wrote into its workdir, "
     "or a Hugging Face model with a head"),
    (("ratio",), dict(verifier__scores=("scorers.ratio",), scorers__ratio__path=None),
     "scorers.ratio.path=None: the folder or file of a language model, or hf:OWNER/NAME, for kind="
     "'implicit'"),
    (("head",), dict(verifier__scores=("scorers.head",), scorers__head__path="other"),
     "its tokenizer differs"),
    (("head",), dict(verifier__scores=("scorers.head",), scorers__head__path="text"),
     "scorers.head.kind='head': .* has no head for scores"),
    (("ratio",), dict(verifier__scores=("scorers.ratio",), scorers__ratio__path="head"),
     "scorers.ratio.kind='implicit': .* has a head for scores"),
    (("asked",), dict(verifier__scores=("scorers.asked",), scorers__asked__question=None),
     "scorers.asked.question=None: a text"),
    (("asked",), dict(verifier__scores=("scorers.asked",), scorers__asked__yes="YN"),
     "scorers.asked.yes='YN': one token, not 2"),
    (("ratio",), dict(verifier__scores=("scorers.ratio",), scorers__ratio__reference="{}",
                      scorers__ratio__reference_tokens=2),
     "scorers.ratio.reference='{}': None with kind='implicit'"),
    (("head",), LONE | dict(scorers__head__reference="{}"),
     "scorers.head.reference_tokens=None: the most tokens of scorers.head.reference"),
    (("head",), LONE | dict(scorers__head__reference="", scorers__head__reference_tokens=2),
     "scorers.head.reference='': a text with {} where"),
    (("head",), LONE | dict(scorers__head__reference="{};", scorers__head__reference_tokens=1),
     "scorers.head.reference='{};': The tokenizer cannot encode 'x;'"),
    (("head",), LONE | ANSWERED | dict(
        scorers__head__reference="{};", scorers__head__reference_tokens=3),
     "scorers.head.reference_tokens=3: the reference answer of '.*' has 4 tokens"),
    (("head",), LONE | ANSWERED | dict(
        scorers__head__path="short", scorers__head__reference="{};",
        scorers__head__reference_tokens=4),
     "tokens=8 [+] scorers.head.reference_tokens=4: .* supports at most 15 positions"),
    (("ratio",), dict(verifier__steps="scorers.ratio"), "verifier.steps=.*a scorer with a head"),
    (("head",), dict(verifier__spans="scorers.head"), "verifier.spans=.*a scorer of kind probabil"),
    (("head",), LONE | dict(rollouts__filter_groups=dict(name="tests.test_scorers:reads_later")),
     "rollouts.filter_groups.name='tests.test_scorers:reads_later': one that does not read "
     "logps_BT"),
    (("head",), LONE | dict(rollouts__filter_groups=dict(name="tests.test_scorers:reads_greedy")),
     "rollouts.filter_groups reads greedy_outcome, which nothing computes"),
    (("ratio",), dict(verifier__scores=("scorers.ratio",),
                      scorers__ratio__online=dict(labels="verdicts")),
     "scorers.ratio.online.labels='verdicts': None with scorers.ratio.kind"),
    (("head",), LONE | dict(scorers__head__online=dict(labels="loud")),
     "scorers.head.online.labels='loud': one of"),
    (("head",), LONE | dict(scorers__head__online=dict(labels="scores")),
     "scorers.head.online.labels='scores': verdicts with verifier.scores="),
    (("head",), LONE | dict(scorers__head__online=dict(labels="verdicts", loss=dict(name="sft.nll"))
                            ), "scorers.head.online.loss.name='sft.nll': "),
    (("head",), LONE | dict(scorers__head__online=dict(labels="verdicts", minibatches=3)),
     "must be a multiple of scorers.head.online.minibatches=3"),
    (("head",), LONE | dict(scorers__head__online=dict(labels="verdicts", rate=3)),
     "scorers.head.online.rate: no such key"),
    (("head",), LONE | dict(value__path="scorers.head"), "value.path=.* no estimator reads the"),
    (("likely",), dict(verifier__scores=("scorers.likely",), value__path="scorers.likely") | GAE,
     "value.path='scorers.likely': a scorer of kind head"),
    (("head",), LONE | GAE | dict(value__path="scorers.hed"), "value.path=.*scorers: .'head'."),
    (("head",), LONE | GAE | dict(value__path="scorers.head", lora__rank=2), "value.path=.* None "),
    (("head",), dict(verifier__scores=("scorers.head",), scorers__head__kind="loud"),
     "scorers.head.kind='loud': one of")], ids=str)
def test_what_is_refused(folder, names, changes, message):
  changes = {key: str(folder / x) if key.endswith("__path") and x and "." not in x else x
             for key, x in changes.items()}
  with pytest.raises(ValueError, match=message) as e:
    build.build(config_of(folder, names, **changes))
  assert "\n" not in str(e.value)
