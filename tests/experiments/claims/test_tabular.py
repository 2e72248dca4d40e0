"""The toy environments against enumeration by hand, and what `train` follows."""
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.papers import grpo
from experiments.claims.environments import sparse, tabular

P, V, T = 2, 3, 3
TREES = {eos: tabular.Tree(prompts=P, vocab=V, length=T, eos=eos) for eos in (False, True)}
with_and_without_eos = pytest.mark.parametrize("eos", [False, True])


@functools.cache
def table(tree):
  return jax.jit(lambda: tree.start(jax.random.key(0), 1.0))()


def enumerated(logits_NV, eos):
  """{tokens of a completion: (probability, logps, entropies)} of one prompt, by loops."""
  logits_NV, leaves = np.asarray(logits_NV, np.float64), {}
  for tokens in itertools.product(range(V), repeat=T):
    node, seen, entropies = 0, [], []
    for n, token in enumerate(tokens):
      p = np.exp(logits_NV[node])
      p /= p.sum()
      seen.append(np.log(p[token]))
      entropies.append(-(p * np.log(p)).sum())
      node = node * V + token + 1
      if eos and token == 0: break
    leaves[tokens[:n + 1]] = np.exp(sum(seen)), seen, entropies
  return leaves


def reinforce(**changes):
  """Verdicts as advantages, each completion's tokens summed: REINFORCE itself."""
  return tabular.changed(grpo.get_config(), **dict(
      kl__coef=0.0, advantages__outcome=dict(name="batch.reinforce"),
      learner__loss=dict(name="policy.reinforce"),
      learner__aggregation="seq-mean-token-sum") | changes)


def verify_by(value_PC):
  """Verdicts that are any function of prompt and tokens (as digits)."""
  def verify(batch, **_):
    code_B = batch.tokens_BT @ jnp.array([V * V, V, 1])
    return dict(outcome_B=jnp.asarray(value_PC)[batch.prompt_B, code_B])
  return verify


def moved(c, tree, verify, *, seeds=(0,), steps=1, lr=1.0, sampler=None):
  """The tables' change over training, [I, P, N, V]."""
  start_PNV = table(tree)
  environment = lambda key: tabular.Environment(
      verify, lambda x: dict(sum=x.sum()), start=start_PNV, sampler=sampler)
  _, last_IPNV = tabular.train(c, tree, environment, seeds=seeds, steps=steps, lr=lr)
  return np.asarray(last_IPNV) - np.asarray(start_PNV)


@with_and_without_eos
def test_leaves_and_log_probs_by_enumeration(eos):
  tree = TREES[eos]
  logits_PNV = table(tree)
  tokens_LT, mask_LT = tree.leaves
  leaves = [tuple(t[m]) for t, m in zip(tokens_LT, mask_LT)]
  logps_PL = np.asarray(jax.jit(tree.leaf_logps)(logits_PNV))

  @jax.jit
  def logps_of(prompt):
    batch = tree.batch(jnp.full(len(leaves), prompt), jnp.asarray(tokens_LT), jnp.asarray(mask_LT))
    return tabular.logps(logits_PNV, batch)

  for prompt in range(P):
    expected = enumerated(logits_PNV[prompt], eos)
    assert sorted(leaves) == sorted(expected)
    assert len(leaves) == (27 if not eos else 1 + 2 + 4 * 3)
    logps_LT, entropy_LT = map(np.asarray, logps_of(prompt))
    for i, leaf in enumerate(leaves):
      probability, logps, entropies = expected[leaf]
      padding = [0.0] * (T - len(leaf))
      np.testing.assert_allclose(np.exp(logps_PL[prompt, i]), probability, rtol=1e-5)
      np.testing.assert_allclose(logps_LT[i], logps + padding, rtol=1e-5)
      np.testing.assert_allclose(entropy_LT[i], entropies + padding, rtol=1e-5)
  np.testing.assert_allclose(np.exp(logps_PL).sum(axis=1), 1, rtol=1e-5)
  values_PL = jnp.asarray(np.random.default_rng(0).normal(size=logps_PL.shape), jnp.float32)
  np.testing.assert_allclose(jax.jit(tree.expected_P)(logits_PNV, values_PL),
                             (np.exp(logps_PL) * values_PL).sum(axis=1), rtol=1e-5)


