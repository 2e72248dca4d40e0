"""The stages of a step that run on devices, from a config: log-probs, rewards, updates."""
import dataclasses
from typing import Any

import jax

from rlx.build import (
    judges as build_judges, keys, methods as build_methods, options as options_lib,
    plan as plan_lib, validation)
from rlx.core import resolve, rng
from rlx.io import tokenizer as tokenizer_io
from rlx.learner import optimizer
from rlx.models import transformer
from rlx.stages import (
    end_step, learner as learner_lib, methods as methods_lib, passes as passes_lib,
    rewards_advantages, score, update_judge, update_policy, update_prm, update_scorers,
    update_value)


def device_stages(c: keys.Config, methods: methods_lib.Methods,
                  models: dict[str, transformer.DecoderConfig], mesh: jax.sharding.Mesh,
                  optimizers: dict[str, optimizer.Optimizer], *,
                  scorers: dict[str, passes_lib.Scorer] | None = None,
                  asked: passes_lib.Scorer | None = None, token_id: int | None = None,
                  learns: str = "policy") -> dict[str, Any]:
  """{field of Run: value} for the stages from log-probs to the end; allocates nothing.

  Args:
    models: {"policy", "prm", "value"}: DecoderConfig.
    mesh: may be abstract.
    scorers, asked: see `models.scorers_of` and `models.find_asked_scorer`.
    token_id, learns: see `find_token_id` and `build`.
  """
  planned = {"policy": plan_lib.plan_fields, "prm": plan_lib.plan_prm_fields}.get(
      learns, lambda c, methods: [])(c, methods)
  early = plan_lib.find_early(c, methods) if learns == "policy" else ()
  scored = plan_lib.plan_fields(c, methods, early) if early else planned
  statistics, old_statistics = plan_lib.find_statistics(c, methods)
  passes = options_lib.read_options(
      passes_lib.Options, c, mesh=mesh, models=models, scorers=scorers or {}, beta=methods.prm_beta,
      statistics=old_statistics, asked_scorer=asked)
  model_of = {name: "policy" if name == "learner" else name for name in optimizers}
  groups = {name: build_methods.find_trained(c, name).replies
            for name in build_judges.list_learning(c)}
  learners = {name: learner_lib.Learner(
      name=model, optimizer=optimizers[name], config=models[model], mesh=mesh,
      group=groups.get(name, c.rollouts.per_prompt),
      **{key: build_methods.find_trained(c, name)[key]
         for key in ("epochs", "minibatches", "microbatches")},
      seed=c.seed, offload=c.offload_optimizers) for name, model in model_of.items()}
  return dict(
      planned=planned, passes=passes,
      score=score.Score(scored, plan_lib.field_options(c, scored), passes),
      update_prm=update_prm_of(c, methods, learners["prm"], asked),
      update_scorers=update_scorers.UpdateScorers({
          name: (name, update_judge_of(c, learners[name])) if name in groups else
          update_scorer_of(c, learners[name]) for name in build_methods.list_updated(c)}),
      rewards_advantages=rewards_advantages_of(c, methods),
      update_value=update_value.UpdateValue(learners["value"], c.value.clip),
      update_policy=update_policy.UpdatePolicy(
          learner=learners["learner"], loss=policy_loss_of(c, methods), statistics=statistics,
          temperature=c.rollouts.decoding.temperature, token_id=token_id),
      end_step=options_lib.read_options(
          end_step.EndStep, c, mesh=mesh, optimizer=optimizers["learner"],
          completions=c.prompts.per_step * c.rollouts.per_prompt))


def update_prm_of(c: keys.Config, methods: methods_lib.Methods, learner: learner_lib.Learner,
                  asked: passes_lib.Scorer | None = None
                  ) -> update_prm.UpdatePrm | update_prm.UpdatePrmHead:
  """The update of a config's PRM: implicit, or with a head."""
  if c.train_scorer.labels:
    part = c.train_scorer
    return update_prm.UpdatePrmHead(
        learner, resolve.bind("losses", part.loss, "train_scorer.loss"), part.balanced, asked,
        part.margins, build_methods.bind_auxiliary(c), part.auxiliary.coef)
  return update_prm.UpdatePrm(methods.prm, learner, order=c.prm.order, snapshot=c.prm.snapshot,
                              uses_own_pass=uses_own_pass(c, methods),
                              starts_equal=c.prm.path is None or c.prm.reference == "self",
                              reads_all=methods.needs("prm_all_logps_BTV"))


