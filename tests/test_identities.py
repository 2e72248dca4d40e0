"""Identities of PRIME's stages: exact statements, no recorded numbers.

Runs in float64. Batch: 2 prompts x 4 completions, ragged, NaN on padding.
"""
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rlx.advantages import batch, combine, group, process
from rlx.core import masked, records
from rlx.evals import prm_metrics
from rlx.losses import prm
from rlx.rewards import implicit
from tests import whole

batch, group, masked, process = map(whole.compile_module, (batch, group, masked, process))
combine, prm, implicit = map(whole.compile_module, (combine, prm, implicit))

P, G, T = 2, 4, 6
LENGTHS = np.array([6, 4, 5, 1, 3, 6, 2, 5])
MASK = np.arange(T)[None] < LENGTHS[:, None]
OUTCOME = np.array([1.0, 0, 1, 0, 1, 1, 0, 1])
VALID_PG = np.ones((P, G), bool)
VALID_B = np.ones(P * G, bool)


@pytest.fixture(autouse=True)
def _float64():
  with jax.enable_x64(True): yield


def draw(seed, low=-3.0, high=-0.1):
  x = np.random.default_rng(seed).uniform(low, high, (P * G, T))
  return np.where(MASK, x, np.nan)


def implicit_rewards(prm_BT, ref_BT, beta=0.05, **options):
  return np.asarray(implicit.process(prm_BT, ref_BT, MASK, VALID_B, beta, **options)[0])


def outcome_advantages():
  return np.asarray(combine.spread(group.rloo(OUTCOME.reshape(P, G), VALID_PG), MASK))


def close(a, b, tol=1e-12): np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def test_prm_equal_to_reference_gives_nothing():
  logps_BT = draw(0)
  rewards_BT = implicit_rewards(logps_BT, logps_BT)
  np.testing.assert_array_equal(rewards_BT, 0.0)
  loss = prm.ce(logps_BT, logps_BT, MASK, OUTCOME, VALID_B, 0.05)
  close(loss.mean(), np.log(2))
  part_BT = process.rloo(rewards_BT, MASK, VALID_PG)
  np.testing.assert_array_equal(part_BT, 0.0)
  close(masked.whiten(np.asarray(part_BT) + outcome_advantages(), MASK),
        masked.whiten(outcome_advantages(), MASK))


@pytest.mark.parametrize("beta", [0.05, 1.0])
def test_partitions_have_one_total(beta):
  prm_BT, ref_BT = draw(0), draw(1)
  total_B = np.nansum(prm_BT - ref_BT, axis=1) * beta
  ends_BT = np.random.default_rng(2).uniform(size=MASK.shape) < 0.4
  for options in (dict(granularity="token"), dict(granularity="completion"),
                  dict(granularity="step", step_ends_BT=ends_BT),
                  dict(granularity="step", step_ends_BT=np.zeros_like(MASK))):
    rewards_BT = implicit_rewards(prm_BT, ref_BT, beta=beta, norm="none", **options)
    close(np.sum(rewards_BT, axis=1), total_B)
  # Every token a step: the tokens themselves, bit for bit.
  tokens_BT = implicit_rewards(prm_BT, ref_BT, norm="none")
  np.testing.assert_array_equal(tokens_BT, implicit_rewards(
      prm_BT, ref_BT, norm="none", granularity="step", step_ends_BT=np.ones_like(MASK)))
  # The logit of the cross-entropy: with label 0 the loss is softplus(logit).
  one = prm.ce(prm_BT, ref_BT, MASK, np.zeros(P * G), VALID_B, beta)
  close(one.total, np.sum(np.log1p(np.exp(total_B))))


def test_return_to_go_telescopes():
  prm_BT, ref_BT = draw(0), draw(1)
  rewards_BT = implicit_rewards(prm_BT, ref_BT, norm="none")
  value_BT = np.cumsum(rewards_BT, axis=1)  # At the end of token t.
  total_B1 = np.sum(rewards_BT, axis=1, keepdims=True)
  before_BT = np.pad(value_BT[:, :-1], ((0, 0), (1, 0)))
  as_reward_BT = process.reinforce(rewards_BT, MASK, VALID_PG)
  close(as_reward_BT, masked.where_valid(total_B1 - before_BT, MASK))
  # PRM as reward minus PRM as value: the sequence reward, on every token.
  as_value_BT = process.value_baseline(rewards_BT, MASK, VALID_PG)
  close(as_reward_BT - as_value_BT, masked.where_valid(np.broadcast_to(total_B1, MASK.shape), MASK))


