"""What a config may say: its methods, resolved, and the one place that says no.

Everything here runs before a model is read or anything compiles. A refusal is a
ValueError of one line: key, value found, what is allowed.
"""
import dataclasses
import functools
import inspect
from typing import Callable

import jax

from rlx.advantages import combine
from rlx.core import records
from rlx.core import resolve
from rlx.losses import aggregate
from rlx.losses import divergence
from rlx.losses import policy as policy_losses
from rlx.models import attention
from rlx.models import lora

ORDERS = ("single", "double", "none", "reverse")
REFERENCES = ("frozen", "policy", "self")
FREE = ("rewards", "advantages", "prompts.options", "prompts.columns",
        "sft.fresh")  # Keys inside are checked by who reads them.


@dataclasses.dataclass(frozen=True)
class Methods:
  """The functions a config names, resolved, and what they ask for."""
  rewards: dict                # term -> (coef, fn)
  estimators: dict             # term or "total" -> (gamma of spread, fn)
  policy: Callable
  prm: Callable
  has_kl_reward: bool
  has_kl_loss: bool

  def needs(self, field):
    """Does any reward, estimator or policy loss read this field of Scored?"""
    if field == "policy_ref_logps_BT":
      return self.has_kl_reward or self.has_kl_loss
    fns = [fn for _, fn in self.rewards.values()]
    fns += [fn for _, fn in self.estimators.values()]
    return any(field in fn.fields for fn in fns + [self.policy])


def of(c):
  """Resolves every named method; unknown names and options end here."""
  rewards = {}
  for term, spec in c.rewards.items():
    spec = dict(spec)
    if "coef" not in spec: raise ValueError(f"rewards.{term}.coef is missing.")
    coef = spec.pop("coef")
    rewards[term] = coef, resolve.resolve(
        "rewards", spec, records.Scored, f"rewards.{term}")
  estimators = {}
  for term, spec in c.advantages.items():
    if term == "whiten": continue
    spec = dict(spec)
    gamma = spec.get("gamma", 1.0)
    fn = resolve.lookup("advantages", spec["name"], f"advantages.{term}")
    # Estimators of whole completions know no time: gamma is for their spread.
    if "gamma" not in inspect.signature(fn).parameters: spec.pop("gamma", None)
    estimators[term] = gamma, resolve.resolve(
        "advantages", spec, combine.Term, f"advantages.{term}")
  kl = c.kl.coef != 0.0
  terms = set(rewards) | ({"kl"} if kl and c.kl.place == "reward" else set())
  if set(estimators) != {"total"} and set(estimators) != terms:
    raise ValueError(
        f"advantages has entries {sorted(estimators)}; it needs one for every "
        f"reward term {sorted(terms)}, or `total` alone.")
  return Methods(
      rewards, estimators,
      policy=resolve.resolve("losses", c.learner.loss, records.Scored, "learner.loss"),
      prm=resolve.resolve("losses", c.prm.loss, records.Scored, "prm.loss"),
      has_kl_reward=kl and c.kl.place == "reward",
      has_kl_loss=kl and c.kl.place == "loss")


