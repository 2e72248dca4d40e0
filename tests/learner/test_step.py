import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rlx.core import records, resolve
from rlx.learner import optimizer, sharding, step
from rlx.losses import aggregate

X_BD = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
MASK_B = np.array([1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1], bool)


def _loss(params, batch):
  x_BD, mask_B = batch
  loss_B = jnp.where(mask_B, jnp.square(x_BD @ params["w_D"] - 1.0), 0.0)
  loss = records.Weighted(loss_B.sum(), mask_B.sum().astype(jnp.float32))
  return loss, {"half": records.Weighted(loss_B.sum() / 2, loss.weight)}, loss_B


def _run(batch, start=None, steps=1, **options):
  transform = optimizer.adamw(lr=0.1, max_grad_norm=None)
  params = {"w_D": jnp.zeros(3)} if start is None else start
  opt_state = transform.init(params)
  update = step.make(_loss, transform, **options)
  for _ in range(steps): params, opt_state, metrics, rows = update(params, opt_state, batch)
  return params, opt_state, metrics, rows


@pytest.mark.parametrize("options", [
    dict(microbatches=2), dict(microbatches=8), dict(microbatches=2, shards=4)], ids=str)
def test_any_number_of_microbatches_gives_the_same_step(options):
  # Rows per microbatch differ in how many are masked: a mean of means would not do.
  whole, _, metrics, rows = _run((X_BD, MASK_B), steps=3)
  parts, _, metrics_parts, rows_parts = _run((X_BD, MASK_B), steps=3, **options)
  np.testing.assert_allclose(parts["w_D"], whole["w_D"], rtol=1e-5)
  for k, v in metrics.items(): np.testing.assert_allclose(metrics_parts[k], v, rtol=1e-5)
  assert rows.shape == (16,)
  np.testing.assert_allclose(rows_parts, rows, rtol=1e-5)


def test_the_gradient_is_that_of_the_global_mean():
  grad = jax.grad(lambda w: jnp.square(X_BD[MASK_B] @ w - 1).mean())(jnp.zeros(3))
  _, _, metrics, _ = _run((X_BD, MASK_B), microbatches=4)
  np.testing.assert_allclose(metrics["grad_norm"], np.linalg.norm(grad), rtol=1e-5)
  np.testing.assert_allclose(metrics["half"], metrics["loss"] / 2, rtol=1e-6)


@pytest.mark.parametrize("batch, flag", [
    ((np.full_like(X_BD, np.nan), MASK_B), "nonfinite"),
    ((X_BD, np.zeros(16, bool)), "empty")], ids=["all_nan", "empty"])
def test_a_useless_gradient_changes_nothing(batch, flag):
  start, opt_state, *_ = _run((X_BD, MASK_B), steps=2)
  before = jax.tree.map(np.array, (start, opt_state))
  update = step.make(_loss, optimizer.adamw(lr=0.1, max_grad_norm=None))
  params, opt_state, metrics, _ = update(start, opt_state, batch)
  jax.tree.map(np.testing.assert_array_equal, (params, opt_state), before)
  assert metrics[flag] == 1 and metrics["nonfinite"] + metrics["empty"] == 1


def test_mapped_returns_rows_in_order():
  out = step.map_microbatches(lambda x: 2 * x, jnp.arange(24.0), 3, shards=4)
  np.testing.assert_array_equal(out, 2 * np.arange(24.0))


# prm.kto_even, whose baselines are of the whole minibatch: tests/test_whole_minibatch.py.
GROUPED = ("prm.dpo", "prm.nca", "prm.detached_dpo", "sequence.pacs", "sequence.dpo")


