"""The update of the process reward model, which also gives the log-probs that rewards read."""
import dataclasses
import functools
import inspect

import jax
import jax.numpy as jnp

from rlx.core import masked, records, resolve
from rlx.learner import optimizer
from rlx.losses import diagnostics, reward_model
from rlx.models import logps, value
from rlx.stages import learner as learner_lib, passes as passes_lib, place

# Arguments of losses of a head that compare the completions of a group.
COMPARED = frozenset(("chosen_N", "chosen_NK", "chosen_ND", "scores_PG"))


@dataclasses.dataclass(frozen=True)
class UpdatePrm:
  """The stage that trains the implicit PRM on verdicts.

  It sets prm_old_logps_BT, of the PRM before the update, and prm_logps_BT, which rewards read: the
  same, those after the update (order="double"), or those before each minibatch (snapshot=False).
  With `reads_all` it sets prm_all_logps_BTV, too.

  Attributes:
    loss: Methods.prm.
    order, snapshot: see prm.order and prm.snapshot.
    uses_own_pass: whether the log-probs are those of the gradient's forward pass, which saves a
      pass, or of the scoring program; decided by `uses_own_pass` of build/updates.py.
    starts_equal: whether the PRM's reference is the PRM before its first update.
    reads_all: whether a method reads the PRM's log-probs of all tokens.
  """
  loss: resolve.Method
  learner: learner_lib.Learner
  order: str
  snapshot: bool
  uses_own_pass: bool
  starts_equal: bool
  reads_all: bool = False

  def __call__(self, state: records.TrainState,
               placed: place.Placed) -> tuple[records.TrainState, place.Placed, dict]:
    """(state, placed, metrics) of a batch that has been scored."""
    if state.prm is None: return state, placed, {}
    if not self.uses_own_pass:
      before = self._score(state, placed)
      placed = placed.with_columns(**before, prm_old_logps_BT=before["prm_logps_BT"])
    if self.order == "none": return state, placed, {}
    is_first = optimizer.count_updates(state.prm_opt) == 0
    state, metrics, own_BT, scores = self.learner.learn(
        self.program, state, self.learner.make_minibatches(placed),
        score=None if self.snapshot else self._score_part)
    if self.uses_own_pass:
      # Two programs round differently; equal weights must give a log-ratio of exactly 0.
      if self.starts_equal:
        own_BT = jnp.where(is_first, placed.batch.prm_ref_logps_BT, own_BT)
      placed = placed.with_columns(prm_logps_BT=own_BT, prm_old_logps_BT=own_BT)
    elif self.order == "double":
      placed = placed.with_columns(**self._score(state, placed))
    elif not self.snapshot:
      placed = placed.with_columns(prm_logps_BT=jnp.concatenate(scores))
    return state, placed, metrics

  @functools.cached_property
  def program(self) -> jax.stages.Wrapped:
    """The jitted optimizer step, see `learner.step.make`."""
    forward = self._forward if learner_lib.reads_whole({"prm_logps_BT"}, self.loss) else None
    return self.learner.make(self._loss, lambda params, part: self.learner.add_whole(
        params, part, lambda batch: learner_lib.compute_whole(self.loss, batch), forward))

  def _score(self, state: records.TrainState, placed: place.Placed) -> dict[str, jax.Array]:
    """The columns that rewards and losses read of the PRM, by the scoring program."""
    assert placed.passes is not None
    logps_of = placed.passes.with_state(state).logps
    if not self.reads_all: return dict(prm_logps_BT=logps_of("prm", "prm"))
    return dict(zip(("prm_logps_BT", "prm_all_logps_BTV"), logps_of("prm", "prm", (("all",),))))

  def _score_part(self, params: records.Params, part: learner_lib.Minibatch) -> jax.Array:
    """The same of a minibatch."""
    score = passes_lib.compile_logps(self.learner.config, 1.0, self.learner.microbatches,
                                     self.learner.shards, (), False)
    return score(params, part.rollouts, part.plan)

  def _forward(self, params: records.Params, part: learner_lib.Minibatch) -> dict[str, jax.Array]:
    return dict(prm_logps_BT=logps.of_rollouts(
        params, self.learner.config, part.rollouts, part.plan, with_entropy=False)[0])

  def _loss(self, params: records.Params,
            part: learner_lib.Minibatch) -> tuple[records.Weighted, dict, jax.Array]:
    batch = part.batch.replace(**self._forward(params, part))
    total, metrics = resolve.split_metrics(self.loss(batch, **part.whole))
    return total, diagnostics.means(metrics, batch.learn_BT), batch.prm_logps_BT


