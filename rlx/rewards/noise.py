"""Verifiers that err at known rates, corrections of their errors, and control rewards."""
from typing import Annotated, Literal

import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import INITIAL, method


@method(cancelled=tuple(
    ("centres", dict(correction=kind), "the noisy verdict, but for a factor")
    for kind in ("forward", "backward")))
def channel(outcome_PG: Array, noise_PG: Array, learn_PG: Array, *,
            false_positive: ranges.Share = 0.0, false_negative: ranges.Share = 0.0,
            level: Literal["sample", "group"] = "sample",
            correction: Literal["none", "backward", "forward"] = "none") -> Array:
  """The verdict of a verifier that errs at known rates, corrected or not.

    r = 1 - v  if u < (fn if v > 1/2 else fp),  else v

  With level="group" all completions of a prompt share the draw u, so that with
  fp = fn a prompt's verdicts are flipped together or not at all.

  Source: Cai et al. 2025, arXiv:2510.00915, the synthetic channel; level="group"
  is the released code of Lv et al. 2025, arXiv:2505.22653. Differs from the papers:
  a fractional verdict v becomes 1 - v. Filters, PRM and metrics keep the clean verdict.

  Args:
    outcome_PG: verdicts; anything where learn_PG is False.
    noise_PG: uniform in [0, 1).
    learn_PG: bool.
    false_positive, false_negative: how often wrong is called right, right wrong.
    level: sample or group.
    correction: none, `backward` or `forward`, told the true rates.
  Returns:
    rewards_B, 0 where not valid.
  Raises:
    ValueError: an unknown level or correction.
  Example:
    >>> outcome_PG, noise_PG = jnp.array([[1., 0., 0.]]), jnp.array([[.1, .9, .1]])
    >>> noise.channel(outcome_PG, noise_PG, jnp.ones((1, 3), bool), false_positive=.2,
    ...               false_negative=.2)
    Array([0., 0., 1.], dtype=float32)
  """
  if level == "group": noise_PG = jnp.broadcast_to(noise_PG[:, :1], learn_PG.shape)
  is_wrong_PG = noise_PG < jnp.where(outcome_PG > 0.5, false_negative, false_positive)
  noisy_B = jnp.where(is_wrong_PG, 1 - outcome_PG, outcome_PG).reshape(-1)
  learn_B = learn_PG.reshape(-1)
  if correction == "backward":
    return backward(noisy_B, learn_B, false_positive=false_positive, false_negative=false_negative)
  if correction == "forward":
    return forward(noisy_B, learn_B, false_negative=false_negative)
  return noisy_B


@method(cancelled=(("centres", {}, "the plain verdict, but for a factor"),))
def backward(outcome_B: Array, learn_B: Array, *, false_positive: ranges.Share,
             false_negative: ranges.Share) -> Array:
  """PGBC: a reward whose mean over the verifier's errors is the true verdict.

    r = (v - fp) / (1 - fp - fn)

  Source: Cai et al. 2025, arXiv:2510.00915. Differs from the paper: nothing known
  of the formula, which is restated and re-derived here; the rates are options. It is
  affine: an estimator that centres within the prompt leaves a factor, one that divides
  by the prompt's std leaves nothing.

  Args:
    outcome_B: verdicts of the noisy verifier; anything where learn_B is False.
    learn_B: bool.
    false_positive, false_negative: the verifier's rates; their sum is below 1.
  Returns:
    rewards_B, 0 where not valid.
  Raises:
    ValueError: the sum of the rates is not below 1.
  Example:
    >>> noise.backward(jnp.array([1., 0.]), jnp.ones(2, bool), false_positive=.25,
    ...                false_negative=.25)
    Array([ 1.5, -0.5], dtype=float32)
  """
  gap = 1 - false_positive - false_negative
  if gap <= 0:
    raise ValueError(f"false_positive={false_positive!r}, false_negative={false_negative!r}:"
                     " their sum must be below 1.")
  return (outcome_B - false_positive) / gap


@method(cancelled=(("centres", {}, "the plain verdict, but for a factor"),))
def forward(outcome_B: Array, learn_B: Array, *, false_negative: ranges.Share) -> Array:
  """PGFC: weights whose mean update has the direction of the update by true verdicts.

    w = v - (1 - fn),   so fn if v = 1 and fn - 1 if v = 0
    E[w grad log pi] = (1 - fp - fn) E[true verdict * grad log pi]

  Given a true verdict of 1 its mean is 0, given 0 it is -(1 - fp - fn): only
  what the verifier should reject moves the policy, and fp is not needed.

  Source: Cai et al. 2025, arXiv:2510.00915. Differs from the paper: nothing known
  of the formula, which is restated and re-derived here; the rate is an option, that of
  `appealed` is estimated. Use an estimator without a baseline of the prompt, such as
  batch.reinforce: any other takes the constant off.

  Args: as `backward`.
  Returns:
    rewards_B, 0 where not valid.
  Example:
    >>> noise.forward(jnp.array([1., 0.]), jnp.ones(2, bool), false_negative=.25)
    Array([ 0.25, -0.75], dtype=float32)
  """
  return outcome_B - (1 - false_negative)


