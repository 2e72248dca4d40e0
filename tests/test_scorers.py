"""Frozen models of `scorers`: what they give as scores, their memory, and what is refused."""
import dataclasses

import jax
import numpy as np
import pytest

from rlx import build
from rlx.build import memory
from rlx.io import hf, tokenizer, weights
from rlx.models import logps, transformer, value
from rlx.rollouts import padding, trajectories
from tests import stages, tiny

KNOWN = "0123456789abcdefgh;YN?"
ENSEMBLE = dict(rewards=dict(outcome=dict(name="shaping.ensemble", kind="mean", coef=1.0)),
                advantages=dict(outcome=dict(name="group.rloo"), whiten=False))
QUESTION = dict(question="?", yes="Y", no="N")
KINDS = dict(head=dict(kind="head"), likely=dict(kind="probability"), ratio=dict(kind="implicit"),
             asked=dict(kind="yes_no", **QUESTION))
TEXTS = ["1a2;b", "b", "", "c;cc"] * 8


@pytest.fixture(scope="module", name="folder")
def written(tmp_path_factory):
  """A policy, a language model "text" and a model with a head, "head", of another size."""
  folder = tmp_path_factory.mktemp("scorers")
  tiny.write(folder, alphabet=KNOWN)
  for name, alphabet, has_head in (("text", KNOWN, False), ("head", KNOWN, True),
                                   ("other", KNOWN[:-1] + "x", True)):
    tokens = tokenizer.characters(alphabet)
    config = transformer.DecoderConfig(
        vocab_size=len(tokens.vocabulary), d_model=24, n_layers=2, n_heads=4, n_kv_heads=2,
        head_dim=6, d_ff=16, has_head=has_head)
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
  return tiny.config(folder, scorers=parts, learner__pack=True, rollouts__max_tokens=8,
                     rollouts__bucket=8, rollouts__chunk=8,
                     rollouts__step_separator=";", **changes, **more)


def expected(run, state, rollouts):
  """{kind: scores_BT} by forward passes of whole rows without packing."""
  models = {name: dataclasses.replace(x, remat="none") for name, x in run.passes.models.items()}
  params = state.frozen_models
  longer = padding.append(jax.device_get(rollouts), 0)
  head_BT = np.asarray(value.values(
      params["scorers.head"], models["scorers.head"], longer.tokens_BS, longer.positions_BS,
      longer.valid_BS, completion_width=longer.sampler_logps_BT.shape[1]))[:, 1:]
  drawn = [np.take_along_axis(np.asarray(jax.nn.log_softmax(logps.logits(p, models[m], rollouts))),
                              np.asarray(rollouts.completions_BT)[..., None], 2)[..., 0]
           for p, m in ((params["scorers.ratio"], "scorers.ratio"), (state.reference, "policy"))]
  return dict(head=head_BT, likely=1 / (1 + np.exp(-head_BT)),
              ratio=np.cumsum(np.where(rollouts.mask_BT, drawn[0] - drawn[1], 0), axis=1))


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
                 spread=dict(name="steps.redistribute", coef=1.0))
  run = build.build(config_of(folder, ("head", "likely", "ratio"), dict(
      rewards=rewards, advantages=dict(total=dict(name="process.reinforce"), whiten=False),
      verifier__scores=("scorers.ratio", "scorers.head"), verifier__steps="scorers.likely")))
  state = run.init()
  rollouts = stages.rollouts(run, run.prompts.take(8),
                             [run.texts.tokenizer.encode(t) for t in TEXTS], 8)
  batch = stages.score(run, state, rollouts, np.float32([1, 0, 0, 1] * 8)).batch
  all_BT, ends_BT = expected(run, state, rollouts), np.asarray(batch.step_ends_BT)
  assert ends_BT.sum(axis=1)[:4].tolist() == [2, 1, 0, 2]
  for field, name in (("step_scores_BT", "likely"), ("prefix_scores_BT", "ratio")):
    np.testing.assert_allclose(getattr(batch, field), np.where(ends_BT, all_BT[name], 0), atol=1e-5)


def test_a_saved_head_is_read_again_and_by_no_other_key(folder):
  config, params, _ = weights.load(folder / "head")
  assert config.has_head and config.tied_head and "head" not in params
  assert params["value"]["b_1"] == [0.25]
  c = config_of(folder, (), verifier__scores=("format.ascii_share",))
  c.model.path = str(folder / "head")
  with pytest.raises(ValueError, match="a language model; this one has a head for scores"):
    build.build(c)


@pytest.mark.parametrize("names, changes, message", [
    (("head",), dict(), "scorers.head: verifier.scores and verifier.steps do not name it"),
    (("head",), dict(verifier__scores=("scorers.hed",)), "verifier.scores=.*is no scorers.hed"),
    (("head",), dict(verifier__scores=("scorers.head",), scorers__head__path=None),
     "scorers.head.path=None: a model"),
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
    (("ratio",), dict(verifier__steps="scorers.ratio"), "verifier.steps=.*a scorer with a head"),
    (("head",), dict(verifier__scores=("scorers.head",), rollouts__select_completions=dict(
        name="select_completions.extremes")), "one that does not read scores_B"),
    (("head",), dict(verifier__scores=("scorers.head",), scorers__head__kind="loud"),
     "scorers.head.kind='loud': one of")], ids=str)
def test_what_is_refused(folder, names, changes, message):
  changes = {key: str(folder / x) if key.endswith("__path") and x else x
             for key, x in changes.items()}
  with pytest.raises(ValueError, match=message) as e:
    build.build(config_of(folder, names, **changes))
  assert "\n" not in str(e.value)
