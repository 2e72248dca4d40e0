"""The stages of a step that run on devices, from a config: log-probs, rewards, updates."""
import dataclasses
from typing import Any, Callable

import jax

from rlx.build import keys
from rlx.build import options as options_lib
from rlx.build import plan as plan_lib
from rlx.build import validation
from rlx.core import rng
from rlx.io import tokenizer as tokenizer_io
from rlx.learner import optimizer
from rlx.models import transformer
from rlx.stages import annotate
from rlx.stages import end_step as end_step_lib
from rlx.stages import learner as learner_lib
from rlx.stages import methods as methods_lib
from rlx.stages import passes as passes_lib
from rlx.stages import rewards_advantages
from rlx.stages import update_policy
from rlx.stages import update_prm
from rlx.stages import update_value


@dataclasses.dataclass(frozen=True)
class Updates:
  """The updates of all models, and what else changes between RL iterations."""
  prm: Callable                # (state, Placed) -> (state, Batch, metrics)
  value: Callable              # (state, Placed, step) -> (state, metrics)
  policy: Callable             # (state, Placed, step) -> (state, Batch, metrics)
  end_step: Callable           # (state, metrics) -> the state of the next step
  learners: dict[str, learner_lib.Learner]  # {"prm", "value", "learner"}
  programs: dict[str, jax.stages.Wrapped]  # {"prm", "value", "learner"}: the jitted optimizer step


def device_stages(c: keys.Config, methods: methods_lib.Methods,
                  models: dict[str, transformer.DecoderConfig], mesh: jax.sharding.Mesh,
                  optimizers: dict[str, optimizer.Optimizer], *, token_id: int | None = None,
                  learns: str = "policy") -> dict[str, Any]:
  """{field of Run: value} for the stages from log-probs to the update; allocates nothing.

  Args:
    models: {"policy", "prm"}: DecoderConfig.
    mesh: may be abstract.
    token_id, learns: see `token_id` and `build`.
  """
  planned = {"policy": plan_lib.plan_fields, "prm": plan_lib.plan_prm_fields}.get(
      learns, lambda c, methods: [])(c, methods)
  now, before = plan_lib.statistics_of(c, methods)
  passes = options_lib.read_options(
      passes_lib.Options, c, mesh=mesh, models=models, beta=methods.prm_beta, statistics=before,
      head_parts=None if c.train_prm.labels is None else c.prm.microbatches)
  return dict(planned=planned, passes=passes,
              score=annotate.scorer(planned, plan_lib.field_options(c), passes),
              advantage=advantage_of(c, methods),
              update=updates_of(c, methods, models, mesh, optimizers, now, token_id))


def updates_of(c: keys.Config, methods: methods_lib.Methods,
               models: dict[str, transformer.DecoderConfig], mesh: jax.sharding.Mesh,
               optimizers: dict[str, optimizer.Optimizer], statistics_: tuple,
               token_id: int | None) -> Updates:
  """The Updates of a config; for the arguments see `device_stages`."""
  learners = {name: learner_lib.Learner(
      config=models["prm" if name == "prm" else "policy"], optimizer=optimizers[name],
      mesh=mesh, group=c.rollouts.per_prompt, epochs=c[name].epochs,
      minibatches=c[name].minibatches, microbatches=c[name].microbatches, seed=c.seed,
      offload=c.offload_optimizers)
              for name in optimizers}
  prm, prm_step = update_prm.prm_head(learners["prm"]) if c.train_prm.labels else update_prm.prm(
      methods.prm, learners["prm"], order=c.prm.order, snapshot=c.prm.snapshot,
      starts_equal=c.prm.path is None or c.prm.reference == "self",
      parts=c.learner.microbatches)
  value, value_step = update_value.value(learners["value"], clip=c.value.clip)
  policy, policy_step = update_policy.policy(
      methods, learners["learner"], policy_loss_options(c),
      temperature=c.rollouts.decoding.temperature, statistics=statistics_, token_id=token_id)
  moves = options_lib.read_options(end_step_lib.Moves, c, completions=c.prompts.per_step * c.rollouts.per_prompt)
  return Updates(prm=prm, value=value, policy=policy, learners=learners,
                 end_step=end_step_lib.end_step(moves, mesh, optimizers["learner"]),
                 programs=dict(prm=prm_step, value=value_step, learner=policy_step))


def advantage_of(c: keys.Config, methods: methods_lib.Methods) -> Callable:
  """Returns this config's (state, Batch) -> (Batch, metrics): rewards, then advantages."""
  compares = validation.compares(c, methods) if c.advantages.whiten else ()
  return rewards_advantages.make(methods, whiten=c.advantages.whiten, kl_kind=c.kl.kind,
                        whiten_signal_only=len(compares) == len(methods.estimators))


def policy_loss_options(c: keys.Config) -> update_policy.PolicyLoss:
  """update.PolicyLoss of this config."""
  return options_lib.read_options(update_policy.PolicyLoss, c)


def optimizer_of(c: keys.Config, name: str) -> optimizer.Optimizer:
  """AdamW for "learner", "prm", "value" or "sft", for parameters in model.param_dtype."""
  updates = 1 if name == "sft" else c[name].epochs * c[name].minibatches
  adamw = optimizer.adamw(**c[name].optimizer, updates=updates)
  if c.model.param_dtype == "float32" or c.lora.rank: return adamw  # Adapters are float32.
  return optimizer.over_bfloat16(adamw, rng.key(c.seed, "rounding", rng.number(name)),
                                 param_update=c.model.param_update)


def token_id(c: keys.Config, tokenizer: tokenizer_io.Tokenizer) -> int | None:
  """The id of likelihood.token; None if no token is configured.

  Raises:
    ValueError: the token is not in the vocabulary.
  """
  token = c.likelihood.token
  if token is not None and token not in tokenizer.vocabulary:
    raise ValueError(f"likelihood.token={token!r}: a token of the vocabulary.")
  return tokenizer.vocabulary.get(token)