def test_the_reference_of_the_kl_moves_after_every_second_step():
  tree, verify = TREES[False], verify_by(np.random.default_rng(1).uniform(size=(P, V**T)))
  start = table(tree)  # It is kept, so that it is not computed within a trace.
  environment = lambda key: tabular.Environment(
      verify, lambda x: dict(logit=x[0, 0, 0]), start=start)
  fixed, synced = (tabular.train(reinforce(kl__coef=1.0, kl__sync_every=every), tree, environment,
                                 seeds=(0,), steps=3, lr=1.0)[0]["logit"][0] for every in (0, 2))
  np.testing.assert_array_equal(synced[:3], fixed[:3])
  assert synced[3] != fixed[3]


@with_and_without_eos
def test_samples_are_the_leaves_as_often_as_they_are_probable(eos):
  tree, group = TREES[eos], 4000
  logits_PNV = table(tree)
  batch = jax.jit(tree.sample, static_argnums=2)(jax.random.key(1), logits_PNV, group)
  assert batch.prompt_B.tolist() == [0] * group + [1] * group
  again = tree.batch(batch.prompt_B, batch.tokens_BT, batch.mask_BT)
  np.testing.assert_array_equal(again.nodes_BT, batch.nodes_BT)
  for prompt in range(P):
    rows = slice(prompt * group, (prompt + 1) * group)
    drawn = [tuple(t[m]) for t, m in zip(*map(np.asarray, (
        batch.tokens_BT[rows], batch.mask_BT[rows])))]
    expected = enumerated(logits_PNV[prompt], eos)
    assert set(drawn) <= set(expected)
    for leaf, (p, *_) in expected.items():
      error = (p * (1 - p) / group) ** 0.5
      assert abs(drawn.count(leaf) / group - p) < 5 * error, leaf


def test_train_follows_the_policy_gradient():
  """One step of REINFORCE, averaged over 64 seeds, is the exact gradient of the mean
  verdict to within its sampling error."""
  tree = TREES[True]
  value_PC = np.float32(np.random.default_rng(1).uniform(size=(P, V**T)) < 0.3)
  codes_L = tree.leaves[0] @ np.array([V * V, V, 1])
  objective = lambda x: tree.expected_P(x, value_PC[:, codes_L]).mean()
  exact_PNV = jax.jit(jax.grad(objective))(table(tree))
  steps_IPNV = moved(reinforce(rollouts__per_prompt=256), tree, verify_by(value_PC),
                     seeds=tuple(range(64)))
  error_PNV = steps_IPNV.std(axis=0, ddof=1) / 8
  assert np.abs(exact_PNV).max() > 15 * error_PNV.max()  # Something to be wrong about.
  assert np.all(np.abs(steps_IPNV.mean(axis=0) - exact_PNV) <= 5 * error_PNV + 1e-7)


def test_seeds_and_their_rates_are_independent():
  """Each run of a call is the run of its seed and rate among other seeds and rates."""
  tree, verify = TREES[True], verify_by(np.arange(2.0 * 27).reshape(2, 27) % 2)
  seeds, rates = (3, 3, 4, 3), np.array([1.0, 0.1, 0.1, 1.0])
  change_IPNV = moved(grpo.get_config(), tree, verify, seeds=seeds, lr=rates)
  assert np.abs(change_IPNV).max(axis=(1, 2, 3)).min() > 1e-3
  assert not np.allclose(change_IPNV[1], change_IPNV[2])
  np.testing.assert_array_equal(change_IPNV[0], change_IPNV[3])
  for rate in (1.0, 0.1):
    alike_IPNV = moved(grpo.get_config(), tree, verify, seeds=seeds, lr=rate)
    np.testing.assert_allclose(change_IPNV[rates == rate], alike_IPNV[rates == rate], atol=1e-6)


