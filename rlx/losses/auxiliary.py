"""Auxiliary losses, means over completions that are added to the policy loss.

A function returns Weighted over the rows given. The gradient goes through
log-probs of what was not sampled to act, which `update_policy.py` computes in the pass over the
batch.
"""
from typing import Annotated

import jax.numpy as jnp
from jax import Array

from rlx.core import ranges, records
from rlx.core.method import COMPUTED, method
from rlx.losses import aggregate, divergence, reward_model


def _class_weights(outcome_B, learn_B, finish_B, *, balanced):
  """The w of `last_token`."""
  if not balanced: return jnp.ones_like(outcome_B)
  return reward_model.class_weights(outcome_B, _select_finished(learn_B, finish_B))


@method(whole=dict(weight_B=_class_weights))
def last_token(self_logps_B: Array, outcome_B: Array, learn_B: Array, finish_B: Array,
               weight_B: Array = COMPUTED, *, c_ref: ranges.Number,
               beta_v: ranges.Positive = 0.1, balanced: bool = True) -> records.Weighted:
  """LaSeR: regression of the self-reward after the last token on the verdict.

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
  Example:
    >>> self_logps_B, outcome_B = jnp.array([-2., -2.]), jnp.array([1., 0.])
    >>> finish_B = jnp.array([1, 1])
    >>> auxiliary.last_token(self_logps_B, outcome_B, jnp.ones(2, bool), finish_B, c_ref=-4.,
    ...                      beta_v=.5).mean()
    Array(0.5, dtype=float32)
  """
  error_B = beta_v * (self_logps_B - c_ref) - outcome_B
  return aggregate.mean(weight_B * error_B**2, _select_finished(learn_B, finish_B))


@method
def rehearsal(logps_BT: Array, ref_logps_BT: Array, rehearsal_BT: Array, *,
              kind: divergence.Rehearsal = "forward",
              alpha: Annotated[float, ranges.Range(1e-6, 0.999999)] = 0.2) -> records.Weighted:
  """DPH: a divergence from the start on prompts that the start always solved.

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
  Example:
    >>> logps_BT, ref_logps_BT = jnp.log(jnp.array([[.5, .5]])), jnp.log(jnp.array([[.5, .25]]))
    >>> auxiliary.rehearsal(logps_BT, ref_logps_BT, jnp.ones((1, 2), bool)).mean().round(1)
    Array(0.2, dtype=float32)
  """
  loss_BT = divergence.rehearsal(logps_BT, ref_logps_BT, rehearsal_BT, kind=kind, alpha=alpha)
  return aggregate.aggregate(loss_BT, rehearsal_BT, mode="token-mean")


@method
def cloning(logps_BT: Array, learn_BT: Array, demo_B: Array) -> records.Weighted:
  """Behaviour cloning of the demonstrations that groups end with, beside the policy's loss.

    l_t = - log pi(y_t | x, y_<t) at the tokens of demonstrations (rollouts.demonstration)

  With `group.against_sampled` and demonstrations="cloned" nothing else is learned from them.

  Source: RAIF, Qin et al. 2025, arXiv:2506.01413, which clones experts so that the answers do not
  drift. Differs from the paper: one mean over the tokens of all demonstrations of a batch.

  Args:
    logps_BT: of the policy being updated, nats.
    learn_BT: bool, tokens of completions whose verdict is known.
    demo_B: bool, rows that are demonstrations.
  Returns:
    Weighted over their tokens.
  Example:
    >>> logps_BT, ones_BT = jnp.array([[-1., -3.], [-5., -5.]]), jnp.ones((2, 2), bool)
    >>> auxiliary.cloning(logps_BT, ones_BT, jnp.array([True, False])).mean()
    Array(2., dtype=float32)
  """
  return aggregate.aggregate(-logps_BT, learn_BT & demo_B[:, None], mode="token-mean")


def _select_finished(learn_B, finish_B):
  return learn_B & (finish_B != records.FINISH.index("length"))