def test_value_is_a_soft_expectation_of_the_outcome():
  """v(y_<=t) = beta log E_ref exp(r / beta), by enumeration: V = 3, T = 3."""
  vocab, width, beta = 3, 3, 0.5
  rng = np.random.default_rng(3)
  log_softmax = lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True))
  # Any distribution: logits from every prefix.
  tables = [{p: log_softmax(rng.normal(size=vocab)) for n in range(width)
             for p in itertools.product(range(vocab), repeat=n)} for _ in range(2)]
  every = list(itertools.product(range(vocab), repeat=width))
  prm_BT, ref_BT = (np.array([[t[y[:i]][y[i]] for i in range(width)] for y in every])
                    for t in tables)
  mask_BT = np.ones((len(every), width), bool)
  rewards_BT, _ = implicit.process(prm_BT, ref_BT, mask_BT, mask_BT[:, 0], beta, norm="none")
  value_BT = np.cumsum(np.asarray(rewards_BT), axis=1)
  reward_B, ref_B = value_BT[:, -1], np.exp(np.asarray(ref_BT).sum(1))
  close(np.sum(ref_B * np.exp(reward_B / beta)), 1.0)
  for i, y in enumerate(every):
    for t in range(1, width + 1):
      rows = [j for j, z in enumerate(every) if z[:t] == y[:t]]
      weight = ref_B[rows] / ref_B[rows].sum()
      soft = beta * np.log(np.sum(weight * np.exp(reward_B[rows] / beta)))
      close(value_BT[i, t - 1], soft)
      assert np.sum(weight * reward_B[rows]) - 1e-12 <= soft <= reward_B[rows].max() + 1e-12


@pytest.mark.parametrize("loo", ["code", "strict"])
def test_advantages_of_a_group_cancel(loo):
  rewards_BT = implicit_rewards(draw(0), draw(1))
  close(np.sum(group.rloo(OUTCOME.reshape(P, G), VALID_PG), axis=1), 0)
  # gamma = 0 is p itself; its mean per token cancels over the group.
  p_BT = process.rloo(rewards_BT, MASK, VALID_PG, gamma=0.0, loo=loo)
  mean_PG = masked.mean(p_BT, MASK, axis=1).reshape(P, G)
  close(np.sum(mean_PG, axis=1), 0)


def test_code_and_strict_agree_on_the_first_token():
  rewards_BT = implicit_rewards(draw(0), draw(1))
  code_BT, strict_BT = (process.rloo(rewards_BT, MASK, VALID_PG, loo=loo)
                        for loo in ("code", "strict"))
  close(code_BT[:, 0], strict_BT[:, 0])
  assert np.abs(code_BT - strict_BT).max() > 0.01
  # Per token they differ by (r - m) / (n - 1).
  p = [process.rloo(rewards_BT, MASK, VALID_PG, gamma=0.0, loo=loo) for loo in ("code", "strict")]
  mean_B1 = masked.mean(rewards_BT, MASK, axis=1, keepdims=True)
  close(p[0] - p[1], masked.where_valid((rewards_BT - mean_B1) / (G - 1), MASK))


def test_scale_and_sign_of_process_rewards():
  prm_BT, ref_BT = draw(0), draw(1)
  def part(sign, scale):
    rewards_BT = implicit_rewards(ref_BT + sign * scale * (prm_BT - ref_BT), ref_BT)
    return process.rloo(rewards_BT, MASK, VALID_PG)
  close(part(1, 1), part(1, 7.0), 1e-4)    # The normaliser's 1e-6.
  close(part(1, 1), -part(-1, 1))


def test_a_common_factor_is_inert():
  process_BT = np.asarray(process.rloo(implicit_rewards(draw(0), draw(1)), MASK, VALID_PG))
  white = lambda c: masked.whiten(c * process_BT + c * outcome_advantages(), MASK)
  close(white(1.0), white(5.0), 1e-7)      # The 1e-8 added to the variance.