def test_every_seed_draws_its_environment():
  """The measure sees what the verify does, another in each seed."""
  tree = TREES[False]
  def environment(key):
    code = jax.random.randint(key, (), 0, 27)  # The one completion that is right.
    return tabular.Environment(verify_by(jnp.broadcast_to(jnp.arange(27) == code, (P, 27)) * 1.0),
                               lambda x: dict(code=code, chance=tree.expected_P(
                                   x, (jnp.arange(27) == code)[None] * jnp.ones((P, 1))).mean()))
  metrics, _ = tabular.train(reinforce(rollouts__per_prompt=64), tree, environment,
                             seeds=range(4), steps=30, lr=30.0)
  assert len(set(metrics["code"][:, 0])) > 1
  assert (metrics["chance"][:, -1] > 0.9).all() and np.allclose(metrics["chance"][:, 0], 1 / 27)


ONLY_1 = lambda key, logits_PNV: jnp.broadcast_to(jnp.array([0.0, 50.0, 0.0]), logits_PNV.shape)
PATH = [0, 2, 8]  # The nodes that drawing token 1 leads to.


def pulled(logits_PNV, is_weighted=False):
  """The gradient of mean_P of the log-prob of 1 1 1; weighted: by each token's own."""
  p_PNV = np.exp(logits_PNV) / np.exp(logits_PNV).sum(axis=2, keepdims=True)
  change_PNV = (p_PNV[..., 1:2] if is_weighted else 1) * (np.eye(V)[1] - p_PNV) / P
  return np.where(np.isin(np.arange(p_PNV.shape[1]), PATH)[:, None], change_PNV, 0)


def test_a_sampler_of_its_own_is_what_is_drawn_from():
  """It draws token 1 alone; the weight then is what the policy gives it, over 1."""
  tis = dict(name="rollout_correction.tis", cap=9.0, level="token")
  change_PNV = moved(reinforce(learner__rollout_correction=tis), TREES[False],
                     verify_by(np.ones((P, V**T))), sampler=ONLY_1)[0]
  np.testing.assert_allclose(
      change_PNV, pulled(np.asarray(table(TREES[False])), is_weighted=True), atol=1e-6)


def test_passes_over_a_batch():
  """The second starts where the first ended; a clip that the first passed stops it."""
  tree, verify = TREES[False], verify_by(np.ones((P, V**T)))
  of = lambda **changes: moved(reinforce(learner__epochs=2, **changes), tree, verify,
                               sampler=ONLY_1)[0]
  start_PNV = np.asarray(table(tree))
  once_PNV = pulled(start_PNV)
  twice_PNV = once_PNV + pulled(start_PNV + once_PNV)
  np.testing.assert_allclose(of(), twice_PNV, atol=1e-6)
  clip = dict(name="policy.ppo_clip", clip_low=0.05, clip_high=0.05)
  np.testing.assert_allclose(of(learner__loss=clip), once_PNV, atol=1e-6)


@pytest.mark.parametrize("filters", [
    dict(rollouts__filter_groups=dict(name="filter_groups.accuracy_band", low=0.1, high=0.9)),
    dict(rollouts__select_completions=dict(name="select_completions.extremes"))],
                         ids=["groups", "completions"])
def test_filters_leave_out(filters):
  """A band leaves the group out whose verdicts agree, of a group two completions learn."""
  tree = TREES[False]
  verify_by_tokens = verify_by(np.stack([np.ones(27), np.arange(27.0) % 2]))
  def verify(batch, **_):
    score_B1 = batch.tokens_BT @ jnp.array([[9.0], [3.0], [1.0]])
    return verify_by_tokens(batch) | dict(scores_BE=score_B1)
  change_PNV = moved(reinforce(**filters), tree, verify)[0]
  if "rollouts__filter_groups" in filters:
    assert np.abs(change_PNV[0]).max() == 0 and np.abs(change_PNV[1]).max() > 0
  else:  # Of prompt 0, whose verdicts are all 1, two completions move nodes.
    moved_N = np.abs(change_PNV[0]).max(axis=1) > 0
    assert moved_N[0] and moved_N[1:4].sum() <= 2 and moved_N[4:].sum() <= 2