@method(cancelled=(("centres", {}, "the plain verdict, but for a factor"),),
        state=dict(rate=jnp.nan))
def appealed(outcome_B: Array, scores_B: Array, noise_B: Array, learn_B: Array, *,
             appeals: Annotated[float, ranges.Range(1e-3, 1)] = 0.1,
             decay: ranges.BelowOne = 0.9, rate: Array = INITIAL
             ) -> tuple[Array, dict[str, Array], dict[str, Array]]:
  """PGFC with a rate of false negatives that a second verifier estimates while the policy learns.

    r = forward(v, fn)        fn <- decay fn + (1 - decay) f
    f = (n + c) / (n + m + 2 c),   n = 1/q sum_{v <= 1/2, u < q} 1[s > 1/2],   m = sum 1[v > 1/2]

  n estimates how many right completions the verifier rejects, from the share q = appeals of those
  it rejects; m are those it accepts, c = 1e-5. The average begins with the first batch that has
  either; until then fn is 1/2.

  Source: Cai et al. 2025, arXiv:2510.00915, appeals, counts and moving average. Differs from the
  paper: its decay and its share of appeals could not be confirmed, the defaults are ours; the
  second verifier is asked about every completion, and what it says of others is not read; a wrong
  completion that is accepted counts as right, as fp is not estimated.

  Args:
    outcome_B: verdicts of the verifier that errs; anything where learn_B is False.
    scores_B: of the second, the first in verifier.scores.
    noise_B: uniform in [0, 1).
    learn_B: bool.
    appeals: share of the rejected completions that the second verifier is asked about.
    decay: of the average.
    rate: fn, state between steps; NaN before the first batch.
  Returns:
    rewards_B, 0 where not valid; the rate as a metric; the next state.
  Example:
    >>> rewards_B, _, state = noise.appealed(
    ...     jnp.array([1., 1., 1., 0.]), jnp.ones(4), jnp.zeros(4), jnp.ones(4, bool), appeals=1.)
    >>> rewards_B.round(2), state["rate"].round(2)
    (Array([ 0.25,  0.25,  0.25, -0.75], dtype=float32), Array(0.25, dtype=float32))
  """
  is_right_B = outcome_B > 0.5
  is_overruled_B = ~is_right_B & (noise_B < appeals) & (scores_B > 0.5)
  rejected, accepted = (masked.total(x_B * 1.0, learn_B) for x_B in (
      is_overruled_B / appeals, is_right_B))
  now = (rejected + 1e-5) / (rejected + accepted + 2e-5)
  after = jnp.where(jnp.isnan(rate), now, decay * rate + (1 - decay) * now)
  after = jnp.where(rejected + accepted > 0, after, rate)
  used = jnp.where(jnp.isnan(after), 0.5, after)
  return outcome_B - (1 - used), dict(false_negative=used), dict(rate=after)


@method(cancelled=(("centres", dict(kind="constant"), "nothing"),))
def control(outcome_B: Array, noise_B: Array, learn_B: Array, *,
            kind: Literal["random", "constant", "inverse"] = "random",
            rate: ranges.Share = 0.5) -> Array:
  """Control rewards, which contain no information about the task.

    random:  r = 1 if u < rate else 0      constant:  r = rate      inverse:  r = 1 - v

  The format reward of the same study is shaping.plain of a format verifier, the
  incorrect one pseudo.wrong_majority.

  Source: Shao et al. 2025, arXiv:2506.10947 (random, inverse). Differs from the
  paper: constant is not in it; estimators that centre make it exactly 0.

  Args:
    outcome_B: verdicts; anything where learn_B is False.
    noise_B: uniform in [0, 1).
    learn_B: bool.
    kind: random, constant or inverse.
    rate: mean of the random reward, value of the constant one.
  Returns:
    rewards_B, 0 where not valid.
  Raises:
    ValueError: an unknown kind.
  Example:
    >>> noise.control(jnp.array([1., 0.]), jnp.array([.7, .2]), jnp.ones(2, bool), rate=.5)
    Array([0., 1.], dtype=float32)
  """
  if kind == "random": return (noise_B < rate).astype(jnp.float32)
  if kind == "constant": return jnp.full(outcome_B.shape, rate, jnp.float32)
  return 1 - outcome_B
