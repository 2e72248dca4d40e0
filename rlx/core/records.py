"""The records that travel between stages. There are five.

  Prompt     one question with what its verifier needs (host)
  Rollouts   trajectories: prompts, and what the policy drew and read after them
  Batch      their fields, by name: what methods read
  Weighted   a mean kept as sum and weight
  TrainState everything that learning changes
"""
import dataclasses
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import fields
from rlx.core.fields import Field

Params = Any  # A tree of arrays.

# How a completion, or the last action of an episode, ended; Rollouts.finish_B. "environment": the
# environment failed, not because of the action, so that the outcome is unknown.
FINISH = ("length", "eos", "stop", "environment")
# Why a row does not learn; Batch.excluded_B. The verdicts of such rows stay what the verifier
# said. "unknown" (a verifier could not tell) and "empty" (no token was drawn) follow from other
# fields and are never in excluded_B: they are only counted.
EXCLUDED = ("", "unknown", "empty", "filtered", "thinned", "not_drawn", "stored")
# What verifiers say beside the verdict; a row with an unknown number, NaN, does not learn.
_JUDGED = ("scores_BE", "items_BI", "span_scores_BT", "step_rewards_BTZ")


def _numpy_of(x):
  """numpy for an array on the host, so that no device computes with it; else jax.numpy."""
  return np if isinstance(x, np.ndarray) else jnp


@dataclasses.dataclass(frozen=True)
class Prompt:
  """One question. `id` is unique within its data set and stable across runs."""
  id: str
  text: str                  # the question, before any template; of a chat its last user turn
  answer: str = ""           # what the verifier compares with
  verifier: str = ""         # import path below rlx/verifiers: "math_answer.boxed"
  meta: dict = dataclasses.field(default_factory=dict)  # other data for the verifier
  messages: tuple[dict, ...] = ()  # the question as a chat: {"role", "content"}
  answers: tuple[str, ...] = ()    # all that are right, where there are several
  tools: tuple[dict, ...] = ()     # that the chat template describes
  is_public: bool = False          # of a published set: dropped if it cannot be judged
  source: str = ""           # its name in prompts.mixture or eval.sets
  max_tokens: int | None = None    # of a completion; None: the limit of the run
  request: str = ""          # asked in place of the text, which verifiers read; "": the text is

  @property
  def asked(self):
    """The question as templates put it to the model."""
    return self.request or self.text

  def repeat(self, i):
    """The same under another id: its completions are drawn with other keys."""
    return dataclasses.replace(self, id=f"{self.id}/again{i}")


@dataclasses.dataclass(frozen=True)
class Dropped:
  """A row of a data set that is no Prompt, and why: "proofs", of which there are n."""
  id: str
  reason: str


class Rollouts(flax.struct.PyTreeNode):
  """P*G trajectories: [left padding | prompt | what came after it | right padding].

  A trajectory is a prompt and then segments: actions, drawn by the policy, and
  observations, which it read (results of tools, words of a user). Where there is one
  action, the completion, turn_BT is None.
  """
  tokens_BS: jax.Array         # int32
  prompt_len_B: jax.Array      # int32, tokens of the prompt
  completion_len_B: jax.Array  # int32, tokens after the prompt, EOS and observations included
  sampler_logps_BT: jax.Array  # float32, of what the sampler drew from, 0 on other tokens
  finish_B: jax.Array          # int32, index into FINISH
  prompt_P: jax.Array | None   # uint32, rng.number(prompt id): groups stay traceable
  turn_BT: jax.Array | None = None  # int32, 0, 1, ... the action of a token, -1: it was read
  # float32, the environment's reward of an action on its last token, NaN: there is none
  turn_rewards_BT: jax.Array | None = None
  verdict_B: jax.Array | None = None  # float32, the environment's of an episode, NaN: there is none
  # int32, ids of the tokens that could be drawn and -1; only -1: all could. None: all, everywhere.
  kept_BTK: jax.Array | None = None

  def rows(self):
    """What forward passes read, without fields per prompt, so that any rows can be split off."""
    return self.replace(prompt_P=None, turn_rewards_BT=None, verdict_B=None)

  @property
  def prompt_width(self):
    """X, the padded width of the prompts."""
    return self.tokens_BS.shape[1] - self.sampler_logps_BT.shape[1]

  @property
  def completions_BT(self):
    return self.tokens_BS[:, self.prompt_width:]

  @property
  def action_BT(self):
    """True on tokens that the policy drew, EOS included."""
    return self.mask_BT if self.turn_BT is None else self.mask_BT & (self.turn_BT >= 0)

  @property
  def mask_BT(self):
    """True on the tokens after the prompt, EOS and observations included."""
    columns_1T = _numpy_of(self.tokens_BS).arange(self.sampler_logps_BT.shape[1])[None, :]
    return columns_1T < self.completion_len_B[:, None]

  @property
  def _from_start_BS(self):
    """Position of each token in its own sequence; below 0 on left padding."""
    start_B1 = (self.prompt_width - self.prompt_len_B)[:, None]
    return jnp.arange(self.tokens_BS.shape[1])[None, :] - start_B1

  @property
  def positions_BS(self):
    """Position of each token in its own sequence; 0 on left padding."""
    return jnp.maximum(self._from_start_BS, 0)

  @property
  def valid_BS(self):
    """True on prompt and completion tokens."""
    length_B1 = (self.prompt_len_B + self.completion_len_B)[:, None]
    return (self._from_start_BS >= 0) & (self._from_start_BS < length_B1)


