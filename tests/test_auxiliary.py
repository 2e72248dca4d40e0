"""An auxiliary loss: the log-probs that it reads, and its own mean in the policy's loss."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.papers import laser
from rlx import build
from rlx.build import methods as build_methods, updates
from rlx.core import records
from rlx.losses import auxiliary
from rlx.stages import passes as passes_lib
from tests import stages

TEXTS = ["1;2#3", "4#4", "5", "1;3#3"] * 8


def setup(**changes):
  """(run, state, rollouts, scored) of completions of up to 6 tokens with EOS; one is cut."""
  c = laser.get_config("smoke")
  c.learner.optimizer.lr = 1e-3
  for key, value in changes.items(): c.learner[key] = value
  run = build.build(c)
  prompts = run.prompts.take(8)
  ids = [run.texts.tokenizer.encode(t) + [run.texts.tokenizer.eos_ids[0]] for t in TEXTS]
  rollouts = stages.rollouts(run, prompts, ids, 6,
                             finish_B=np.where(np.arange(32) == 3, 0, 1).astype(np.int32))
  outcome_B = np.float32([1, 0, 0, 1] * 8)
  state = run.init()
  placed = stages.score(run, state, rollouts, outcome_B)
  return run, state, run.rewards_advantages(state, placed)[0]


@pytest.mark.parametrize("pack", [True, False])
def test_the_update_reads_the_token_where_the_reward_does(pack):
  """Two passes, one over completions with the token behind them, say the same."""
  run, state, placed = setup(pack=pack)
  scored, rollouts = placed.batch, placed.host
  own = laser.get_config("smoke").learner.auxiliary
  want = jax.jit(lambda scored: auxiliary.last_token(
      scored.self_logps_B, scored.outcome_B, scored.learn_B, scored.finish_B, c_ref=own.c_ref,
      beta_v=own.beta_v).mean())(scored)
  logps_BT = passes_lib.Passes(run.passes, state, rollouts.rows(), lambda *_: None).logps("policy")
  before = np.asarray(scored.self_logps_B)
  state, _, metrics = run.update_policy(state, placed, 0)
  np.testing.assert_allclose(metrics["policy/auxiliary"], want, rtol=1e-5)
  # The policy's own log-probs are those of a pass without the token.
  np.testing.assert_allclose(metrics["rollouts/sampler_gap_max"],
                             np.abs(logps_BT[np.asarray(scored.action_BT)]).max(), rtol=1e-5)
  # And it learns: towards the verdict of the right ones, which it held for wrong.
  for step in range(1, 5):
    placed = stages.score(run, state, rollouts, scored.outcome_B)
    state, scored, later = stages.update(run, state, placed, step)
  assert later["policy/auxiliary"] < metrics["policy/auxiliary"]
  assert not np.allclose(before, scored.self_logps_B, atol=1e-2)


@pytest.mark.parametrize("aggregation", ["token-mean", "token-sum", "seq-mean-token-mean"])
def test_its_mean_does_not_depend_on_how_tokens_are_averaged(aggregation):
  c = laser.get_config("smoke")
  c.learner.aggregation, c.learner.auxiliary.coef = aggregation, 0.5
  zeros_BT = jnp.zeros((4, 3))
  scored = records.Batch(
      action_BT=jnp.array([[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0]], bool), group=4,
      outcome_B=jnp.array([1., 0, 0, 1]), finish_B=jnp.ones(4, int),
      self_logps_B=jnp.array([-10., -15, -15, 0]), logps_BT=zeros_BT, entropy_BT=zeros_BT,
      sampler_logps_BT=zeros_BT, advantages_BT=zeros_BT)
  loss_of = updates.policy_loss_of(c, build_methods.resolve_methods(c))
  loss, metrics = jax.jit(lambda *args: loss_of(*args))(scored, jnp.zeros(4))
  # c_ref and beta_v of the config: r of the right one, and r of the wrong ones, which are 0.
  own = c.learner.auxiliary
  error = own.beta_v * (-10 - own.c_ref) - 1, own.beta_v * (-15 - own.c_ref)
  want = (1.5 * error[0]**2 + 2 * .75 * error[1]**2) / 3
  np.testing.assert_allclose(metrics["auxiliary"].mean(), want, rtol=1e-5)
  np.testing.assert_allclose(loss.mean(), .5 * want, rtol=1e-5)
