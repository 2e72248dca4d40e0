"""Teachers: the model of teacher.path (another size, its fields, its memory, what is refused), the
policy that is told the answer (teacher.hint), and PRMs that are asked about all tokens."""
import dataclasses

import jax
import numpy as np
import pytest

from rlx import build
from rlx.build import memory, verifiers as build_verifiers
from rlx.io import hf, tokenizer
from rlx.loops import session
from rlx.models import logps, transformer
from tests import stages, tiny

REWARDS = dict(rewards=dict(distil=dict(name="implicit.teacher", coef=1.0)),
               advantages=dict(distil=dict(name="process.reinforce", gamma=0.0), whiten=False))
FULL = dict(rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)),
            advantages=dict(outcome=dict(name="group.rloo"), whiten=False),
            learner__loss=dict(name="distribution.distil"))


@pytest.fixture(scope="module", name="folder")
def written(tmp_path_factory):
  folder = tmp_path_factory.mktemp("teacher")
  tiny.write(folder)
  known = "0123456789abcdefgh"
  for name, alphabet, rows in (("teacher", known, 0), ("other", known[:-1] + "x", 0),
                               ("padded", known, 3)):
    tokens = tokenizer.characters(alphabet)
    config = transformer.DecoderConfig(
        vocab_size=len(tokens.vocabulary) + rows, d_model=24, n_layers=2, n_heads=4, n_kv_heads=2,
        head_dim=6, d_ff=16)
    hf.save(folder / name, config, tiny.draw_decoder(config), tokens)
  return folder


def changed(folder, changes, **more):
  c = tiny.config(folder, teacher__path=str(folder / "teacher"), learner__pack=True, **more)
  with c.ignore_type():
    for key, value in changes.items():
      *sections, name = key.split("__")
      section = c[sections[0]] if sections else c
      section[name] = value
  return c


@pytest.mark.parametrize("changes", [REWARDS, FULL], ids=["sampled", "full"])
def test_a_run_reads_the_log_probs_of_a_larger_teacher(folder, changes):
  run = build.build(changed(folder, changes, rollouts__decoding__temperature=0.7))
  state = run.init()
  texts = ["1a2", "b", "", "ccc"] * 8
  rollouts = stages.rollouts(run, run.prompts.take(8),
                             [run.texts.tokenizer.encode(t) for t in texts], 4)
  placed = stages.score(run, state, rollouts, np.float32([1, 0, 0, 1] * 8))
  config = dataclasses.replace(run.passes.models["teacher"], remat="none")
  assert config.d_model == 24 and run.passes.models["policy"].d_model == 16
  logits_BTV = logps.logits(state.teacher, config, rollouts)
  all_BTV = np.asarray(jax.nn.log_softmax(logits_BTV / 0.7))
  mask_BT = np.asarray(rollouts.mask_BT)
  if changes is FULL:
    expected, field = np.where(mask_BT[..., None], all_BTV, 0), "teacher_all_logps_BTV"
  else:
    drawn_BT = np.take_along_axis(all_BTV, np.asarray(rollouts.completions_BT)[..., None], 2)
    drawn_BT = drawn_BT[..., 0]
    expected, field = np.where(mask_BT, drawn_BT, 0), "teacher_logps_BT"
  np.testing.assert_allclose(getattr(placed.batch, field), expected, atol=1e-5)
  before = jax.device_get(state.policy)
  after, _, metrics = stages.update(run, state, placed)
  assert np.isfinite(metrics["policy/loss"]) and any(
      np.any(x != y) for x, y in zip(jax.tree.leaves(before), jax.tree.leaves(after.policy)))


HINTED = dict(REWARDS, rewards=dict(distil=dict(name="implicit.hinted", coef=1.0)))


def hinted(folder, **more):
  c = changed(folder, HINTED, rollouts__decoding__temperature=0.7, **more)
  c.teacher.path, c.teacher.hint, c.prompts.max_tokens = None, "h{}", 8
  c.prompts.columns = dict(verifier="format.ascii_share", answer="question")
  return c


