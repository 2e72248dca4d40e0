"""The methods that a config names, resolved to functions; validation.py checks them."""
import inspect
from collections.abc import Mapping

from rlx.build import judges as build_judges, keys
from rlx.core import resolve, schedule
from rlx.stages import host_fields, methods as methods_lib


def resolve_methods(c: keys.Config) -> methods_lib.Methods:
  """Resolves all methods that a config names.

  Raises:
    ValueError: a name or an option is unknown, or a term lacks its coefficient or estimator.
  """
  rewards = {}
  for term, spec in c.rewards.items():
    spec = dict(spec)
    if "coef" not in spec: raise ValueError(f"rewards.{term}.coef is missing.")
    coef = bind_schedule(f"rewards.{term}", spec.pop("coef"), spec)
    for option in schedule.OPTIONS: spec.pop(option, None)
    rewards[term] = coef, resolve.resolve("rewards", spec, f"rewards.{term}")
  estimators = {}
  for term, spec in c.advantages.items():
    if term == "whiten": continue
    spec = dict(spec)
    gamma = spec.get("gamma", 1.0)
    fn = resolve.lookup("advantages", spec["name"], f"advantages.{term}")
    # Estimators of whole completions take no gamma; it then only spreads their estimates.
    if "gamma" not in inspect.signature(fn).parameters: spec.pop("gamma", None)
    estimators[term] = gamma, resolve.resolve("advantages", spec, f"advantages.{term}")
  kl = c.kl.coef != 0.0
  terms = set(rewards) | ({"kl"} if kl and c.kl.place == "reward" else set())
  if set(estimators) != {"total"} and set(estimators) != terms:
    raise ValueError(
        f"advantages has entries {sorted(estimators)}; it needs one for every "
        f"reward term {sorted(terms)}, or `total` alone.")
  def optional(spec: Mapping, key: str) -> resolve.Method | None:
    return None if spec["name"] is None else resolve.resolve("losses", spec, key)
  if "coef" not in c.learner.auxiliary: raise ValueError("learner.auxiliary.coef is missing.")
  auxiliary = {k: v for k, v in c.learner.auxiliary.items() if k != "coef"}
  return methods_lib.Methods(
      rewards, estimators, policy=resolve.resolve("losses", c.learner.loss, "learner.loss"),
      rollout_correction=optional(c.learner.rollout_correction, "learner.rollout_correction"),
      token_weight=optional(c.learner.token_weight, "learner.token_weight"),
      auxiliary=optional(auxiliary, "learner.auxiliary"),
      prm=resolve.resolve("losses", c.prm.loss, "prm.loss"),
      prm_beta=bind_schedule("prm.beta_schedule", c.prm.beta, c.prm.beta_schedule),
      select_completions=resolve.resolve("rollouts", c.rollouts.select_completions,
                                         "rollouts.select_completions"),
      filter_groups=resolve.resolve("rollouts", c.rollouts.filter_groups, "rollouts.filter_groups"),
      reward_std_filter=None if c.learner.reward_std_filter.name is None else resolve.resolve(
          "advantages", c.learner.reward_std_filter, "learner.reward_std_filter", n_given=3),
      budget=_budget(c), anneal=_anneal(c),
      has_kl_reward=kl and c.kl.place == "reward", has_kl_loss=kl and c.kl.place == "loss",
      scored=_find_scored(c))


def _find_scored(c: keys.Config) -> frozenset[str]:
  """The fields of verifiers that scorers compute, see stages/scorer_fields.py."""
  is_scorer, scores = host_fields.is_scorer, c.verifier.scores
  return frozenset([
      *["scores_BE"] * any(map(is_scorer, scores)),
      *["prefix_scores_BT"] * any(map(is_scorer, scores[:1])),
      *["step_scores_BT"] * is_scorer(c.verifier.steps),
      *["span_scores_BT"] * is_scorer(c.verifier.spans)])


def list_trained(c: keys.Config) -> list[str]:
  """Sections of the models that a step updates: learner, prm or value if read, and others."""
  methods = resolve_methods(c)
  is_read = {"prm": c.prm.order != "none" and methods.needs("prm_logps_BT"),
             "value": methods.needs("values_BT")}
  return ["learner", *(name for name, read in is_read.items() if read), *list_updated(c)]


def list_updated(c: keys.Config) -> list[str]:
  """Sections of the scorers and judges that learn beside the policy."""
  return [*list_online_scorers(c), *build_judges.list_learning(c)]


