"""The update of policy and PRM is the same however a minibatch is cut."""
import functools

import jax
import numpy as np
import optax
import pytest

from configs import base
from rlx.build import methods as build_methods, models as build_models, updates
from rlx.core import records
from rlx.learner import optimizer as optimizer_lib, sharding
from rlx.models import logps, transformer
from rlx.stages import annotate, learner as learner_lib, place

B, G, X, T, V = 16, 2, 3, 5, 12
CONFIG = transformer.DecoderConfig(
    vocab_size=V, d_model=8, n_layers=1, n_heads=2, n_kv_heads=2, head_dim=4, d_ff=8)
LOSSES = {
    "kl_cov": dict(loss=dict(name="policy.kl_cov", fraction=.1),
                   token_weight=dict(name="token_weight.top", fraction=.5)),
    "clip_cov": dict(loss=dict(name="policy.clip_cov", fraction=.2, cov_low=.0),
                     token_weight=dict(name="token_weight.steer", low=.1)),
    "lp_reg": dict(loss=dict(name="distribution.lp_reg", fraction=.5),
                   auxiliary=dict(name="auxiliary.last_token", coef=1., c_ref=-3.)),
    "stable_reinforce": dict(loss=dict(name="policy.stable_reinforce", width=1.)),
    "prm.kto": {}, "prm.kto_even": {}}
# Of policy and PRM, one over two devices and one, with a statistic that reads it, packed: how
# rows are placed does not depend on the loss, and rows on several devices are not packed.
PLACED = {"kl_cov": dict(data=2), "prm.kto": dict(data=2),
          "lp_reg": dict(pack=True), "prm.kto_even": dict(pack=True)}


@functools.cache
def batch():
  """Rollouts and their Scored; rows differ more the later they come."""
  draw = np.random.default_rng(0)
  later_B1 = np.linspace(.2, 2, B)[:, None]
  normal_BT = lambda: np.float32(draw.normal(size=(B, T)) * later_B1)
  rollouts = records.Rollouts(
      tokens_BS=draw.integers(0, V, (B, X + T)).astype(np.int32),
      prompt_len_B=np.full(B, X, np.int32),
      completion_len_B=draw.integers(1, T, B).astype(np.int32),
      sampler_logps_BT=-np.abs(normal_BT()), finish_B=np.ones(B, np.int32), prompt_P=None)
  outcome_B = np.float32([1, 0] * 2 + [np.nan, 0] + [1, 0] + [0, 0] * 2 + [1, 0, 0, 1])
  scored = records.Batch(
      action_BT=rollouts.mask_BT, outcome_B=outcome_B, group=G,
      prm_beta_B=np.full(B, .5, np.float32),
      finish_B=rollouts.finish_B, sampler_logps_BT=rollouts.sampler_logps_BT,
      prm_ref_logps_BT=np.float32(-2 * later_B1) - np.abs(normal_BT()),
      old_min_p_logps_BT=-np.abs(normal_BT()),
      kl_ratio_B=np.float32(3 * later_B1[:, 0]), advantages_BT=normal_BT() + np.float32(later_B1))
  return annotate.Annotated(rollouts, jax.tree.map(np.asarray, scored), {})


def step_of(name, microbatches=1, data=1, pack=False):
  """(loss and metrics, gradient) of one step of SGD, large against parameters and rounding."""
  c = base.get_config()
  c.prompts.per_step, c.rollouts.per_prompt, c.learner.pack = B // G, G, pack
  c.learner.minibatches = c.prm.minibatches = 1
  c.likelihood.token, c.distribution.min_p = "#", 0.1
  c.learner.microbatches = c.prm.microbatches = microbatches
  for key, spec in LOSSES[name].items(): c.learner[key] = base.ml_collections.ConfigDict(spec)
  if name.startswith("prm"): c.prm.loss = base.ml_collections.ConfigDict(dict(name=name))
  c.mesh.data = data
  mesh = sharding.make_mesh(**c.mesh)
  start = jax.tree.map(lambda x: 3 * x, jax.device_get(
      jax.jit(transformer.init, static_argnums=0)(CONFIG, jax.random.key(0))))
  copy = lambda: sharding.place(start, mesh, copies=True)
  models = dict.fromkeys(("policy", "prm", "value"), build_models.adapt_to_mesh(CONFIG, mesh))
  rate = 2.**14
  optimizer = optimizer_lib.Optimizer(*optax.sgd(rate), rate=lambda state: rate)
  state = records.TrainState(
      step=0, kl_coef=0., policy=copy(), policy_opt=optimizer.init(start), prm=copy(),
      prm_opt=optimizer.init(start))
  placed = place.Place(mesh, pack)(batch())
  stages = updates.device_stages(c, build_methods.resolve_methods(c), models, mesh, dict.fromkeys(
      ("learner", "prm", "value"), optimizer), token_id=1, learns="prm")
  if name.startswith("prm"):
    state, _, metrics = stages["update_prm"](state, placed)
  else:
    state, _, metrics = stages["update_policy"](state, placed, 0)
  metrics, after = jax.device_get((metrics, state.prm if name.startswith("prm") else state.policy))
  return metrics, jax.tree.map(lambda a, b: (a - b) / rate, after, start)


whole = functools.cache(step_of)


@functools.cache
def cut(name):
  """(step_of a minibatch that is cut, the number of forward passes that were traced for it)."""
  passes, forward = [], logps.of_rollouts
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(logps, "of_rollouts", lambda *a, **o: passes.append(0) or forward(*a, **o))
    return step_of(name, microbatches=2, **PLACED.get(name, {})), len(passes)


def differs(a, b):
  """Largest relative difference of a metric, and of the gradient as a vector."""
  (metrics, grad), (other_metrics, other) = a, b
  norm = lambda tree: np.sqrt(sum(np.sum(np.float64(x)**2) for x in jax.tree.leaves(tree)))
  return (max(abs(other_metrics[k] - v) / max(abs(v), 1e-3) for k, v in metrics.items()),
          norm(jax.tree.map(np.subtract, other, grad)) / norm(grad))


@pytest.mark.parametrize("name", LOSSES)
def test_a_step_is_the_same_however_its_minibatch_is_cut(name):
  # Rounding in float32, which depends on the processor.
  assert max(differs(whole(name), cut(name)[0])) < 3e-5


@pytest.mark.parametrize("without, with_one", [("stable_reinforce", "lp_reg"),
                                               ("prm.kto", "prm.kto_even")])
def test_a_pass_more_where_a_statistic_reads_the_model(without, with_one):
  assert cut(with_one)[1] == cut(without)[1] + 1


@pytest.mark.parametrize("name", ["stable_reinforce", "lp_reg", "prm.kto"])
def test_without_what_is_of_the_whole_it_would_differ(name, monkeypatch):
  monkeypatch.setattr(learner_lib.Learner, "add_whole",
                      lambda self, params, part, *_: part.replace(whole={}))
  assert max(differs(whole(name), step_of(name, microbatches=4))) > 1e-2
