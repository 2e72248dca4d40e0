"""Fields that methods read in addition to the verdict: scores, answers, noise; and their checks."""
import re
import types

from absl import logging
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import base, quickstart
from rlx import build
from rlx.build import methods as build_methods, validation
from rlx.core import records, rng
from rlx.stages import model_fields
from rlx.verifiers import _replies, judge
from tests import stages

nan = np.nan


def _config(reward, estimator="batch.reinforce", **sections):
  c = base.get_config()
  c.rewards = dict(outcome=dict(reward, coef=1.0))
  c.advantages = dict(outcome=dict(name=estimator), whiten=False)
  for section, keys in sections.items(): c[section].update(keys)
  return c


@pytest.fixture
def said(monkeypatch):
  """The warnings of a test."""
  said = []
  monkeypatch.setattr(logging, "warning", lambda form, *a: said.append(form % a))
  return said


def _check(c):
  validation.check(c, build_methods.resolve_methods(c))


@pytest.mark.parametrize("config", [
    lambda: _config(dict(name="outcome.cascade")),
    lambda: _config(dict(name="shaping.ensemble")),
    lambda: _config(dict(name="outcome.verdict"), "group.variance_weighted"),
    lambda: _config(dict(name="outcome.verdict"), rollouts=dict(
        select_completions=dict(name="select_completions.extremes"))),
], ids=["scores_B", "scores_BE", "estimator", "completions"])
def test_scores_without_a_verifier_are_refused(config):
  c = config()
  with pytest.raises(ValueError, match=r"^verifier.scores=\(\): .* reads scores_"):
    _check(c)
  c.verifier.scores = ("format.boxed",)
  _check(c)
  c.verifier.scores = ("format.boxes",)
  with pytest.raises(ValueError, match="^verifier.scores.*rlx/verifiers/format.py has"):
    _check(c)


@pytest.mark.parametrize("reward, estimator, warns", [
    (dict(name="noise.forward", false_negative=.1), "group.rloo", "but for a factor"),
    (dict(name="noise.forward", false_negative=.1), "batch.reinforce", None),
    (dict(name="noise.backward", false_positive=.1, false_negative=.1), "group.grpo", "but for"),
    (dict(name="noise.backward", false_positive=.1, false_negative=.1), "batch.reinforce", None),
    (dict(name="noise.channel", false_negative=.1), "group.grpo", None),
    (dict(name="noise.channel", correction="forward"), "group.mean_baseline", "the noisy verdict"),
    (dict(name="noise.channel", correction="backward"), "group.grpo", "the noisy verdict"),
    (dict(name="noise.control", kind="constant"), "group.rloo", "leaves nothing"),
    (dict(name="noise.control"), "group.rloo", None),
    (dict(name="shaping.plain", kind="zscore"), "group.grpo", "the plain score"),
    (dict(name="shaping.plain", kind="minmax"), "group.variance_weighted", "the plain score"),
    (dict(name="shaping.plain", kind="minmax"), "group.rloo", None),
    (dict(name="likelihood.reference", baseline="diff"), "group.grpo", "without its base"),
    (dict(name="likelihood.reference", baseline="diff", post="clip01"), "group.grpo", None),
], ids=str)
def test_a_method_that_its_estimator_undoes_gives_a_warning(reward, estimator, warns, said):
  _check(_config(reward, estimator, verifier=dict(scores=("format.boxed",)),
                 likelihood=dict(max_tokens=1)))
  if warns is None: assert not said
  else:
    assert len(said) == 1 and warns in said[0]
    assert said[0].startswith(f"rewards.outcome.name={reward['name']!r}: advantages.outcome")


@pytest.mark.parametrize("process, path, warns", [
    (dict(), None, True), (dict(floor=0.5), None, False), (dict(warmup_steps=9), None, False),
    (dict(norm="none"), None, False),
    # A PRM that was trained before.
    (dict(), "trained", False)], ids=str)
def test_a_normaliser_without_floor_or_warm_up_gives_a_warning(process, path, warns, said):
  c = base.get_config()
  c.rewards.process.update(process)
  c.prm.path = path
  _check(c)
  assert len(said) == warns
  if warns: assert said[0].startswith(
      "rewards.process.floor=0.0, rewards.process.warmup_steps=0: ") and "\n" not in said[0]


def test_a_term_of_a_sum_gives_no_warning(said):
  c = _config(dict(name="noise.control", kind="constant"))
  c.advantages = dict(total=dict(name="group.rloo"), whiten=False)
  _check(c)
  assert len(said) == 1
  c.rewards.penalty = dict(name="length.overlong", coef=1.0, max_length=8, buffer=4)
  _check(c)
  assert len(said) == 1


def test_scores_belong_to_valid_rows_only():
  scored = records.Batch(
      action_BT=jnp.ones((4, 2), bool), outcome_B=jnp.array([1., 0., nan, 1.]), group=2,
      scores_BE=jnp.array([[.5, .25], [.5, nan], [1., 1.], [0., 1.]]),
      answer_B=jnp.arange(4), noise_B=jnp.arange(4.))
  assert scored.learn_B.tolist() == [True, False, False, True]
  np.testing.assert_array_equal(scored.scores_PG, [[.5, .5], [1, 0]])
  assert scored.answer_PG.shape == scored.noise_PG.shape == (2, 2)