def check(c, methods):
  """Values and contradictions. One line each; nothing has compiled yet."""
  def refuse(condition, key, allowed):
    if condition:
      value = functools.reduce(getattr, key.split("."), c)
      raise ValueError(f"{key}={value!r}: {allowed}.")
  refuse(c.steps < 0, "steps", "must be >= 0")
  for key in ("prompts.per_step", "prompts.max_tokens",
              "rollouts.per_prompt", "rollouts.max_tokens", "rollouts.chunk",
              "rollouts.bucket", "rollouts.max_draws", "learner.epochs",
              "learner.minibatches", "learner.microbatches", "prm.minibatches",
              "prm.microbatches", "eval.samples"):
    refuse(functools.reduce(getattr, key.split("."), c) < 1, key, "must be >= 1")
  refuse(c.rollouts.decoding.temperature <= 0, "rollouts.decoding.temperature",
         "training samples at a temperature > 0; greedy is for evaluation")
  refuse(not 0 < c.rollouts.decoding.top_p <= 1, "rollouts.decoding.top_p",
         "must be in (0, 1]")
  refuse(not 0 <= c.rollouts.decoding.min_p < 1, "rollouts.decoding.min_p",
         "must be in [0, 1)")
  refuse(c.rollouts.slots is not None and (
      c.rollouts.slots < 1 or c.rollouts.slots % c.rollouts.per_prompt), "rollouts.slots",
         "None, from the device's memory, or a multiple of rollouts.per_prompt="
         f"{c.rollouts.per_prompt}")
  refuse(c.rollouts.oversample < 1, "rollouts.oversample", "must be >= 1")
  refuse(c.rollouts.fill not in ("failed", "error"), "rollouts.fill",
         "failed or error")
  refuse(c.memory_check not in ("error", "warn", "off"), "memory_check",
         "error, warn or off")
  refuse(c.prm.order not in ORDERS, "prm.order", f"one of {ORDERS}")
  refuse(c.prm.reference not in REFERENCES, "prm.reference", f"one of {REFERENCES}")
  refuse(c.kl.place not in ("loss", "reward"), "kl.place", "loss or reward")
  refuse(c.kl.kind not in divergence.KINDS, "kl.kind", f"one of {divergence.KINDS}")
  refuse(c.learner.aggregation not in aggregate.MODES, "learner.aggregation",
         f"one of {aggregate.MODES}")
  forced = policy_losses.AGGREGATION.get(c.learner.loss.name.removeprefix("policy."))
  refuse(forced and c.learner.aggregation != forced, "learner.aggregation",
         f"{c.learner.loss.name} is defined for {forced}")
  refuse(c.model.dtype not in ("float32", "bfloat16"), "model.dtype",
         "float32 or bfloat16")
  refuse(c.model.param_dtype not in ("float32", "bfloat16"), "model.param_dtype",
         "float32 or bfloat16")
  refuse(c.model.frozen_dtype not in (None, c.model.dtype), "model.frozen_dtype",
         f"None or model.dtype={c.model.dtype}; in another the PRM would differ "
         "from its own start")
  refuse(c.model.attention not in attention.KINDS, "model.attention",
         f"one of {attention.KINDS}")
  refuse(c.model.attention == "cudnn" and (
      c.model.dtype != "bfloat16" or jax.default_backend() != "gpu"), "model.attention",
      "blocks; cudnn needs a GPU and model.dtype=bfloat16")
  refuse(c.model.attention == "splash" and set(c.mesh.values()) != {1},
         "model.attention", "blocks; splash runs on one device")
  refuse(c.model.remat not in ("none", "full", "dots"), "model.remat",
         "none, full or dots")
  refuse(c.lora.rank < 0, "lora.rank", "0 trains all parameters, 1 or more adapters")
  refuse(c.lora.rank and c.lora.alpha <= 0, "lora.alpha", "must be > 0")
  refuse(not c.lora.targets or set(c.lora.targets) - set(lora.TARGETS), "lora.targets",
         f"some of {lora.TARGETS}")
  refuse(c.lora.rank and c.prm.path is not None, "prm.path",
         "None with lora.rank: PRM and policy are adapters over one base")
  for name in ("learner", "prm", "value"):
    n = c[name].minibatches
    refuse(c.prompts.per_step % n, f"{name}.minibatches",
           f"must divide prompts.per_step={c.prompts.per_step}")
    groups, parts = c.prompts.per_step // n, c[name].microbatches
    rows = groups * c.rollouts.per_prompt
    refuse(rows % parts, f"{name}.microbatches",
           f"must divide the {rows} rows of a minibatch")
  resolve.bind("rollouts", c.rollouts.keep, "rollouts.keep")
  resolve.bind("prompts.templates", c.prompts.template, "prompts.template")
  asks_groups = any(f.endswith("_PG") for f in methods.prm.fields)
  refuse(asks_groups and (c.prompts.per_step // c.prm.minibatches) % c.prm.microbatches,
         "prm.microbatches", f"{c.prm.loss.name} compares completions of a group "
         "and needs whole groups in a microbatch")
  if c.rollouts.per_prompt == 1:
    lonely = [t for t, (_, fn) in methods.estimators.items()
              if any(f.endswith("_PG") for f in fn.fields)]
    refuse(bool(lonely), "rollouts.per_prompt",
           f"advantages.{lonely[0] if lonely else ''} compares completions of a "
           "group; use >= 2, or an estimator such as batch.reinforce")
  steps = [t for t, s in c.rewards.items() if dict(s).get("granularity") == "step"]
  refuse(bool(steps) and c.rollouts.step_separator is None,
         "rollouts.step_separator",
         f"rewards.{steps[0] if steps else ''}.granularity='step' needs it")
  refuse(c.prm.order != "none" and not methods.needs("prm_logps_BT") and
         c.prm.path is not None, "prm.path",
         "no reward or estimator reads the PRM; drop the path or add a process reward")


def check_keys(config, known):
  """Refuses keys that `known` does not have: they would be read by nobody."""
  def walk(c, b, prefix):
    for key in c:
      path = prefix + key
      if path in FREE: continue
      if key not in b:
        raise ValueError(f"{path}: no such key; there are {sorted(b)}.")
      is_method = hasattr(c[key], "keys") and "name" in c[key]
      if hasattr(c[key], "keys") and not is_method:
        walk(c[key], b[key], path + ".")
  walk(config, known, "")
