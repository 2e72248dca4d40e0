"""Forward passes over a batch: log-probs, values and statistics of distributions.

A pass is identified by the parameters, the model, the temperature and the distribution
statistics. The same pass runs only once, for example if the policy is also the PRM's
reference, or if the initial policy is the reference of both log-ratios.
"""
import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import records, schedule
from rlx.core.options import key
from rlx.learner import sharding, step as learner_step
from rlx.models import energy, logps, packing, transformer, value as value_model


def outputs(params: records.Params, config: transformer.DecoderConfig, rollouts: records.Rollouts,
            plan: packing.Plan | None) -> jax.Array:
  """outputs_BTC of a PRM with a head, see models/value.py."""
  return outputs_and_features(params, config, rollouts, plan)[0]


def outputs_and_features(params: records.Params, config: transformer.DecoderConfig,
                         rollouts: records.Rollouts,
                         plan: packing.Plan | None) -> tuple[jax.Array, jax.Array]:
  """(outputs_BTC, features_BTD) of a PRM with a head, see models/value.py."""
  return value_model.outputs_and_features(
      params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
      completion_width=rollouts.sampler_logps_BT.shape[1], plan=plan)


def values(params: records.Params, config: transformer.DecoderConfig, rollouts: records.Rollouts,
           plan: packing.Plan | None) -> jax.Array:
  """values_BT of a value model, or the scores of a PRM with a head."""
  return value_model.values(
      params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
      completion_width=rollouts.sampler_logps_BT.shape[1], plan=plan)


@functools.cache  # Without defaults, and called by position: one entry for each combination.
def compile_logps(config: transformer.DecoderConfig, temperature: float, parts: int, shards: int,
                  more: tuple, among_kept: bool) -> jax.stages.Wrapped:
  """The compiled function (params, rollouts, plan) -> logps_BT of a model and temperature.

  PRM and reference share it, so that equal weights give exactly equal log-probs. With `more`
  (see models/logps.distribution_statistics) it returns (logps_BT, *more). For `among_kept` see
  `logps.of_rollouts`.
  """
  def logps_of(params: records.Params, rollouts: records.Rollouts,
               plan: packing.Plan | None) -> jax.Array | tuple[jax.Array, ...]:
    def one(batch: tuple) -> jax.Array | tuple[jax.Array, ...]:
      logps_BT, _, *others = logps.of_rollouts(
          params, config, *batch, temperature=temperature, with_entropy=False, statistics=more,
          among_kept=among_kept)
      return (logps_BT, *others) if more else logps_BT
    return learner_step.map_microbatches(one, (rollouts, plan), parts, shards)
  return jax.jit(logps_of)


@functools.cache
def compile_values(config: transformer.DecoderConfig, parts: int, shards: int,
                   answer_ids: tuple[int, ...] = ()) -> jax.stages.Wrapped:
  """The compiled function (params, rollouts, plan) -> `values`, or with answers their log-odds."""
  def score(params: records.Params, batch: tuple) -> jax.Array:
    if answer_ids: return logps.log_odds(params, config, batch[0], answer_ids, batch[1])
    return values(params, config, *batch)
  return jax.jit(lambda params, rollouts, plan: learner_step.map_microbatches(
      lambda batch: score(params, batch), (rollouts, plan), parts, shards))


@functools.cache
def compile_outputs(config: transformer.DecoderConfig, parts: int,
                    shards: int) -> jax.stages.Wrapped:
  """The compiled function (params, rollouts, plan) -> `outputs`."""
  return jax.jit(lambda params, rollouts, plan: learner_step.map_microbatches(
      lambda batch: outputs(params, config, *batch), (rollouts, plan), parts, shards))