def list_online_scorers(c: keys.Config) -> list[str]:
  """Sections of the scorers that learn beside the policy."""
  return [f"{host_fields.SCORERS}{name}" for name in sorted(c.scorers)
          if find_trained(c, f"{host_fields.SCORERS}{name}").labels is not None]


def find_trained(c: keys.Config, name: str) -> keys.Config:
  """How the model of a section learns: c[name], or its `online` with the defaults."""
  if name in c: return c[name]
  if not host_fields.is_scorer(name): return build_judges.find_online(c, name)
  online = keys.base.named_section("scorers").online
  online.update(c.scorers[name.removeprefix(host_fields.SCORERS)].get("online", {}))
  return online


def name_trained(c: keys.Config, name: str) -> str:
  """The key of `find_trained`."""
  return name if name in c else f"{name}.online"


def resolve_judging(c: keys.Config, section: str) -> tuple[keys.Config, methods_lib.Methods]:
  """(config, methods) of a policy that learns as the judge of a section does.

  Its prompts are the requests; the reward is 1 for a right verdict.

  Raises:
    ValueError: as `resolve_methods`, with the keys of the judge.
  """
  online, part = build_judges.find_online(c, section), c.copy_and_resolve_references()
  off = dict(name=None)
  with part.unlocked():
    part.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
    part.advantages = dict(outcome=online.advantages.to_dict(), whiten=False)
    part.learner.loss, part.learner.auxiliary = online.loss.to_dict(), dict(off, coef=0.0)
    part.learner.rollout_correction = part.learner.token_weight = off
    part.learner.reward_std_filter, part.learner.entropy_coef, part.kl.coef = off, 0.0, 0.0
    part.rollouts.max_tokens = build_judges.list_in_process(c)[section]["max_tokens"]
  try:
    return part, resolve_methods(part)
  except ValueError as e:
    message = str(e)
    for key, own in (("advantages.outcome", "advantages"), ("learner.loss", "loss")):
      if message.startswith(key):
        raise ValueError(f"{section}.online.{own}{message.removeprefix(key)}") from None
    raise


def bind_schedule(key: str, peak: float, section: Mapping) -> schedule.Schedule:
  """The Schedule of a peak value by a section's options of core/schedule.py."""
  try:
    return schedule.Schedule(peak, **{k: section[k] for k in schedule.OPTIONS if k in section})
  except ValueError as e:
    raise ValueError(f"{key}.{e}") from None


def bind_curation(c: keys.Config) -> resolve.UserFunction | None:
  """The function of train_scorer.curate: (chosen_NM, rejected_NM) -> keep_N; None: there is none.

  Raises:
    ValueError: as `resolve.bind`.
  """
  if c.train_scorer.curate.name is None: return None
  return resolve.bind("evals", c.train_scorer.curate, "train_scorer.curate", n_given=2)


def bind_mutation(c: keys.Config) -> resolve.UserFunction:
  """The function of train_scorer.mutate: (line, text, random) -> line or None.

  Raises:
    ValueError: as `resolve.bind`.
  """
  spec = {name: x for name, x in c.train_scorer.mutate.items() if name != "copies"}
  return resolve.bind("evals", spec, "train_scorer.mutate", n_given=3)


def bind_auxiliary(c: keys.Config) -> resolve.UserFunction | None:
  """The function of train_scorer.auxiliary, a loss of pairs; None: there is none.

  Raises:
    ValueError: as `resolve.bind`.
  """
  spec = {name: x for name, x in c.train_scorer.auxiliary.items() if name != "coef"}
  if spec["name"] is None: return None
  return resolve.bind("losses", spec, "train_scorer.auxiliary")


def _anneal(c: keys.Config) -> methods_lib.Anneal:
  fn = None if c.rollouts.anneal.name is None else resolve.bind(
      "rollouts", c.rollouts.anneal, "rollouts.anneal", n_given=2)
  return methods_lib.Anneal(fn, c.rollouts.max_tokens)


def _budget(c: keys.Config) -> methods_lib.Budget | None:
  if c.rollouts.budget.name is None: return None
  options = {k: v for k, v in c.rollouts.budget.items() if k != "first"}
  return methods_lib.Budget(resolve.bind("rollouts", options, "rollouts.budget", n_given=3),
                            c.rollouts.budget.first, c.rollouts.per_prompt)
