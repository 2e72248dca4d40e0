"""The state that a run starts from: the models, their optimizers and their references."""
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlx.build import (
    judges as build_judges, keys, models as build_models, options as options_lib)
from rlx.core import records
from rlx.core.options import key
from rlx.learner import optimizer, sharding
from rlx.models import transformer, value as value_model
from rlx.stages import host_fields, methods as methods_lib, sizes as sizes_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class InitialState:
  """Makes the TrainState before the first step.

  The state has copies of the models, because steps donate it. With adapters, the references are
  the initial adapters, whose output is 0. The same program then runs for the PRM and its
  reference, so that equal weights give exactly equal log-probs.

  Attributes:
    optimizers: of "learner", "prm" and "value", and of the scorers and judges that learn.
    configs, params: of "policy", "prm" and "value", and of models that never learn, by their
      sections.
    frozen: the base parameters if the models are adapters, else None.
    has_...: which further models there are.
    method_state: what methods keep between steps; each device has all of it.
  """
  mesh: jax.sharding.Mesh
  optimizers: dict[str, optimizer.Optimizer]
  configs: dict[str, transformer.DecoderConfig]
  params: dict[str, records.Params]
  frozen: records.Params
  has_reference: bool
  has_kl_reference: bool
  has_prm: bool
  has_value: bool
  method_state: dict[str, dict[str, np.ndarray]] | None
  kl_coef: float = key("kl.coef")
  frozen_dtype: str | None = key("model.frozen_dtype")
  prm_order: str = key("prm.order")
  prm_reference: str = key("prm.reference")
  labels: str | None = key("train_scorer.labels")
  head: str = key("train_scorer.head")
  sampler_every: int = key("rollouts.sync_every")
  offload: bool = key("offload_optimizers")

  def __call__(self) -> records.TrainState:
    return self.place_idle(self._make(self.params, self.frozen))

  def shapes(self) -> records.TrainState:
    """The shapes of the state, with shardings; allocates nothing."""
    state = jax.eval_shape(self._make, self.params, self.frozen)
    return self.place_idle(sharding.shapes(state.replace(method_state=None), self.mesh).replace(
        method_state=sharding.replicate_shapes(state.method_state, self.mesh)))

  def _make(self, params: dict[str, records.Params], frozen: records.Params) -> records.TrainState:
    policy, prm = params["policy"], params["prm"]
    number = lambda x: sharding.place(jnp.float32(x), self.mesh)
    parts = dict(self._make_trained("policy", "learner", policy), kl_coef=number(self.kl_coef),
                 frozen=None if frozen is None else self._copy(frozen))
    if self.has_kl_reference: parts["kl_reference"] = self._copy(policy)
    if self.has_reference: parts["reference"] = self._copy(
        build_models.freeze(policy, self.frozen_dtype))
    if self.has_prm:
      is_language_model = self.labels is None or self.head == "yes_no"
      parts |= self._make_trained("prm", "prm", prm if is_language_model else
                                  value_model.init(self.configs["prm"], prm))
      if self.prm_order == "none": del parts["prm_opt"]
      if self.prm_reference == "self":
        parts["prm_reference"] = self._copy(build_models.freeze(prm, self.frozen_dtype))
    start = lambda name: (value_model.init(self.configs[name], params[name])
                          if host_fields.is_scorer(name) else params[name])
    learning = {name: self._make_trained(name, name, start(name)) for name in self.optimizers
                if name not in ("learner", "prm", "value")}
    if learning:
      parts["scorers"] = {name: trained[name] for name, trained in learning.items()}
      parts["scorers_opt"] = {name: trained[f"{name}_opt"] for name, trained in learning.items()}
    if loaded := {name: x for name, x in params.items()
                  if name not in ("policy", "prm", "value", *learning)}:
      parts["frozen_models"] = {name: self._copy(build_models.freeze(x, self.frozen_dtype))
                                for name, x in loaded.items()}
    if self.has_value:
      parts |= self._make_trained("value", "value",
                                  value_model.init(self.configs["value"], params["value"]))
    if self.sampler_every > 1: parts["sampler"] = self._copy(policy)
    return records.TrainState(
        step=0, method_state=sharding.replicate(self.method_state, self.mesh), **parts)

  def _copy(self, params: records.Params) -> records.Params:
    return sharding.place(params, self.mesh, copies=True)

  def _make_trained(self, name: str, optimizer_name: str, params: records.Params) -> dict[str, Any]:
    """The entries of a model that learns."""
    params = self._copy(params)
    init = self.optimizers[optimizer_name].init
    return {name: params, f"{name}_opt": sharding.compute_sharded(init, params, self.mesh)}

  def place_idle(self, state: records.TrainState) -> records.TrainState:
    """The state, or its shapes, as it is between updates: see `offload_optimizers`."""
    if not self.offload: return state
    return dataclasses.replace(state, **{
        name: sharding.move_to_memory(getattr(state, name), "pinned_host")
        for name in ("policy_opt", "prm_opt", "value_opt", "scorers_opt")})


def initial_state_of(c: keys.Config, methods: methods_lib.Methods, mesh: jax.sharding.Mesh,
                     optimizers: dict[str, optimizer.Optimizer],
                     models: dict[str, tuple[transformer.DecoderConfig, records.Params]],
                     frozen: records.Params, sizes: sizes_lib.Sizes) -> InitialState:
  """The InitialState of a config; `models` is that of `load_models`."""
  has_prm, has_policy_ref = methods.needs("prm_logps_BT"), methods.needs("ref_logps_BT")
  is_asked = c.likelihood.model == "reference" and any(
      methods.needs(f) for f in ("answer_mask_BM", "answer_logps_BM"))
  return options_lib.read_options(
      InitialState, c, mesh=mesh, optimizers=optimizers, frozen=frozen,
      configs={name: config for name, (config, _) in models.items()},
      params={name: params for name, (_, params) in models.items()},
      has_reference=((has_prm and c.prm.reference == "frozen") or is_asked
                     or build_judges.needs_reference(c)
                     or any(x.kind == "implicit" for x in build_models.read_scorers(c).values())
                     or (has_policy_ref and not c.kl.sync_every)),
      has_kl_reference=has_policy_ref and bool(c.kl.sync_every), has_prm=has_prm,
      has_value=methods.needs("values_BT"), method_state=methods.make_state(
          sizes.axes | dict(P=sizes.prompts, G=sizes.group, B=sizes.rows,
                            T=sizes.completion_tokens)))