@functools.cache
def compile_ends(config: transformer.DecoderConfig, parts: int, shards: int) -> jax.stages.Wrapped:
  """The compiled function (params, rollouts, plan) -> (scores_B, features_BD) at the end.

  What a head gives of whole completions, and the states that it reads; the rollouts have one more
  token after each completion, as a head is read before a token.
  """
  def ends(params: records.Params, batch: tuple) -> tuple[jax.Array, jax.Array]:
    numbers_BTC, features_BTD = outputs_and_features(params, config, *batch)
    at_B11 = (batch[0].completion_len_B - 1)[:, None, None]
    take = lambda x_BTC: jnp.take_along_axis(x_BTC, at_B11, axis=1)[:, 0]
    return (take(value_model.combine(config, numbers_BTC)[..., None])[:, 0], take(features_BTD))
  return jax.jit(lambda params, rollouts, plan: learner_step.map_microbatches(
      lambda batch: ends(params, batch), (rollouts, plan), parts, shards))


@dataclasses.dataclass(frozen=True)
class Planner:
  """Packing plans of the passes over some rollouts, in which no row leaves its device.

  Each is computed once.

  Attributes:
    rollouts: numpy; plans depend on its lengths and prompts.
    pack: False disables packing: all plans are None.
  """
  rollouts: records.Rollouts
  mesh: jax.sharding.Mesh
  pack: bool
  _plans: dict = dataclasses.field(default_factory=dict, repr=False)

  @functools.cached_property
  def _trunk_B(self) -> np.ndarray:
    return packing.find_trunks(
        self.rollouts.tokens_BS[:, :self.rollouts.prompt_width], self.rollouts.prompt_len_B)

  def __call__(self, config: transformer.DecoderConfig, parts: int,
               rows_B: np.ndarray | None = None) -> packing.Plan | None:
    """The plan on the mesh of a model's pass in `parts` microbatches; of these rows, None: all."""
    if not self.pack: return None
    wanted = config, parts, None if rows_B is None else rows_B.tobytes()
    if wanted not in self._plans:
      r, trunk_B = self.rollouts, self._trunk_B
      prompt_len_B, len_B = r.prompt_len_B, r.completion_len_B
      if rows_B is not None:
        prompt_len_B, len_B = prompt_len_B[rows_B], len_B[rows_B]
        trunk_B = packing.find_trunks(r.tokens_BS[rows_B, :r.prompt_width], prompt_len_B)
      self._plans[wanted] = sharding.place_rows(
          packing.plan(prompt_len_B, len_B, r.prompt_width, r.sampler_logps_BT.shape[1], config,
                       parts=parts * sharding.row_shards(self.mesh), trunk_B=trunk_B), self.mesh)
    return self._plans[wanted]


@dataclasses.dataclass(frozen=True)
class Scorer:
  """What the number of a model for a completion is, see `scorers` in configs/base.py."""
  kind: str                            # one of KINDS
  question_ids: tuple[int, ...] = ()   # of yes_no, what is asked after a completion
  answer_ids: tuple[int, ...] = ()     # the tokens for yes and no
  reference: str | None = None         # a head's text with {} where the reference answer stands
  reference_tokens: int = 0            # of the longest such text

  @property
  def has_head(self) -> bool:
    """Whether the model has a head that gives one number in place of log-probs."""
    return self.kind in WITH_HEAD


WITH_HEAD = ("head", "probability", "energy")
KINDS = (*WITH_HEAD, "implicit", "yes_no")
HEADS = (*value_model.HEADS, "yes_no")  # of train_scorer.head


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """The options that all passes of a run share."""
  mesh: jax.sharding.Mesh
  models: dict[str, transformer.DecoderConfig]  # of "policy", "prm", "value", and of frozen_models
  scorers: dict[str, Scorer]  # those of frozen_models that give scores
  asked_scorer: Scorer | None  # of a PRM whose score is an answer, train_scorer.head=yes_no
  statistics: tuple         # (old field, spec) of the policy's distribution statistics
  beta: schedule.Schedule   # prm.beta by the RL iterations done
  temperature: float = key("rollouts.decoding.temperature")
  parts: int = key("learner.microbatches")     # of the passes of policy, PRM and references
  value_parts: int = key("value.microbatches")
  head_parts: int = key("prm.microbatches")    # of those of a PRM with a head
  labels: str | None = key("train_scorer.labels")  # what such a PRM learns; None: it is implicit
  pack: bool = key("learner.pack")
  prm_reference: str = key("prm.reference")
  asked: str = key("likelihood.model")         # the model that scores reference answers
  group: int = key("rollouts.per_prompt")
  seed: int = key("seed")

  @property
  def shards(self) -> int:
    return sharding.row_shards(self.mesh)