@pytest.mark.parametrize("name", GROUPED)
def test_losses_within_a_group_have_the_same_gradient_for_every_cut(name):
  """Log-probs that are linear in 3 parameters, 8 groups of 4, the rows of a device its own."""
  draw = np.random.default_rng(0)
  x_BTD, logps_BT = draw.normal(size=(32, 2, 3)), draw.normal(-1, 1, (32, 2))
  lengths_B, outcome_B = draw.integers(0, 3, 32), draw.choice([0, .5, 1, np.nan], 32)
  x_BTD, logps_BT, outcome_B = (x.astype(np.float32) for x in (x_BTD, logps_BT, outcome_B))
  scored = records.Batch(
      action_BT=np.arange(2)[None, :] < lengths_B[:, None], outcome_B=outcome_B,
      old_logps_BT=logps_BT, prm_ref_logps_BT=logps_BT, prm_old_logps_BT=2 * logps_BT,
      ref_logps_BT=logps_BT, prm_beta_B=np.ones(32, np.float32), group=4)
  fn = resolve.resolve("losses", dict(name=name), "loss")

  def loss(params, batch):
    scored, x_BTD = batch
    logps_BT = jnp.einsum("BTD,D->BT", x_BTD, params["w_D"])
    weighted = fn(scored.replace(prm_logps_BT=logps_BT, logps_BT=logps_BT))
    if name.startswith("sequence"):
      weighted = aggregate.aggregate(weighted, scored.action_BT & scored.learn_B[:, None],
                                     mode=resolve.lookup("losses", name).aggregation)
    return weighted, {}, None

  def norm(microbatches, shards):
    params = {"w_D": jnp.ones(3)}
    transform = optimizer.Optimizer(*optax.sgd(1.0), rate=lambda state: 1.0)
    update = step.make(loss, transform, microbatches=microbatches, shards=shards, group=4)
    params, _, metrics, _ = update(
        params, transform.init(params),
        sharding.place_rows((scored, x_BTD), sharding.make_mesh(data=shards)))
    return [metrics["grad_norm"], *params["w_D"]]

  expected = norm(1, 1)
  assert expected[0] > 0.01
  for cut in ((8, 1), (2, 4)): np.testing.assert_allclose(norm(*cut), expected, rtol=2e-5)
  with pytest.raises(ValueError, match="^32 rows in groups of 4 do not divide into 8 micro"):
    norm(8, 2)


def test_minibatches_are_whole_groups_in_the_order_given():
  rows = lambda *args: [part.tolist() for part in step.minibatch_rows(4, 2, 2, *args)]
  assert rows([3, 0, 2, 1]) == [[6, 7, 0, 1], [4, 5, 2, 3]]
  assert rows() == [[0, 1, 2, 3], [4, 5, 6, 7]]
  assert step.minibatch_rows(4, 2, 1) == [None]  # The batch as it is.


def test_a_step_says_its_learning_rate():
  """A step without a finite gradient does not use its learning rate up."""
  transform = optimizer.adamw(lr=2.0, warmup_steps=4)
  params = {"w_D": jnp.zeros(3)}
  state, update, rates = transform.init(params), step.make(_loss, transform), []
  for x_BD in (X_BD, X_BD, np.full_like(X_BD, np.nan), X_BD, X_BD, X_BD):
    params, state, metrics, _ = update(params, state, (x_BD, MASK_B))
    rates.append(float(metrics["lr"]))
  assert rates == [.5, 1, 1.5, 1.5, 2, 2]


@pytest.mark.parametrize("options, rates", [
    (dict(), [1, 1, 1, 1]),
    (dict(schedule="linear", total_steps=3, warmup_steps=1), [1, 1, .5, 0]),
    (dict(schedule="cosine", total_steps=2, final_fraction=.5), [1, .75, .5, .5]),
    # Two optimizer steps per iteration: warm-up of one iteration takes both.
    (dict(warmup_steps=1, updates=2), [.5, 1, 1, 1]),
    (dict(schedule="linear", total_steps=2, updates=2), [1, .75, .5, .25]),
], ids=str)
def test_schedules(options, rates):
  """The size of the first steps of AdamW without decay is the learning rate."""
  transform = optimizer.adamw(lr=1.0, max_grad_norm=None, **options)
  params = {"w_D": jnp.zeros(1)}
  state = transform.init(params)
  for rate in rates:
    updates, state = transform.update({"w_D": jnp.ones(1)}, state, params)
    np.testing.assert_allclose(-updates["w_D"], rate, atol=1e-5)


def test_decay_spares_norms_and_biases_unless_told():
  params = {"w_DF": jnp.ones((2, 2)), "scale_LD": jnp.ones((3, 2)),
            "q_bias_LNH": jnp.ones((3, 2, 2)), "k_LDKH": jnp.ones((3, 2, 1, 2))}
  zero = jax.tree.map(jnp.zeros_like, params)
  for decay, spared in (("matrices", {"scale_LD", "q_bias_LNH"}), ("all", set())):
    transform = optimizer.adamw(lr=.1, weight_decay=.5, decay=decay)
    updates, _ = jax.jit(lambda: transform.update(zero, transform.init(params), params))()
    assert {k for k, u in updates.items() if not u.any()} == spared
