"""Truncated sampling: the log-probs of a run are those of what its tokens were drawn from."""
import jax
import numpy as np
import pytest

from rlx.models import logps
from rlx.stages import host_state, model_fields
from tests import stages, tiny

RULE = dict(temperature=0.8, top_k=6, top_p=0.7, min_p=0.1)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  folder = tmp_path_factory.mktemp("kept")
  tiny.write(folder)
  return folder


def make(files, **changes):
  run = tiny.build_run(tiny.config(files, rollouts__decoding=RULE, **changes))
  return run, run.init()


def brute_force(params, config, rollouts):
  """(log p / Z, entropy) of what was drawn from, from all logits, in float64."""
  logits_BTV = np.float64(logps.logits(params, config, rollouts)) / RULE["temperature"]
  kept_BTV = (rollouts.kept_BTK[..., None] == np.arange(logits_BTV.shape[2])).any(2)
  mass_BTV = np.where(kept_BTV, np.exp(logits_BTV), 0)
  p_BTV = mass_BTV / np.maximum(mass_BTV.sum(2, keepdims=True), 1e-300)
  drawn_BT = np.take_along_axis(p_BTV, rollouts.completions_BT[..., None], 2)[..., 0]
  log = lambda p: np.log(np.where(p > 0, p, 1))
  return log(drawn_BT), -(p_BTV * log(p_BTV)).sum(2), np.exp(logits_BTV), kept_BTV


@pytest.mark.parametrize("pack", [True, False])
def test_sampler_trainer_and_reference_are_among_the_same_tokens(files, pack):
  run, state = make(files, learner__pack=pack, kl__coef=0.1, learner__microbatches=2)
  _, rollouts, outcome_B = tiny.sample(run, state)
  rollouts, config = jax.device_get(rollouts), run.passes.models["policy"]
  drawn_BT, entropy_BT, all_BTV, kept_BTV = brute_force(state.policy, config, rollouts)
  is_drawn_BT = rollouts.action_BT
  counts = kept_BTV.sum(2)[is_drawn_BT]
  assert counts.min() < counts.max() <= RULE["top_k"]  # All three rules cut.
  placed = stages.score(run, state, rollouts, outcome_B)
  for x_BT in (rollouts.sampler_logps_BT, placed.passes.old("old_logps_BT"),
               placed.batch.ref_logps_BT, model_fields.old_logps_BT(placed.passes)):
    np.testing.assert_allclose(np.asarray(x_BT)[is_drawn_BT], drawn_BT[is_drawn_BT], atol=1e-5)
  np.testing.assert_allclose(logps.of_rollouts(
      state.policy, config, rollouts, temperature=RULE["temperature"], among_kept=True)[1][
          is_drawn_BT], entropy_BT[is_drawn_BT], atol=1e-5)
  # The kept set is what the rule leaves of the trainer's own logits.
  for all_V, kept_V in zip(all_BTV[is_drawn_BT], kept_BTV[is_drawn_BT]):
    order = np.argsort(-all_V)[:RULE["top_k"]]
    p_K = all_V[order] / all_V[order].sum()
    stays = (np.cumsum(p_K) - p_K < RULE["top_p"]) & (p_K >= RULE["min_p"] * p_K[0])
    assert set(order[stays]) == set(np.flatnonzero(kept_V))
  # Those of the PRM and its reference are of whole distributions at temperature 1.
  np.testing.assert_array_equal(placed.passes.logps("prm", "prm"), stages.score(
      run, state, rollouts.replace(kept_BTK=None), outcome_B).passes.logps("prm", "prm"))


def test_the_second_minibatch_compares_among_the_tokens_of_the_first(files):
  """The ratio after a step is that of two policies over the tokens that the sampler kept."""
  run, state = make(files)
  _, rollouts, outcome_B = tiny.sample(run, state)
  rollouts, config = jax.device_get(rollouts), run.passes.models["policy"]
  moved = state.replace(policy=jax.tree.map(
      lambda x: x + 0.2 * jax.random.normal(jax.random.key(3), x.shape), state.policy))
  placed = stages.score(run, moved, rollouts, outcome_B)
  is_drawn_BT = rollouts.action_BT
  expected_BT = brute_force(moved.policy, config, rollouts)[0]
  now_BT = np.asarray(placed.passes.old("old_logps_BT"))
  np.testing.assert_allclose(now_BT[is_drawn_BT], expected_BT[is_drawn_BT], atol=1e-4)
  assert np.abs(now_BT - rollouts.sampler_logps_BT)[is_drawn_BT].max() > 0.1
  *_, metrics = stages.update(run, state, stages.score(run, state, rollouts, outcome_B))
  assert metrics["policy/sampler_gap"] < 1e-5 and metrics["rollouts/sampler_gap_max"] < 1e-4
  assert 0 < abs(metrics["policy/old_kl"]) < 1  # The ratio of the first of two minibatches is 1.


def test_stored_completions_and_appended_tokens_are_of_whole_distributions(files):
  run, state = make(files, rollouts__rehearsal=2, learner__auxiliary=dict(
      name="auxiliary.rehearsal", coef=0.1))
  host = host_state.HostState(rehearsed={p.id: [3, 4] for p in run.prompts.all()[:4]})
  collected, _ = run.collect(state, host, 0, tiny.CLOCK)
  rollouts = collected.rollouts
  assert (rollouts.kept_BTK[-8:] == -1).all() and (rollouts.kept_BTK[:4] >= 0).any()


def test_default_runs_record_no_tokens(files):
  run = tiny.build_run(tiny.config(files))
  _, rollouts, _ = tiny.sample(run, run.init())
  assert rollouts.kept_BTK is None