def test_the_policy_that_is_told_the_answer_is_a_teacher(folder):
  """Its log-probs are those of one forward pass over the longer prompt and the completion."""
  run = build.build(hinted(folder))
  state = run.init()
  text, prompts = run.texts.tokenizer, run.prompts.take(8)
  completions = [[*text.encode(t), text.eos_ids[0]] for t in ["1a2", "b", "", "cc"] * 8]
  rollouts = stages.rollouts(run, prompts, completions, 4)
  batch = stages.score(run, state, rollouts, np.float32([1, 0, 0, 1] * 8), prompts).batch
  config = dataclasses.replace(run.passes.models["policy"], remat="none")
  for b, ids in enumerate(completions):
    prompt = prompts[b // 4]
    longer = dataclasses.replace(prompt, text=f"{prompt.text}h{prompt.answer}")
    direct = run.texts.rollouts([run.texts.prompt_ids(longer)], [ids])
    logits_TV = logps.logits(state.policy, config, direct)[0]
    expected = jax.nn.log_softmax(logits_TV / 0.7)[np.arange(len(ids)), np.array(ids)]
    np.testing.assert_allclose(batch.hinted_logps_BT[b, :len(ids)], expected, atol=1e-5)
  assert np.abs(batch.hinted_logps_BT - batch.old_logps_BT).max() > 1e-3


def test_a_prompt_that_cannot_have_the_hint_is_refused(folder):
  c = hinted(folder)
  c.prompts.max_tokens = 4
  with pytest.raises(ValueError, match="^prompts.max_tokens=.* has .* tokens with teacher.hint"):
    build.build(c)
  run = build.build(hinted(folder))
  for changes, message in ((dict(answer=""), "has no reference answer"),
                           (dict(messages=({},)), "is a chat")):
    prompts = [dataclasses.replace(p, **changes) for p in run.prompts.take(1)]
    with pytest.raises(ValueError, match=f"^teacher.hint='h{{}}': prompt .* {message}"):
      # pylint: disable-next=protected-access
      build_verifiers._encode_hinted(hinted(folder), run.texts, prompts)


DISTRL = dict(
    rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)),
    advantages=dict(outcome=dict(name="group.rloo"), whiten=False),
    learner__loss=dict(name="distribution.distrl", min_p=0.0), prm__beta=2.0,
    prm__loss=dict(name="prm.prefix_ce"), learner__minibatches=2)


@pytest.mark.parametrize("order", ["single", "double"])
def test_a_loss_reads_what_the_prm_thinks_of_all_tokens(folder, order):
  c = changed(folder, DISTRL, prm__order=order, prm__reference="policy")
  c.teacher.path = None
  run = build.build(c)
  state = run.init()
  texts = ["1a2", "b", "", "ccc"] * 8
  rollouts = stages.rollouts(run, run.prompts.take(8),
                             [run.texts.tokenizer.encode(t) for t in texts], 4)
  placed = stages.score(run, state, rollouts, np.float32([1, 0, 0, 1] * 8))
  before = jax.device_get(state.prm)
  after, placed, _ = run.update_prm(state, placed)
  config = dataclasses.replace(run.passes.models["prm"], remat="none")
  mask_BT1 = np.asarray(rollouts.mask_BT)[..., None]
  def all_of(params):
    return np.where(mask_BT1, jax.nn.log_softmax(logps.logits(params, config, rollouts)), 0)
  batch = placed.batch
  np.testing.assert_allclose(batch.prm_all_logps_BTV,
                             all_of(after.prm if order == "double" else before), atol=1e-5)
  assert any(np.any(x != y) for x, y in zip(*map(jax.tree.leaves, (before, after.prm))))
  for field in ("prm_ref_all_logps_BTV", "old_all_logps_BTV"):
    np.testing.assert_allclose(getattr(batch, field), all_of(after.policy), atol=1e-5)
  drawn_BT1 = np.take_along_axis(np.asarray(batch.prm_all_logps_BTV),
                                 np.asarray(rollouts.completions_BT)[..., None], axis=2)
  np.testing.assert_allclose(batch.prm_logps_BT, (drawn_BT1 * mask_BT1)[..., 0], atol=1e-5)


def test_the_teacher_is_counted_and_is_not_in_checkpoints(folder):
  run = build.build(changed(folder, REWARDS))
  state = run.shapes()
  assert memory.count_state_bytes(state)["teacher"] == sum(
      x.size * 4 for x in jax.tree.leaves(state.teacher))
  assert "scoring, teacher" in [p.name for p in memory.trace_programs(run, state)]
  assert session._select_saved(state).teacher is None  # pylint: disable=protected-access


def test_whole_distributions_are_counted(folder):
  """One array of the teacher; of the policy its values, their gradient and what they are from."""
  counted = [memory.estimate_bytes(run, run.shapes()) for run in (
      build.build(changed(folder, changes)) for changes in (REWARDS, FULL))]
  size = 4 * 32 * 4 * build.build(changed(folder, FULL)).passes.models["policy"].vocab_size
  grown = {name: counted[1][name] - n for name, n in counted[0].items()}
  assert sorted(grown.values()) == [size, 4 * size]


@pytest.mark.parametrize("changes, path, message", [
    (REWARDS, None, "teacher.path"), (REWARDS, "other", "its tokenizer differs"),
    (FULL, "padded", "drawn tokens only"),
    (dict(FULL, learner__loss=dict(name="policy.ppo_clip")), "teacher", "drop the path"),
    (dict(FULL, learner__loss=dict(name="policy.ppo_clip"), teacher__hint="{}"), None,
     "drop the hint"), (HINTED, None, "teacher.hint"),
    (dict(HINTED, teacher__hint="h"), None, "teacher.hint='h': a text with {}"),
    (dict(DISTRL, prm__path="padded"), None, "drawn tokens only")])
def test_what_is_refused(folder, changes, path, message):
  c = changed(folder, changes)
  c.teacher.path = path and str(folder / path)
  if c.prm.path: c.prm.path = str(folder / c.prm.path)
  with pytest.raises(ValueError, match=message):
    build.build(c)
