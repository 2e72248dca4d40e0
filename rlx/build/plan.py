"""Which fields of a batch are computed for the methods of a config."""
from collections.abc import Iterable
from typing import Any, Callable

from rlx.build import keys
from rlx.build import options as options_lib
from rlx.core import fields
from rlx.stages import methods as methods_lib
from rlx.stages import model_fields


def statistics_of(c: keys.Config, methods: methods_lib.Methods) -> tuple[tuple, ...]:
  """The distribution statistics that methods read.

  Returns:
    ((field, spec), ...) for the policy being updated, and the same for the policy before its
    update.
  """
  declared = methods.declared()
  read = {name for fn in (*methods.readers().values(), methods.auxiliary) if fn
          for name in methods_lib.all_fields(fn)}
  return tuple(statistics(
      declared, [name for name, f in declared.items() if f.where == where and name in read], c)
               for where in ("later", "model"))


def plan_fields(c: keys.Config, methods: methods_lib.Methods) -> list[fields.Field]:
  """The Fields to compute for a batch, see `fields.plan`."""
  declared, readers = methods.declared(), list(_readers(c, methods))
  planned = fields.plan(declared, readers, RESOURCES, options_lib.setting(c))
  if any(f.where == "model" and f.statistic for f in planned):  # The same pass gives it.
    readers.append(fields.Reader("learner", ("old_logps_BT",)))
    planned = fields.plan(declared, readers, RESOURCES, options_lib.setting(c))
  return planned


def _readers(c, methods):
  yield fields.Reader("rlx", ("action_BT", "outcome_B"), ("scores_BE", "demo_B", "rehearsal_BT"))
  for key, fn in methods.readers().items():
    given = () if key == "rollouts.select_completions" else given_by_prm(c, methods)
    yield fields.Reader(key, *_without(fn, (*_given_by_update(c, key), *given)))
  if methods.auxiliary:
    if "self_logps_B" in methods.auxiliary.fields:  # Given by the update's own pass.
      fields.require(model_fields.self_logps_B.field, "learner.auxiliary", options_lib.setting(c))
    yield fields.Reader("learner.auxiliary", *_without(
        methods.auxiliary, {"self_logps_B", *_given_by_update(c, "learner.auxiliary")}))
  if methods.needs("prm_logps_BT"): yield from _prm_readers(c, methods)
  if methods.has_kl_reward: yield fields.Reader("kl", ("old_logps_BT", "ref_logps_BT"))
  if methods.has_kl_loss: yield fields.Reader("kl", ("ref_logps_BT",))
  if c.learner.epochs * c.learner.minibatches > 1:
    yield fields.Reader("learner.minibatches", ("old_logps_BT",))


def plan_prm_fields(c: keys.Config, methods: methods_lib.Methods) -> list[fields.Field]:
  """The Fields that the update of an implicit PRM reads."""
  return fields.plan(methods.declared(), _prm_readers(c, methods), RESOURCES, options_lib.setting(c))


def _prm_readers(c, methods):
  given = given_by_prm(c, methods)
  old = () if given else ("prm_old_logps_BT",)
  return (fields.Reader("prm.loss", *_without(methods.prm, given)),
          fields.Reader("prm", (*old, "prm_ref_logps_BT", "prm_beta_B")))


def given_by_prm(c: keys.Config, methods: methods_lib.Methods) -> tuple[str, ...]:
  """Fields that the PRM's update computes, which saves a forward pass of the PRM.

  With one optimizer step per batch, the log-probs before the update are those of the gradient's
  own forward pass. They can differ from those of the scoring program by rounding: by 3e-8 in
  float32, but by up to 0.01 in bfloat16 without rematerialisation, where XLA keeps intermediate
  values in float32. Then, and with reference="policy", whose log-ratio at equal weights would
  be this rounding, the scoring program computes them.
  """
  is_one = c.prm.order == "single" and c.prm.snapshot and c.prm.epochs * c.prm.minibatches == 1
  is_exact = c.model.dtype == "float32" or c.model.remat != "none"
  if not is_one or not is_exact or c.prm.reference == "policy": return ()
  return () if "prm_old_logps_BT" in methods_lib.all_fields(methods.prm) else (
      "prm_logps_BT", "prm_old_logps_BT")


# What the loop passes to producers of fields.
RESOURCES = ("tokenizer", "rollouts", "prompts", "texts", "group_prompts", "verify", "verify_steps",
             "greedy_outcome", "answer_ids", "passes", "prompt_P")


def field_options(c: keys.Config) -> Callable[[fields.Field], dict[str, Any]]:
  """(Field) -> {keyword: value} of its producer."""
  value = options_lib.setting(c)
  return lambda f: {keyword: value(key) for keyword, key in f.options.items()}


def statistics(declared: dict[str, fields.Field], names: Iterable[str], c: keys.Config) -> tuple:
  """((field, spec), ...) of the named fields that are statistics of a distribution.

  A spec is what models/logps.py computes; an option that is a config key has its value.
  """
  value = options_lib.setting(c)
  return tuple(
      (name, tuple(value(x) if "." in str(x) else x for x in declared[name].statistic))
      for name in names if name in declared and declared[name].statistic)


def _without(fn, names):
  """(required, optional) fields of a method, without these names."""
  every = [f for f in methods_lib.all_fields(fn) if f not in names and f not in TERM]
  required = {f for part in (fn, *fn.whole.values()) for f in part.required}
  return (tuple(f for f in every if f in required), tuple(f for f in every if f not in required))


TERM = ("rewards", "rewards_PG", "rewards_BT")  # What combine.Term adds to the batch.


def _given_by_update(c, key):
  """Fields of a loss that the update itself computes.

  With one optimizer step per batch, the log-probs before the update are those of the update.
  """
  is_single = c.learner.epochs * c.learner.minibatches == 1
  return ("old_logps_BT",) if key.startswith("learner.") and is_single else ()