def update_scorer_of(c: keys.Config, learner: learner_lib.Learner
                     ) -> tuple[str, update_prm.UpdatePrmHead]:
  """What a scorer learns from beside the policy, and its update: that of a PRM with a head."""
  section = build_methods.find_trained(c, learner.name)
  if section.labels == "altered": learner = dataclasses.replace(learner, group=2)  # A pair.
  loss = resolve.bind("losses", section.loss, f"{learner.name}.online.loss")
  return section.labels, update_prm.UpdatePrmHead(learner, loss, balanced=False)


def update_judge_of(c: keys.Config, learner: learner_lib.Learner) -> update_judge.UpdateJudge:
  """The update of a judge that learns from its replies."""
  part, methods = build_methods.resolve_judging(c, learner.name)
  temperature = build_judges.list_in_process(c)[learner.name]["temperature"]
  return update_judge.UpdateJudge(
      rewards_advantages=rewards_advantages_of(part, methods),
      update=update_policy.UpdatePolicy(learner=learner, loss=policy_loss_of(part, methods),
                                        temperature=temperature),
      balanced=build_methods.find_trained(c, learner.name).balanced)


def uses_own_pass(c: keys.Config, methods: methods_lib.Methods) -> bool:
  """Whether the PRM's update takes the PRM's log-probs from its own forward pass, which saves one.

  With one optimizer step per batch, the log-probs before the update are those of the gradient's
  own forward pass. They can differ from those of the scoring program by rounding: by 3e-8 in
  float32, but by up to 0.01 in bfloat16 without rematerialisation, where XLA keeps intermediate
  values in float32. Then, and with reference="policy", whose log-ratio at equal weights would
  be this rounding, the scoring program computes them.
  """
  has_one_step = (c.prm.order == "single" and c.prm.snapshot
                  and c.prm.epochs * c.prm.minibatches == 1)
  is_exact = c.model.dtype == "float32" or c.model.remat != "none"
  return (has_one_step and is_exact and c.prm.reference != "policy"
          and not methods.needs("prm_all_logps_BTV")  # It gives no whole distributions.
          and "prm_old_logps_BT" not in methods_lib.all_fields(methods.prm))


def rewards_advantages_of(c: keys.Config, methods: methods_lib.Methods
                          ) -> rewards_advantages.RewardsAdvantages:
  """The stage of a config that computes rewards, then advantages."""
  is_whitened = c.advantages.get("whiten", True)
  compares = validation.find_comparing(c, methods) if is_whitened else ()
  return rewards_advantages.RewardsAdvantages(
      methods, whiten=is_whitened, kl_kind=c.kl.kind,
      whiten_signal_only=len(compares) == len(methods.estimators))


def policy_loss_of(c: keys.Config, methods: methods_lib.Methods) -> update_policy.PolicyLoss:
  """The policy's loss of a config."""
  return options_lib.read_options(update_policy.PolicyLoss, c, methods=methods)


def optimizer_of(c: keys.Config, name: str) -> optimizer.Optimizer:
  """AdamW for "learner", "prm", "value" or "sft", for parameters in model.param_dtype."""
  section = build_methods.find_trained(c, name)
  updates = 1 if name == "sft" else section.epochs * section.minibatches
  adamw = optimizer.adamw(**section.optimizer, updates=updates)
  if c.model.param_dtype == "float32" or c.lora.rank: return adamw  # Adapters are float32.
  return optimizer.wrap_for_bfloat16(adamw, rng.key(c.seed, "rounding", rng.number(name)),
                                     param_update=c.model.param_update)


def find_token_id(c: keys.Config, tokenizer: tokenizer_io.Tokenizer) -> int | None:
  """The id of likelihood.token; None if no token is configured.

  Raises:
    ValueError: the token is not in the vocabulary.
  """
  token = c.likelihood.token
  if token is not None and token not in tokenizer.vocabulary:
    raise ValueError(f"likelihood.token={token!r}: a token of the vocabulary.")
  return tokenizer.vocabulary.get(token)