def test_the_reference_gets_no_gradient():
  loss = lambda ref_BT: prm.ce(draw(0), ref_BT, MASK, OUTCOME, VALID_B, prm_beta=0.5).mean()
  np.testing.assert_array_equal(jax.grad(loss)(np.where(MASK, draw(1), 0.0)), 0)


def test_planted_reward_is_found():
  """Two tokens, the third of four decides. The PRM must pay for that one."""
  vocab, width, deciding = 2, 4, 2
  tokens_BT = np.array(list(itertools.product(range(vocab), repeat=width)))
  outcome_B = tokens_BT[:, deciding].astype(float)
  mask_BT, ok_B = np.ones(tokens_BT.shape, bool), np.ones(len(tokens_BT), bool)

  @jax.jit
  def logps(table_TV):   # One independent choice per position.
    log_TV = jax.nn.log_softmax(table_TV, axis=1)
    return jnp.take_along_axis(jnp.broadcast_to(log_TV[None], (len(tokens_BT), width, vocab)),
                               tokens_BT[..., None], axis=2)[..., 0]

  ref_BT, table_TV = logps(np.zeros((width, vocab))), np.zeros((width, vocab))
  optimizer = optax.adam(0.1)
  state = optimizer.init(table_TV)

  @jax.jit
  def step(table_TV, state):
    loss, grad = jax.value_and_grad(lambda t: prm.ce(
        logps(t), ref_BT, mask_BT, outcome_B, ok_B, prm_beta=0.5).mean())(table_TV)
    updates, state = optimizer.update(grad, state)
    return loss, optax.apply_updates(table_TV, updates), state

  losses = []
  for _ in range(60):
    loss, table_TV, state = step(table_TV, state)
    losses.append(float(loss))
  rewards_BT = np.asarray(implicit.process(
      logps(table_TV), ref_BT, mask_BT, ok_B, 0.05, norm="none")[0])
  share_T = np.abs(rewards_BT).mean(0) / np.abs(rewards_BT).mean(0).sum()
  assert share_T[deciding] > 0.99
  assert (np.sign(rewards_BT[:, deciding]) == np.where(outcome_B > 0.5, 1, -1)).all()
  # (b): a separable set, small steps: the loss falls every time, accuracy is 1.
  assert np.all(np.diff(losses) < 0)
  by_group = lambda x: x.reshape(1, -1)
  close(prm_metrics.accuracy(logps(table_TV), ref_BT, mask_BT, by_group(outcome_B),
                             by_group(ok_B)), 1.0)


def test_unknown_verdicts_have_no_effect():
  """A NaN verdict changes its group as if the row were not there."""
  outcome_B = np.where(np.arange(P * G) == 1, np.nan, OUTCOME)
  scored = records.Batch(action_BT=MASK, outcome_B=outcome_B, group=G)
  prm_BT, ref_BT = draw(0), draw(1)
  rewards_BT = np.asarray(implicit.process(prm_BT, ref_BT, MASK, scored.learn_B, 0.05)[0])
  process_fn = lambda t: process.rloo(t.rewards_BT, t.learn_BT, t.learn_PG)
  got_BT = np.asarray(combine.estimate(rewards_BT, scored, 1.0, process_fn)[0])
  np.testing.assert_array_equal(got_BT[1], 0)
  rows = np.array([0, 2, 3])
  alone = process.rloo(rewards_BT[rows], MASK[rows], np.ones((1, 3), bool))
  close(got_BT[rows], alone)
  loss = prm.ce(prm_BT, ref_BT, MASK, outcome_B, scored.learn_B, 0.05)
  assert loss.weight == P * G - 1
  grad_BT = jax.grad(lambda a: prm.ce(
      a, ref_BT, MASK, outcome_B, scored.learn_B, 0.05).mean())(prm_BT)
  np.testing.assert_array_equal(grad_BT[1], 0)
  close(batch.reinforce(outcome_B.reshape(P, G), scored.learn_PG)[0], [1, 0, 1, 0])