def test_changed_copies_and_refuses_unknown_keys():
  c = grpo.get_config()
  other = tabular.changed(c, learner__epochs=3, learner__loss__clip_high=0.5)
  assert (c.learner.epochs, c.learner.loss.clip_high) == (1, 0.2)
  assert (other.learner.epochs, other.learner.loss.clip_high) == (3, 0.5)
  for unknown in ("learner__epoch", "no_such"):
    with pytest.raises(ValueError, match=unknown.replace("__", ".")):
      tabular.changed(c, **{unknown: 1})


def test_sparse_problems():
  """Their verdict is that of the measure, and needs an end where completions end."""
  for problem in (sparse.rare(prompts=3), sparse.endings(prompts=3)):
    tokens_LT, mask_LT = problem.tree.leaves
    every = lambda x_LT: jnp.asarray(np.tile(x_LT, (3, 1)))

    @jax.jit
    def judged(key):  # pylint: disable=cell-var-from-loop
      environment = problem.environment(key)
      batch = problem.tree.batch(jnp.repeat(jnp.arange(3), len(tokens_LT)), every(tokens_LT),
                                 every(mask_LT))
      outcome_B = environment.verify(batch, key=None, logits_PNV=None)["outcome_B"]
      return outcome_B, environment.measure(jnp.zeros_like(environment.start))

    outcome_B, metrics = judged(jax.random.key(0))
    verdict_PL = np.asarray(outcome_B).reshape(3, -1)
    share_L = float(problem.tree.vocab) ** -mask_LT.sum(axis=1)
    np.testing.assert_allclose(metrics["accuracy"], (verdict_PL @ share_L).mean(), rtol=1e-5)
    np.testing.assert_allclose(metrics["wrong_length"], ((1 - verdict_PL) @ (
        share_L * mask_LT.sum(axis=1))).sum() / ((1 - verdict_PL) @ share_L).sum(), rtol=1e-5)
    assert 0.02 < metrics["accuracy"] < 0.2 and len(set(verdict_PL.sum(axis=1))) > 1
    assert (verdict_PL.ravel() != judged(jax.random.key(1))[0]).any()
    if problem.tree.eos:
      ended_L = np.any(mask_LT & (tokens_LT == 0), axis=1)
      assert verdict_PL[:, ~ended_L].sum() == 0 and (~ended_L).sum() == 3**5
      # A token more with probability 3/4, five at most.
      np.testing.assert_allclose(metrics["length"], sum(0.75**t for t in range(5)), rtol=1e-5)


def test_late_is_the_second_half():
  metrics = dict(accuracy=np.array([[0.1, 0.5, 0.4], [0.2, 0.3, 0.9]]))
  np.testing.assert_allclose(sparse.late(metrics), [0.45, 0.6])


def test_matched_by_hand():
  """At 0.3, the rival's most: half way, 5.5, less 4. At 0.7: 2/3 and 3/4 of the way."""
  metrics = np.array([[[0.1, 0.5, 0.4], [6.0, 5.0, 4.0]], [[0.2, 0.3, 0.9], [3.0, 2.0, 1.0]]])
  rival = np.array([[[0.1, 0.3, 0.2], [6.0, 4.0, 0.0]], [[0.1, 0.9, 0.9], [3.0, 2.0, 0.0]]])
  np.testing.assert_allclose(sparse.matched(metrics, rival), [1.5, 4 / 3 - 2.25])
  # Below where it starts an arm is at its start.
  np.testing.assert_allclose(sparse.matched(metrics, rival, 0.05), [0, 0])
