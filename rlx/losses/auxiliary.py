"""Auxiliary losses, means over completions that are added to the policy loss.

A function returns Weighted over the rows given. The gradient goes through
log-probs of what was not sampled to act, which `update.py` computes in the pass over the
batch.
"""
import jax.numpy as jnp

from rlx.core import axes
from rlx.core import masked
from rlx.core import ranges
from rlx.core import records
from rlx.core import resolve
from rlx.losses import aggregate
from rlx.losses import divergence
from rlx.losses import reward_model


def _class_weights(outcome_B, learn_B, finish_B, *, balanced):
  """The w of `last_token`."""
  if not balanced: return jnp.ones_like(outcome_B)
  return reward_model.class_weights(outcome_B, _counted(learn_B, finish_B))


@resolve.whole(weight_B=_class_weights)
def last_token(self_logps_B, outcome_B, learn_B, finish_B, weight_B=None, *, c_ref: ranges.ANY,
               beta_v: ranges.POSITIVE = 0.1, balanced=True):
  """LaSeR: the self-reward read after the last token learns the verdict.

    l = w (beta_v (log pi(z_c | x, y) - c_ref) - v)^2
    w = n / (2 n_class),  class = (v > 1/2), or 1 without balance

  Source: Yang et al. 2025, arXiv:2510.14943. Differs from the paper: its warm-up, the
  first 200 steps without this loss, is left to the run (resume with the loss on).

  Args:
    self_logps_B: log pi(likelihood.token | x, y) of the policy being updated, nats.
    outcome_B: verdicts v; anything where learn_B is False.
    learn_B: bool.
    finish_B: index into records.FINISH; truncated completions do not count.
    weight_B: w, with n counted over the minibatch; None: over the rows given.
    c_ref: what a model before training says of that token, nats.
    beta_v: scale of the self-reward.
    balanced: right and wrong completions have half of the weight each.
  Returns:
    Weighted over the completions that count.
  """
  axes.dims(self_logps_B=self_logps_B, outcome_B=outcome_B, learn_B=learn_B,
            finish_B=finish_B)
  counts_B = _counted(learn_B, finish_B)
  if weight_B is None:
    weight_B = _class_weights(outcome_B, learn_B, finish_B, balanced=balanced)
  error_B = (beta_v * (masked.where_valid(self_logps_B, counts_B) - c_ref)
             - masked.where_valid(outcome_B, counts_B))
  return records.Weighted(masked.total(weight_B * error_B**2, counts_B),
                          jnp.sum(counts_B).astype(error_B.dtype))


def rehearsal(logps_BT, ref_logps_BT, rehearsal_BT, *, kind="forward",
              alpha: ranges.Range(1e-6, 0.999999) = 0.2):
  """DPH: the policy stays near its start where the start was always right.

    l_t = D_f(policy, start) at the tokens of stored completions, see divergence.rehearsal

  Source: DPH-RL, Li et al. 2025, arXiv:2509.07430. Differs from the paper: the start's
  log-probs come from a pass of the reference, not from a file, and are the same; one
  mean over the stored tokens of the batch.

  Args:
    logps_BT: of the policy being updated, nats.
    ref_logps_BT: of its start.
    rehearsal_BT: bool, tokens of the stored completions (rollouts.rehearsal).
    kind, alpha: see `divergence.rehearsal`.
  Returns:
    Weighted over those tokens.
  Raises:
    ValueError: an unknown kind.
  """
  axes.dims(logps_BT=logps_BT, ref_logps_BT=ref_logps_BT,
            rehearsal_BT=rehearsal_BT)
  kept_BT = divergence.rehearsal(logps_BT, ref_logps_BT, rehearsal_BT,
                                 kind=kind, alpha=alpha)
  return aggregate.aggregate(kept_BT, rehearsal_BT, mode="token-mean")


def _counted(learn_B, finish_B):
  return learn_B & (finish_B != records.FINISH.index("length"))