# What the rollouts and the verifiers give, and what stages after the forward passes set.
FIELDS = (
    Field("action_BT", bool, "Tokens that the policy drew, EOS included."),
    Field("turn_BT", np.int32, "Number of the action a token belongs to; -1 on tokens it read.",
          needs={"environment.name": None}),
    Field("turn_rewards_BT", np.float32, "The environment's reward of an action, on its last "
          "token; NaN: none.", needs={"environment.name": None}),
    Field("reward_B", np.float32, "What the verifier or reward function returned; NaN: unknown."),
    Field("outcome_B", np.float32, "Verdict: reward_B clipped to [0, 1]; NaN: unknown."),
    Field("excluded_B", np.int8, "Index into EXCLUDED: why a row does not learn."),
    Field("learn_B", bool, "Rows that give a gradient or a baseline."),
    Field("learn_BT", bool, "Tokens that give a gradient: drawn by the policy, in such a row."),
    Field("scores_B", np.float32, "Scores of the first verifier or scorer in verifier.scores.",
          reads=("scores_BE",), needs={"verifier.scores": ()}),
    Field("lengths_B", np.int32, "Tokens that the policy drew."),
    Field("sampler_logps_BT", np.float32, "Log-probs of what the sampler drew from."),
    Field("finish_B", np.int32, "Index into FINISH: how the completion ended."),
    Field("prm_logps_BT", np.float32, "log pi_phi, at temperature 1; differentiable in the PRM's "
          "loss.", where="later"),
    Field("prm_old_logps_BT", np.float32, "log pi_phi before the PRM's update.", where="later"),
    Field("prm_all_logps_BTV", np.float32, "log pi_phi of all tokens of the vocabulary, at "
          "temperature 1: after the PRM's update with prm.order=double, else before it.",
          where="later"),
    Field("advantages_BT", np.float32, "Advantage of each token.", where="later"),
    Field("old_values_BT", np.float32, "The value model before its update.", where="later"),
    Field("returns_BT", np.float32, "Targets of the value model.", where="later"),
    Field("logps_BT", np.float32, "The policy being updated, of what was drawn from; "
          "differentiable.", where="later"),
    Field("entropy_BT", np.float32, "Entropy of what was drawn from, under the policy being "
          "updated.", where="later"),
    Field("top_logps_BTK", np.float32, "Log-probs of the K most likely tokens, in order; "
          "differentiable.", where="later", needs={"distribution.top": 0},
          statistic=("top", "distribution.top")),
    Field("all_logps_BTV", np.float32, "Log-probs of all tokens of the vocabulary; "
          "differentiable.", where="later", statistic=("all",)),
    Field("mean_logps_BT", np.float32, "Mean log-prob of all tokens of the vocabulary; "
          "differentiable.", where="later", statistic=("mean",)))
GIVEN = tuple(f for f in FIELDS if f.where == "given")
DERIVED = ("learn_B", "learn_BT", "lengths_B", "scores_B")  # Properties, not columns.


