"""The update of the process reward model, which also gives the log-probs that rewards read."""
import dataclasses
import functools
import inspect

import jax
import jax.numpy as jnp

from rlx.core import masked, records, resolve
from rlx.learner import optimizer
from rlx.losses import diagnostics, reward_model
from rlx.models import logps
from rlx.stages import learner as learner_lib, passes as passes_lib, place


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
  """The stage that trains a model with a head for scores, by a loss of losses/reward_model.py.

  The batch's column labels_BT is in [0, 1] on the last token of each step, or of each completion,
  and NaN elsewhere. The rollouts have a token appended to each completion (`padding.append`).

  Attributes:
    loss: of scores and labels, or of pairs: all of a group's completions, each with one label, of
      which one has a higher label; the difference of the labels is the strength.
    balanced: whether both classes of labels have half of the weight, in each minibatch.
  """
  learner: learner_lib.Learner
  loss: resolve.UserFunction
  balanced: bool

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

  def _weigh(self, batch: records.Batch) -> dict[str, jax.Array]:
    """{"weight_BT": of each label} of a minibatch; {} where all weigh the same."""
    if not self.balanced: return {}
    labels_B = batch.labels_BT.ravel()
    weight_B = reward_model.class_weights(labels_B, ~jnp.isnan(labels_B))
    return dict(weight_BT=weight_B.reshape(batch.labels_BT.shape))

  def _loss(self, params: records.Params,
            part: learner_lib.Minibatch) -> tuple[records.Weighted, dict, None]:
    scores_BT = passes_lib.values(params, self.learner.config, part.rollouts, part.plan)[:, 1:]
    if "chosen_N" in (taken := inspect.signature(self.loss).parameters):
      return self._compare(scores_BT, part.batch, "strength_N" in taken), {}, None
    labels_B = part.batch.labels_BT.ravel()
    whole = part.whole or self._weigh(part.batch)
    more = dict(weight_N=whole["weight_BT"].ravel()) if whole else {}
    return self.loss(scores_BT.ravel(), labels_B, valid_N=~jnp.isnan(labels_B), **more), {}, None

  def _compare(self, scores_BT: jax.Array, batch: records.Batch,
               has_strength: bool) -> records.Weighted:
    """The loss of all pairs of a group's completions."""
    known_BT = ~jnp.isnan(batch.labels_BT)
    score_PG, label_PG = (masked.total(x_BT, known_BT, axis=1).reshape(-1, batch.group)
                          for x_BT in (scores_BT, batch.labels_BT))
    label_PG = jnp.where(jnp.any(known_BT, axis=1).reshape(label_PG.shape), label_PG, jnp.nan)
    gap_PGG = label_PG[:, :, None] - label_PG[:, None, :]  # NaN is no pair.
    chosen_PGG, rejected_PGG = jnp.broadcast_arrays(score_PG[:, :, None], score_PG[:, None, :])
    strength = dict(strength_N=jnp.nan_to_num(gap_PGG.ravel())) if has_strength else {}
    return self.loss(chosen_PGG.ravel(), rejected_PGG.ravel(), valid_N=gap_PGG.ravel() > 0,
                     **strength)
