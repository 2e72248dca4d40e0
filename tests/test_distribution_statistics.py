"""Statistics of the policy's whole distribution: computed if and only if a method reads them."""
import dataclasses

import jax
import numpy as np

from configs import base, quickstart
from configs.papers import lp_reg, otb, rover, simko, ucas
from experiments.claims.environments import tabular
from rlx import build
from rlx.build import methods as build_methods, plan as plan_lib
from rlx.models import logps, transformer
from tests import stages


def test_what_is_computed_is_what_is_asked_for():
  def statistics(c):
    m = build_methods.resolve_methods(c)
    now, before = plan_lib.find_statistics(c, m)
    planned = plan_lib.plan_fields(c, m)
    return dict(now), dict(before), any(f.name == "old_logps_BT" for f in planned)
  assert statistics(base.get_config()) == ({}, {}, False)
  assert statistics(simko.get_config()) == ({"top_logps_BTK": ("top", 3)}, {}, False)
  assert statistics(rover.get_config()) == (
      {"mean_logps_BT": ("mean",)}, {"old_mean_logps_BT": ("mean",)}, True)
  # Read before the update also where the batch has one optimizer step.
  assert lp_reg.get_config().learner.minibatches == 1
  assert statistics(lp_reg.get_config()) == ({}, {"old_min_p_logps_BT": ("min_p", 0.02)}, True)
  assert statistics(ucas.get_config())[1] == {
      "old_mean_logps_BT": ("mean",), "old_logits_BT": ("logit",)}
  assert statistics(otb.get_config()) == ({}, {"old_sum_pi_squared_BT": ("squared",)}, True)


def test_a_run_gives_methods_what_they_ask_for():
  """Before the update, packed, against all logits at once; and on a table."""
  c = quickstart.get_config("smoke")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.ucas"), whiten=False)
  c.learner.loss = dict(name="distribution.lp_reg")
  c.distribution.min_p, c.rollouts.decoding.temperature = 0.3, 0.8
  run = build.build(c)
  state = run.init()
  texts = ["1;2#3", "#4", "5", "1#3", "", "9#9", "#3", "8#"] * 4
  rollouts = stages.rollouts(run, run.prompts.take(8),
                             [run.texts.tokenizer.encode(t) for t in texts], 8)
  outcome_B = np.float32([1, 0, 0, 1] * 8)
  scored = stages.score(run, state, rollouts, outcome_B).batch
  params, r = state.join_params("policy"), rollouts
  config = dataclasses.replace(run.passes.models["policy"], remat="none")
  more = dict(plan_lib.find_statistics(c, run.methods)[1])
  mask_BT = np.asarray(r.mask_BT)
  @jax.jit
  def statistics(params, r):
    hidden_BSD = transformer.hidden(params, config, r.tokens_BS, r.positions_BS, r.valid_BS)
    logits_BTV = transformer.logits(params, config, hidden_BSD)[:, r.prompt_width - 1:-1] / 0.8
    return logps.distribution_statistics(logits_BTV, r.completions_BT, tuple(more.values()))
  wanted = statistics(params, r)
  assert set(more) == {"old_mean_logps_BT", "old_logits_BT", "old_min_p_logps_BT"}
  for field, x in zip(more, wanted):
    np.testing.assert_allclose(getattr(scored, field), np.where(mask_BT, x, 0), atol=1e-4)
  assert "old_logps_BT" in scored and "top_logps_BTK" not in scored
  assert np.isfinite(run.rewards_advantages.compute_from_batch(state,
                                                               scored)[0].advantages_BT).all()

  tree = tabular.Tree(prompts=2, vocab=3, length=2, eos=True)
  logits_PNV = jax.jit(lambda key: tree.start(key, 1.0))(jax.random.key(0))
  batch = jax.jit(tree.sample, static_argnums=2)(jax.random.key(1), logits_PNV, 4)
  fields = jax.jit(lambda *x: tabular.beyond(
      dict(top_logps_BTK=("top", 2), old_logits_BT=("logit",)), *x))(logits_PNV, batch)
  assert not batch.mask_BT.all()
  logits = np.where(batch.mask_BT[:, :, None],
                    np.asarray(logits_PNV)[batch.prompt_B[:, None], batch.nodes_BT], np.nan)
  z = np.take_along_axis(logits, np.asarray(batch.tokens_BT)[..., None], -1)[..., 0]
  np.testing.assert_allclose(fields["old_logits_BT"], np.nan_to_num(z), rtol=1e-6)
  top = np.sort(logits, -1)[..., :0:-1] - np.log(np.exp(logits).sum(-1, keepdims=True))
  np.testing.assert_allclose(fields["top_logps_BTK"], np.nan_to_num(top), rtol=1e-5)
