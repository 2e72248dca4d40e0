"""The state that a run starts from: the models, their optimizers and their references."""
import dataclasses
import functools
from typing import Any, Callable

import jax
import jax.numpy as jnp

from rlx.build import keys
from rlx.build import models as build_models
from rlx.core import records
from rlx.learner import optimizer
from rlx.learner import sharding
from rlx.models import transformer
from rlx.models import value as value_model
from rlx.stages import methods as methods_lib


def initializers(c: keys.Config, methods: methods_lib.Methods, mesh: jax.sharding.Mesh,
                 optimizers: dict[str, optimizer.Optimizer],
                 models: dict[str, tuple[transformer.DecoderConfig, Any]],
                 frozen: Any) -> tuple[Callable, Callable]:
  """Returns (init, shapes): () -> the TrainState before the first step, and its shapes.

  The state has copies of the models, because steps donate it. With adapters, the references are
  the initial adapters, whose output is 0. The same program then runs for the PRM and its
  reference, so that equal weights give exactly equal log-probs. The shapes have shardings;
  computing them allocates nothing.

  Args:
    models: {"policy", "prm"}: (DecoderConfig, params).
    frozen: the base parameters if the models are adapters, else None.
  """
  has_prm, has_policy_ref = methods.needs("prm_logps_BT"), methods.needs("ref_logps_BT")
  is_asked = c.likelihood.model == "reference" and any(
      methods.needs(f) for f in ("answer_mask_BM", "answer_logps_BM"))
  has_reference = (has_prm and c.prm.reference == "frozen") or is_asked or (
      has_policy_ref and not c.kl.sync_every)
  configs = {name: config for name, (config, _) in models.items()}

  def state_of(params, frozen):
    policy, prm = params["policy"], params["prm"]
    copy = functools.partial(sharding.place, mesh=mesh, copies=True)
    number = lambda x: sharding.place(jnp.float32(x), mesh)
    def learned(name, optimizer_name, params):
      params = copy(params)
      return {name: params,
              f"{name}_opt": sharding.made(optimizers[optimizer_name].init, params, mesh)}
    parts = dict(learned("policy", "learner", policy), kl_coef=number(c.kl.coef),
                 frozen=None if frozen is None else copy(frozen))
    if has_policy_ref and c.kl.sync_every: parts["kl_reference"] = copy(policy)
    if has_reference: parts["reference"] = copy(build_models.freeze(policy, c.model.frozen_dtype))
    if has_prm:
      has_head = c.train_prm.labels is not None
      parts |= learned("prm", "prm", value_model.init(configs["prm"], prm) if has_head else prm)
      if c.prm.order == "none": del parts["prm_opt"]
      if c.prm.reference == "self":
        parts["prm_reference"] = copy(build_models.freeze(prm, c.model.frozen_dtype))
    if methods.needs("values_BT"):
      parts |= learned("value", "value", value_model.init(configs["policy"], policy))
    if c.rollouts.sync_every > 1: parts["sampler"] = copy(policy)
    if methods.reward_std_filter: parts["reward_std"] = number(jnp.nan)
    return records.TrainState(step=0, **parts)

  start = {name: params for name, (_, params) in models.items()}
  return (lambda: place_idle(c, state_of(start, frozen)),
          lambda: place_idle(c, sharding.shapes(jax.eval_shape(state_of, start, frozen), mesh)))


def place_idle(c: keys.Config, state: records.TrainState) -> records.TrainState:
  """A state, or its shapes, as it is between updates: see `offload_optimizers`."""
  if not c.offload_optimizers: return state
  return dataclasses.replace(state, **{
      name: sharding.moved(getattr(state, name), "pinned_host")
      for name in ("policy_opt", "prm_opt", "value_opt")})