@dataclasses.dataclass(frozen=True)
class Passes:
  """Forward passes over one placed batch; each runs once, when a field needs it first.

  Attributes:
    rollouts: `Rollouts.rows()` on the mesh.
  """
  options: Options
  state: records.TrainState
  rollouts: records.Rollouts
  plan: Planner
  _done: dict = dataclasses.field(default_factory=dict, repr=False)

  def logps(self, name: str, model: str = "policy", more: tuple = (), *,
            is_drawn: bool = False) -> Any:
    """logps_BT of the TrainState's parameters `name`, or (logps_BT, *more) with `more`.

    Args:
      is_drawn: of the distribution that tokens are drawn from, at the sampling temperature and
        among the tokens that the sampler kept; False: at temperature 1, among all tokens.
    """
    o, config = self.options, self.options.models[model]
    temperature = o.temperature if is_drawn else 1.0
    among_kept = is_drawn and self.rollouts.kept_BTK is not None
    wanted = name, model, temperature, more, among_kept
    if wanted not in self._done:
      fn = compile_logps(config, temperature, o.parts, o.shards, more, among_kept)
      self._done[wanted] = fn(self.state.join_params(name), self.rollouts,
                              self.plan(config, o.parts))
    return self._done[wanted]

  def prm_reference(self, more: tuple = ()) -> Any:
    """log pi_ref of the PRM's log-ratio (prm.reference): of all tokens, at temperature 1."""
    if self.options.prm_reference == "self": return self.logps("prm_reference", "prm", more)
    return self.logps("policy" if self.options.prm_reference == "policy" else "reference",
                      more=more)

  def old(self, name: str) -> jax.Array:
    """The policy's field `name` before its update; one pass computes all such fields."""
    o = self.options
    if not o.statistics: return self.logps("policy", is_drawn=True)
    names, specs = zip(*o.statistics)
    arrays = self.logps("policy", more=specs, is_drawn=True)
    return dict(zip(("old_logps_BT", *names), arrays))[name]

  def values(self, name: str = "value", model: str = "value",
             parts: int | None = None, answer_ids: tuple[int, ...] = ()) -> jax.Array:
    """values_BT of the value model, or of the TrainState's parameters `name`; with answers the
    log-odds of the first."""
    o, config = self.options, self.options.models[model]
    parts = o.value_parts if parts is None else parts
    return compile_values(config, parts, o.shards, answer_ids)(
        self.state.join_params(name), self.rollouts, self.plan(config, parts))

  def head_scores(self) -> jax.Array:
    """scores_BT of a PRM with a head; the rollouts have one more token after each completion.

    One that is asked has the log-odds of its answer, and rollouts of `host_fields.ask_rows`.
    """
    o = self.options
    if o.asked_scorer is None: return self.values("prm", "prm", o.head_parts)[:, 1:]
    return self.values("prm", "prm", o.head_parts, o.asked_scorer.answer_ids)

  def token_scores(self, name: str, appended: "Passes") -> jax.Array:
    """scores_BT of a scorer: of the prompt and the completion up to each token, that included.

      head: h_t,  probability: sigmoid(h_t),  implicit: sum_{i <= t} log pi - log pi_ref

    with h_t the head at token t, and pi_ref the initial policy, at temperature 1. Tokens that the
    policy did not draw add nothing. Anything on padding. An energy corrects the score of the whole
    completion, h at its last token (models/energy.py), which each token has here.

    Args:
      appended: of the same rollouts with one more token, as a head is read before a token.
    """
    o = self.options
    if not o.scorers[name].has_head:
      ratio_BT = self.logps(name, name) - self.logps("reference")
      return jnp.cumsum(jnp.where(self.rollouts.action_BT, ratio_BT, 0), axis=1)
    if name not in appended._done:
      if o.scorers[name].kind == "energy":
        score_B, features_BD = appended.ends(name, name, o.parts)
        score_B = energy.correct(self.state.join_params(name)["energy"], features_BD, score_B)
        appended._done[name] = jnp.broadcast_to(score_B[:, None], self.rollouts.mask_BT.shape)
      else: appended._done[name] = appended.values(name, name, o.parts)[:, 1:]
    scores_BT = appended._done[name]
    return jax.nn.sigmoid(scores_BT) if o.scorers[name].kind == "probability" else scores_BT

  def token_spreads(self, name: str, appended: "Passes") -> jax.Array:
    """sigma_BT of a scorer with the head spread, in units of h_t; a pass of its own."""
    return value_model.spreads(appended.outputs(name, name, self.options.parts)[:, 1:])

  def outputs(self, name: str, model: str, parts: int) -> jax.Array:
    """outputs_BTC of the TrainState's parameters `name`, see models/value.py."""
    o, config = self.options, self.options.models[model]
    return compile_outputs(config, parts, o.shards)(
        self.state.join_params(name), self.rollouts, self.plan(config, parts))

  def ends(self, name: str, model: str, parts: int) -> tuple[jax.Array, jax.Array]:
    """(scores_B, features_BD) of the TrainState's parameters `name`, see `compile_ends`."""
    o, config = self.options, self.options.models[model]
    return compile_ends(config, parts, o.shards)(
        self.state.join_params(name), self.rollouts, self.plan(config, parts))

  def yes_no_scores(self, name: str, rows: records.Rollouts) -> jax.Array:
    """scores_B of a scorer: the probability of yes against no, after a question (rows, numpy)."""
    o, config = self.options, self.options.models[name]
    parts = math.gcd(o.parts, len(rows.tokens_BS) // o.shards)
    fn = compile_logps(config, 1.0, parts, o.shards, (("all",),), False)
    _, all_B1V = fn(self.state.join_params(name), sharding.place_rows(rows, o.mesh),
                    Planner(rows, o.mesh, o.pack)(config, parts))
    yes, no = o.scorers[name].answer_ids
    return jax.nn.sigmoid(all_B1V[:, 0, yes] - all_B1V[:, 0, no])

  def score_rows(self, name: str, rows: records.Rollouts, *,
                 is_drawn: bool = False) -> jax.Array:
    """logps_BT of the policy's model on other rollouts (numpy); `is_drawn` as in `logps`."""
    o, config = self.options, self.options.models["policy"]
    parts = math.gcd(o.parts, len(rows.tokens_BS) // o.shards)
    plan = Planner(rows, o.mesh, o.pack)(config, parts)
    return compile_logps(config, o.temperature if is_drawn else 1.0, parts, o.shards, (),
                         is_drawn and rows.kept_BTK is not None)(
        self.state.join_params(name), sharding.place_rows(rows, o.mesh), plan)

  def answers(self, rows: records.Rollouts) -> jax.Array:
    """logps_BM of reference answers under likelihood.model."""
    return self.score_rows(self.options.asked, rows)

  def with_state(self, state: records.TrainState) -> "Passes":
    """Returns Passes of other parameters over the same rollouts."""
    return Passes(self.options, state, self.rollouts, self.plan)


def make_passes(o: Options, state: records.TrainState, rollouts: records.Rollouts) -> Passes:
  """Passes over rollouts (numpy), which are placed on the mesh."""
  return Passes(o, state, sharding.place_rows(rollouts, o.mesh), Planner(rollouts, o.mesh, o.pack))
