"""Which fields of a batch are computed for the methods of a config."""
from collections.abc import Iterator, Sequence
from typing import Any

from rlx.build import (
    judges as build_judges, keys, methods as build_methods, options as options_lib)
from rlx.core import fields, resolve
from rlx.stages import methods as methods_lib, model_fields, update_scorers


FILTER_GROUPS, SELECT_COMPLETIONS = "rollouts.filter_groups", "rollouts.select_completions"


def plan_fields(c: keys.Config, methods: methods_lib.Methods,
                known: Sequence[str] = ()) -> list[fields.Field]:
  """The Fields to compute for a batch, see `fields.plan`; those of `known` are there already."""
  declared, readers = methods.list_fields(), list(_readers(c, methods))
  planned = fields.plan(declared, readers, (*RESOURCES, *known), options_lib.setting(c))
  if any(f.where == "model" and f.statistic for f in planned):  # The same pass gives it.
    readers.append(fields.Reader("learner", ("old_logps_BT",)))
    planned = fields.plan(declared, readers, (*RESOURCES, *known), options_lib.setting(c))
  return planned


def _readers(c: keys.Config, methods: methods_lib.Methods) -> Iterator[fields.Reader]:
  logged = [f.name for f in methods.list_fields().values() if f.is_logged]
  yield fields.Reader("rlx", ("action_BT", "outcome_B"),
                      ("scores_BE", *logged, "demo_B", "rehearsal_BT"))
  for key, fn in methods.readers().items(): yield _reader(key, fn)
  if methods.auxiliary:
    if "self_logps_B" in methods.auxiliary.fields:
      fields.require(model_fields.self_logps_B.field, "learner.auxiliary", options_lib.setting(c))
    yield _reader("learner.auxiliary", methods.auxiliary)
  if methods.needs("prm_logps_BT"): yield from _prm_readers(methods)
  if judges := build_judges.list_learning(c):
    yield fields.Reader(f"{judges[0]}.online.replies", ("judge_replies",))
  for name in build_methods.list_online_scorers(c):
    labels = build_methods.find_trained(c, name).labels
    reads_reference = c.scorers[name.partition(".")[2]].get("reference") is not None
    yield fields.Reader(f"{name}.online.labels", (
        *["altered_rows"] * (labels == "altered"),
        *[update_scorers.REFERENCE_ROWS[labels]] * reads_reference))
  if methods.has_kl_reward: yield fields.Reader("kl", ("old_logps_BT", "ref_logps_BT"))
  if methods.has_kl_loss: yield fields.Reader("kl", ("ref_logps_BT",))


def plan_filter(c: keys.Config, methods: methods_lib.Methods, key: str) -> list[fields.Field]:
  """The Fields that FILTER_GROUPS or SELECT_COMPLETIONS reads.

  Raises:
    ValueError: it reads what is computed later, or what is of the prompts of a batch.
  """
  fn = methods.readers()[key]
  reader = fields.Reader(key, tuple(f for f in fn.fields if f in fn.required),
                         tuple(f for f in fn.fields if f not in fn.required))
  resources = [r for r in RESOURCES if r != "greedy_outcome" or key == SELECT_COMPLETIONS]
  planned = fields.plan(methods.list_fields(), [reader], resources, options_lib.setting(c))
  if late := [f.name for f in planned if f.where == "later"]:
    raise ValueError(f"{key}.name={options_lib.setting(c)(key).name!r}: one that does not read "
                     f"{late[0]}, which is computed after completions are selected.")
  return planned


def find_early(c: keys.Config, methods: methods_lib.Methods) -> tuple[str, ...]:
  """Names of the columns that models have computed for filters before a batch is placed."""
  # Stored completions, and those of derived prompts, join the batch without columns of the filter.
  is_joined = c.rollouts.rehearsal or c.prompts.derived
  keys_ = (SELECT_COMPLETIONS,) if is_joined else (FILTER_GROUPS, SELECT_COMPLETIONS)
  return tuple(f.name for key in keys_ for f in plan_filter(c, methods, key)
               if f.where == "model" and f.axes)


def plan_prm_fields(c: keys.Config, methods: methods_lib.Methods) -> list[fields.Field]:
  """The Fields that the update of an implicit PRM reads."""
  return fields.plan(methods.list_fields(), _prm_readers(methods), RESOURCES,
                     options_lib.setting(c))


def _prm_readers(methods: methods_lib.Methods) -> tuple[fields.Reader, fields.Reader]:
  return (_reader("prm.loss", methods.prm),
          fields.Reader("prm", ("prm_ref_logps_BT", "prm_beta_B")))


def _reader(key: str, fn: resolve.Method) -> fields.Reader:
  """The Reader of a method; of a loss, without what the policy's update gives it."""
  given = set(TERM)
  if key.startswith("learner."): given.add("old_logps_BT")
  if key == "learner.auxiliary": given.add("self_logps_B")
  # Sorted: all processes compute them in one order.
  read = [f for f in sorted(methods_lib.all_fields(fn)) if f not in given]
  required = {f for part in (fn, *fn.whole.values()) for f in part.required}
  return fields.Reader(key, tuple(f for f in read if f in required),
                       tuple(f for f in read if f not in required))


# What the loop passes to producers of fields.
RESOURCES = ("tokenizer", "rollouts", "prompts", "texts", "group_prompts", "verify", "verify_lists",
             "collect_replies", "greedy_outcome", "answer_ids", "hinted_ids", "passes", "prompt_P")
TERM = ("rewards_PG", "rewards_BT")  # What combine.with_rewards adds to the batch.


def field_options(c: keys.Config, planned: list[fields.Field]) -> dict[str, dict[str, Any]]:
  """{field: {keyword: value}} of the producers that have options."""
  value = options_lib.setting(c)
  return {f.name: {keyword: value(key) for keyword, key in f.options.items()}
          for f in planned if f.options}


def find_statistics(c: keys.Config, methods: methods_lib.Methods) -> tuple[tuple, tuple]:
  """The distribution statistics that methods read.

  Returns:
    ((field, spec), ...) for the policy being updated, and the same for the policy before its
    update. A spec is what models/logps.py computes; an option that is a config key has its value.
  """
  value, declared = options_lib.setting(c), methods.list_fields()
  read = {name for fn in (*methods.readers().values(), methods.auxiliary) if fn
          for name in methods_lib.all_fields(fn)}
  def find(where: str) -> tuple:
    return tuple(
        (name, tuple(value(x) if "." in str(x) else x for x in f.statistic))
        for name, f in declared.items() if f.statistic and f.where == where and name in read)
  return find("later"), find("model")