@dataclasses.dataclass(frozen=True)
class UpdatePrmHead:
  """The stage that trains a model that gives scores, by a loss of losses/reward_model.py.

  The batch's column labels_BT has a label on the last token of each step, of each completion, or
  on any tokens, and NaN elsewhere. The rollouts have a token appended to each completion
  (`padding.append`), or are those of `host_fields.ask_rows` for a model that is asked.

  A loss is of scores and labels (labels_N); of pairs (chosen_N): all of a group's completions, each
  with one label, of which one has a higher label; or of lists (scores_PG), a group each. The margin
  of a pair is the difference of its values of margin_B, where the batch has them. The strength is
  the margin, or else the difference of the labels. Losses of pairs may also read the features of
  both completions, the hidden states that the head reads, and a random `key`.

  Attributes:
    balanced: whether both classes of labels have half of the weight, in each minibatch.
    asked: the question and its answers, of a model whose score is their log-odds; None: a head.
    margins: whether a loss with margins gets those of the pairs.
    auxiliary: a further loss of the same pairs, which is multiplied by auxiliary_coef and added.
  """
  learner: learner_lib.Learner
  loss: resolve.UserFunction
  balanced: bool
  asked: passes_lib.Scorer | None = None
  margins: bool = False
  auxiliary: resolve.UserFunction | None = None
  auxiliary_coef: float = 0.0

  def __call__(self, state: records.TrainState,
               placed: place.Placed) -> tuple[records.TrainState, place.Placed, dict]:
    """(state, placed, metrics)."""
    state, metrics, *_ = self.learner.learn(self.program, state,
                                            self.learner.make_minibatches(placed))
    return state, placed, metrics

  @functools.cached_property
  def program(self) -> jax.stages.Wrapped:
    """The jitted optimizer step, see `learner.step.make`."""
    return self.learner.make(self._loss, lambda params, part: self.learner.add_whole(
        params, part, self._weigh, None))

  @property
  def reads_key(self) -> bool:
    """Whether a loss draws random numbers, for which the batch needs the column noise_B."""
    return any(loss is not None and "key" in inspect.signature(loss).parameters
               for loss in (self.loss, self.auxiliary))

  def _labels(self, batch: records.Batch) -> jax.Array:
    """labels_BT, or of a head for two probabilities labels_BTC."""
    if self.learner.config.score_head != "product": return batch.labels_BT
    return jnp.stack([batch.labels_BT, batch.potential_BT], axis=2)

  def _weigh(self, batch: records.Batch) -> dict[str, jax.Array]:
    """{"weight_BT": of each label} of a minibatch; {} where all weigh the same."""
    if not self.balanced: return {}
    labels = self._labels(batch)
    weight_N = reward_model.class_weights(labels.ravel(), ~jnp.isnan(labels.ravel()))
    return dict(weight_BT=weight_N.reshape(labels.shape))

  def _loss(self, params: records.Params,
            part: learner_lib.Minibatch) -> tuple[records.Weighted, dict, None]:
    columns = self._read(params, part)
    taken = set(inspect.signature(self.loss).parameters)
    if "scores_PG" in taken: return self._order(columns["scores"], part.batch), {}, None
    if taken & COMPARED:
      loss = self._compare(self.loss, columns, part.batch)
      if self.auxiliary is None: return loss, {}, None
      more = self._compare(self.auxiliary, columns, part.batch)  # Of the same weight, the pairs.
      return loss.replace(total=loss.total + self.auxiliary_coef * more.total), dict(
          auxiliary=more), None
    labels_N = self._labels(part.batch).ravel()
    given = dict(scores_N=columns["outputs" if self.learner.config.score_head == "product" else
                                  "scores"].ravel(), labels_N=labels_N,
                 valid_N=~jnp.isnan(labels_N))
    if whole := part.whole or self._weigh(part.batch):
      given["weight_N"] = whole["weight_BT"].ravel()
    if "spreads_N" in taken: given["spreads_N"] = columns["spreads"].ravel()
    return self.loss(**given), {}, None

  def _read(self, params: records.Params, part: learner_lib.Minibatch) -> dict[str, jax.Array]:
    """What the model gives up to each token: "scores" [B, T], and what else its head has."""
    config = self.learner.config
    if self.asked is not None:
      return dict(scores=logps.log_odds(params, config, part.rollouts, self.asked.answer_ids,
                                        part.plan))
    outputs_BTC, features_BTD = passes_lib.outputs_and_features(params, config, part.rollouts,
                                                                part.plan)
    columns = dict(scores=value.combine(config, outputs_BTC)[:, 1:], outputs=outputs_BTC[:, 1:],
                   features=features_BTD[:, 1:])  # XLA leaves out what no loss reads.
    if config.score_head == "spread": columns["spreads"] = value.spreads(outputs_BTC)[:, 1:]
    if config.score_head == "mixture":
      heads_BTK, routing_B1K = value.split_mixture(outputs_BTC)
      columns |= dict(heads=heads_BTK[:, 1:], routing=routing_B1K[:, 0])
    return columns

  def _order(self, scores_BT: jax.Array, batch: records.Batch) -> records.Weighted:
    """The loss of the list of each group."""
    score_B, label_B, known_B = self._pick(scores_BT, batch)
    by_group = lambda x_B: x_B.reshape(-1, batch.group)
    return self.loss(scores_PG=by_group(score_B), labels_PG=by_group(jnp.nan_to_num(label_B)),
                     valid_PG=by_group(known_B))

  def _pick(self, x_BT: jax.Array,
            batch: records.Batch) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(x, the label, whether there is one) at the token of each completion that has its label."""
    known_BT = ~jnp.isnan(batch.labels_BT)
    x_B, label_B = (masked.total(x, known_BT.reshape(known_BT.shape + (1,) * (x.ndim - 2)), axis=1)
                    for x in (x_BT, batch.labels_BT))
    known_B = jnp.any(known_BT, axis=1)
    return x_B, jnp.where(known_B, label_B, jnp.nan), known_B

  def _compare(self, loss: resolve.UserFunction, columns: dict[str, jax.Array],
               batch: records.Batch) -> records.Weighted:
    """A loss of all pairs of a group's completions."""
    taken = set(inspect.signature(loss).parameters)
    def pair(x_B: jax.Array) -> tuple[jax.Array, jax.Array]:
      """x of the better and of the worse completion, over all pairs of rows of a group."""
      x_PG = x_B.reshape(-1, batch.group, *x_B.shape[1:])
      both = jnp.broadcast_arrays(x_PG[:, :, None], x_PG[:, None])
      better, worse = (x.reshape(-1, *x_B.shape[1:]) for x in both)
      return better, worse
    _, label_B, _ = self._pick(columns["scores"], batch)
    better_N, worse_N = pair(label_B)
    gap_N = better_N - worse_N
    given = dict(valid_N=gap_N > 0)  # NaN is no pair.
    for end, name in (("N", "scores"), ("spread_N", "spreads"), ("NK", "heads"),
                      ("ND", "features")):
      if f"chosen_{end}" in taken:
        picked_B = self._pick(columns[name], batch)[0]
        given[f"chosen_{end}"], given[f"rejected_{end}"] = pair(picked_B)
    if "routing_NK" in taken: given["routing_NK"] = pair(columns["routing"])[0]
    margin_N = None
    if "margin_B" in batch:
      more_N, less_N = pair(batch.margin_B)
      margin_N = more_N - less_N
    if "margin_N" in taken and self.margins and margin_N is not None: given["margin_N"] = margin_N
    if "strength_N" in taken:
      given["strength_N"] = jnp.nan_to_num(gap_N if margin_N is None else margin_N)
    if "key" in taken:
      given["key"] = jax.random.key(jax.lax.bitcast_convert_type(batch.noise_B[0], jnp.uint32))
    return loss(**given)