def test_noise_is_of_seed_step_prompt_and_place():
  prompts = jnp.array([7, 9], jnp.uint32)
  def noise(step, prompts, seed=0):
    passes = types.SimpleNamespace(options=types.SimpleNamespace(seed=seed, group=3),
                                   state=types.SimpleNamespace(step=step))
    return np.asarray(model_fields.noise_B(passes, prompts)).reshape(2, 3)
  first = noise(4, prompts)
  assert len(np.unique(first)) == 6 and (0 <= first).all() and (first < 1).all()
  np.testing.assert_array_equal(noise(4, prompts[::-1]), first[::-1])
  assert not (noise(5, prompts) == first).any() and not (noise(4, prompts, 1) == first).any()


def test_the_two_wordings_of_a_prompt_are_paired():
  c = quickstart.get_config("smoke")
  c.prompts.dataset, c.prompts.paired = "chain_pairs", True
  c.rewards = dict(outcome=dict(name="pseudo.paired", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  run = build.build(c)
  prompts = run.prompts.take(8)
  rollouts = stages.rollouts(run, prompts, [[0]] * 32, 1)
  batch = stages.annotate(run, None, rollouts, np.ones(32), prompts).batch
  assert batch.pair_B.tolist() == np.repeat([1, 0, 3, 2, 5, 4, 7, 6], 4).tolist()
  assert [p.meta["pair"] for p in prompts[:2]] == [prompts[1].id, prompts[0].id]


_ASKED = []


def _says_yes(rendered):
  _ASKED.append(rendered)
  return f"Verdict {re.search('code ([0-9a-f]+)', rendered)[1]}: yes"


TEXTS = ["1;2#3", "#4", "5", "1#3", "", "9#9", "#3", "8#"] * 4


def test_a_run_gives_methods_what_they_ask_for(monkeypatch):
  """Scores in order, answers by eval.answer, no verdict for completions left out."""
  c = quickstart.get_config("smoke")
  c.rewards = dict(
      dense=dict(name="shaping.stratified", coef=1.0),
      label=dict(name="pseudo.majority", coef=1.0),
      noisy=dict(name="noise.channel", coef=1.0, false_negative=.5))
  c.advantages = dict(total=dict(name="group.rloo"), whiten=False)
  c.verifier.scores = ("format.length", "format.boxed", "judge.function")
  c.verifier.judge.function = f"{__name__}:_says_yes"
  monkeypatch.setattr(judge.function, "is_bounded", True, raising=False)  # As this one is.
  c.rollouts.select_completions = dict(name="select_completions.prof", count=2)
  run = build.build(c)
  state = records.TrainState(step=3, policy=None, policy_opt=None, kl_coef=jnp.float32(0))
  prompts = run.prompts.take(8)
  rollouts = stages.rollouts(run, prompts, [run.texts.tokenizer.encode(t) for t in TEXTS], 8)
  outcome_B = np.float32([1, 0, 0, 1] * 8)
  placed = stages.score(run, state, rollouts, outcome_B, prompts)
  scored = placed.batch
  np.testing.assert_array_equal(scored.scores_BE, [[t != "", 0, 1] for t in TEXTS])
  # What the judge read carries nonces of this run.
  nonces = [_replies.new_nonce(p, t, rng.secret(c.seed, "judge"))
            for p, t in zip(np.repeat(prompts, 4), TEXTS)]
  assert [n in asked for n, asked in zip(nonces, _ASKED)] == [True] * 32
  assert scored.answer_B.tolist() == [0, 1, -1, 0, -1, 2, 0, -1] * 4
  draws_PG = [jax.random.uniform(rng.key(c.seed, "noise", 3, p), (4,)) for p in rollouts.prompt_P]
  np.testing.assert_array_equal(scored.noise_PG, draws_PG)
  # Of two right and two wrong ones a right and a wrong one; the empty text is not valid.
  kept_PG = np.asarray(scored.learn_PG)
  assert kept_PG.tolist() == [[True, True, False, False], [False, True, False, True]] * 4
  advantages_BT = np.asarray(run.rewards_advantages.compute_from_batch(state,
                                                                       scored)[0].advantages_BT)
  assert np.isfinite(advantages_BT).all() and not advantages_BT[~kept_PG.ravel()].any()
  # Nothing is judged, and no text decoded, for methods that do not ask.
  del c.rewards["label"], c.rewards["noisy"]
  c.rewards.dense = dict(name="outcome.verdict", coef=1.0)
  c.verifier.scores, c.rollouts.select_completions = (), dict(name="select_completions.everything")
  plain = build.build(c)
  assert not {f.name for f in plain.planned} & {"texts", "scores_BE", "answer_B", "noise_B"}