@jax.tree_util.register_pytree_with_keys_class
class Batch:
  """Completions with every field that a reward, estimator or loss asks for by name.

    batch.outcome_B          a column
    batch.outcome_PG         the same by prompt: [P, G] instead of [B]
    batch.prm_beta           the first row of a column prm_beta_B that is the same in all
    batch.learn_B, .learn_BT, .lengths_B, .scores_B     what follows from columns
    batch.replace(outcome_B=x), getattr(batch, name, None)  None stands for "there is none"

  `group` is G, the completions of a prompt. Which columns there are is the result of
  `fields.plan`; asking for another is an AttributeError that lists them.
  """

  def __init__(self, group=1, **columns):
    self.group = group
    self.columns = {name: x for name, x in columns.items() if x is not None}

  def replace(self, **columns):
    """A batch with these columns added or replaced; None removes one."""
    return Batch(self.group, **{**self.columns, **columns})

  def view(self, values, name):
    """What a name stands for where `values` has the columns: outcome_PG, learn_B, prm_beta, ..."""
    columns = {k: x for k, x in values.items() if fields.axes_of(k)}
    return getattr(Batch(self.group, **columns), name)

  def __contains__(self, name):
    name = fields.column(name)
    return name in self.columns or name in ("learn_B", "learn_BT", "lengths_B") or (
        name == "scores_B" and "scores_BE" in self.columns) or f"{name}_B" in self.columns

  def __getattr__(self, name):
    columns = self.__dict__.get("columns", {})
    if name in columns: return columns[name]
    if name.endswith("_PG") and name in self:
      return getattr(self, fields.column(name)).reshape(-1, self.group)
    if f"{name}_B" in columns: return columns[f"{name}_B"][0]
    raise AttributeError(f"The batch has no {name}; it has {sorted(columns)}.")

  @property
  def learn_B(self):
    """Rows that give a gradient or a baseline: all verdicts known, not empty, not excluded."""
    xp = _numpy_of(self.action_BT)
    learn_B = ~xp.isnan(self.outcome_B) & xp.any(self.action_BT, axis=1)
    for x in (self.columns[name] for name in _JUDGED if name in self.columns):
      learn_B = learn_B & ~xp.any(xp.isnan(x), axis=tuple(range(1, x.ndim)))
    return learn_B & (self.excluded_B == 0) if "excluded_B" in self.columns else learn_B

  @property
  def learn_BT(self):
    """Tokens that give a gradient: drawn by the policy, in a row of learn_B."""
    return self.action_BT & self.learn_B[:, None]

  @property
  def lengths_B(self):
    """Tokens that the policy drew."""
    return self.action_BT.sum(axis=1)

  @property
  def scores_B(self):
    """Scores of the first verifier in verifier.scores."""
    return self.scores_BE[:, 0]

  def tree_flatten_with_keys(self):
    names = tuple(sorted(self.columns))
    return ([(jax.tree_util.GetAttrKey(n), self.columns[n]) for n in names], (names, self.group))

  @classmethod
  def tree_unflatten(cls, aux, leaves):
    names, group = aux
    batch = cls(group)
    batch.columns = dict(zip(names, leaves))
    return batch


class Weighted(flax.struct.PyTreeNode):
  """A mean kept as (total, weight), so microbatches and devices add up exactly.

  weight 0 means there is nothing to divide by: a plain sum, or an empty batch.
  """
  total: jax.Array
  weight: jax.Array

  def __add__(self, other):
    return Weighted(self.total + other.total, self.weight + other.weight)

  def mean(self):
    return self.total / jnp.where(self.weight > 0, self.weight, 1)


class TrainState(flax.struct.PyTreeNode):
  """The models and optimizer states that training changes, and their references."""
  step: Any                    # int, RL iterations done
  policy: Params
  policy_opt: Any
  reference: Params = None     # the initial policy, frozen; None if nothing reads it
  kl_reference: Params = None  # the policy's reference if it is updated (kl.sync_every)
  prm: Params = None
  prm_opt: Any = None
  prm_reference: Params = None  # the initial PRM, frozen, if the PRM is its own reference
  frozen_models: Any = None    # {section of the config that names one: parameters}
  value: Params = None
  value_opt: Any = None
  scorers: Any = None          # {section: parameters} of the scorers that learn
  scorers_opt: Any = None
  kl_coef: Any = None          # adaptive KL coefficient, if one is used
  sampler: Params = None       # older copy of the policy that samples (rollouts.sync_every)
  method_state: Any = None     # {config key: {name: what the method keeps between steps}}
  frozen: Params = None        # base parameters if the models above are adapters, else None

  @property
  def sampled_from(self):
    """The name of the model that completions are drawn from."""
    return "policy" if self.sampler is None else "sampler"

  def join_params(self, name):
    """The parameters of a model; adapters are joined with the base parameters.

    Args:
      name: a field, or a key of frozen_models or scorers.
    """
    for loaded in (self.frozen_models or {}, self.scorers or {}):
      if name in loaded: return loaded[name]
    return join(self.frozen, getattr(self, name))

  def get_trained(self, name):
    """(parameters, optimizer state) of a model that learns: a field, or a key of scorers."""
    if name in (self.scorers or {}): return self.scorers[name], self.scorers_opt[name]
    return getattr(self, name), getattr(self, f"{name}_opt")

  def with_trained(self, name, params, opt_state):
    """The state with these parameters and this optimizer state of a model that learns."""
    if name not in (self.scorers or {}):
      return self.replace(**{name: params, f"{name}_opt": opt_state})
    return self.replace(scorers={**self.scorers, name: params},
                        scorers_opt={**self.scorers_opt, name: opt_state})


def join(frozen, trained):
  """Merges two trees without copies; `trained` takes precedence, `frozen` may be None."""
  if frozen is None or not isinstance(trained, dict): return trained
  return {**frozen, **{k: join(frozen.get(k), v) for k, v in trained.items()}}
