"""Divergence of the policy from a reference, estimated on the sampled tokens.

Written once for both uses: a reward term (values only) or a loss (gradients).
"""
from typing import Annotated, Literal, get_args

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method
from rlx.losses import _ratio

Kind = Literal["k1", "abs", "k2", "k3", "k1+", "abs+", "k2+", "k3+"]
KINDS = get_args(Kind)
Rehearsal = Literal["forward", "reverse", "js", "js_mixture", "alpha"]


@method
def estimate(logps_BT: Array, ref_logps_BT: Array, learn_BT: Array | None = None, *,
             kind: Kind = "k3") -> Array:
  """KL(policy, reference) per token, from tokens drawn from the policy.

    k1 = d    abs = |d|    k2 = d^2 / 2    k3 = exp(-d) + d - 1
    d = log pi(y_t) - log pi_ref(y_t)

  k1 and k3 are unbiased, k2 and abs are not; k3 is never negative. As a loss
  only k2 has (on policy) the gradient of the KL; a trailing + keeps the value
  and takes k2's gradient, d * grad log pi.

  After the first minibatch the tokens are not the policy's own any more, and only
  `correct_off_policy` gives the gradient of the KL.

  Source: Schulman 2020, "Approximating KL Divergence"; the + forms, Tang and
  Munos 2025, arXiv:2506.09477. Differs from the source: as in verl,
  in k3 -d is clamped to [-20, 20] and the result to [-10, 10], with gradient 0
  beyond.

  Args:
    logps_BT, ref_logps_BT: nats, at one temperature.
    learn_BT: bool; elsewhere the result is 0. None: all entries are read, and
      NaN on padding would reach the gradient.
    kind: one of KINDS.
  Returns:
    kl_BT.
  Example:
    >>> divergence.estimate(jnp.array([[-1.]]), jnp.array([[-3.]]), kind="k2")
    Array([[2.]], dtype=float32)
  """
  d_BT = logps_BT - ref_logps_BT
  base = kind.rstrip("+")
  if base == "k1": kl_BT = d_BT
  elif base == "abs": kl_BT = masked.absolute(d_BT)
  elif base == "k2": kl_BT = d_BT**2 / 2
  else:
    minus_BT = jnp.clip(-d_BT, -20, 20)
    kl_BT = jnp.clip(jnp.exp(minus_BT) - minus_BT - 1, -10, 10)
  if not kind.endswith("+"): return kl_BT
  k2_BT = d_BT**2 / 2
  # The value is exact: x - x is 0 whatever x is.
  return jax.lax.stop_gradient(kl_BT) + (k2_BT - jax.lax.stop_gradient(k2_BT))


def correct_off_policy(kl_BT: Array, logps_BT: Array, old_logps_BT: Array,
                       learn_BT: Array) -> Array:
  """KL per token from tokens drawn from the policy before the update.

    rho_t kl_t,   rho_t = pi(y_t) / pi_old(y_t)

  With k1 or k3 of `estimate`, the mean over the old policy's tokens is KL(policy, reference) of
  each token whatever the policy is, so that its gradient, which goes through rho, is exact; as a
  loss without rho, k3 is biased on policy too. With k2, abs and the forms with + it is not.

  Source: DeepSeek-V3.2, arXiv:2512.02556, equation 7; the default of
  huggingface/trl's GRPO since version 1.10. Differs from the source: the log-ratio is clamped to
  [-20, 20].

  Args:
    kl_BT: differentiable, nats.
    logps_BT, old_logps_BT: of the policy being updated and before the update, nats.
    learn_BT: bool; elsewhere the result is 0.
  Example:
    >>> divergence.correct_off_policy(jnp.array([[2.]]), jnp.log(jnp.array([[.5]])),
    ...                               jnp.log(jnp.array([[.25]])), jnp.array([[True]]))
    Array([[4.]], dtype=float32)
  """
  d_BT = jnp.where(learn_BT, logps_BT - old_logps_BT, 0)
  return jnp.where(learn_BT, _ratio.importance_ratio(d_BT, 0) * kl_BT, 0)


def adaptive_coef(coef: Array | float, kl: Array | float, *, target: float, horizon: int,
                  count: Array | int) -> Array:
  """The KL coefficient after `count` completions at divergence `kl`.

    coef <- coef (1 + clip(kl / target - 1, -0.2, 0.2) count / horizon)

  Source: Ziegler et al. 2019, arXiv:1909.08593, section 2.2. Differs from the
  paper: nothing known.

  Args:
    coef: the coefficient used.
    kl: mean divergence seen, in the unit of target.
    target: divergence aimed at.
    horizon: completions it takes to adapt.
    count: completions seen since the last call.
  Example:
    >>> divergence.adaptive_coef(1., kl=.04, target=.02, horizon=100, count=50)
    Array(1.1, dtype=float32, weak_type=True)
  """
  error = jnp.clip(kl / target - 1, -0.2, 0.2)
  return coef * (1 + error * count / horizon)


@method
def rehearsal(logps_BT: Array, ref_logps_BT: Array, learn_BT: Array, *, kind: Rehearsal = "forward",
              alpha: Annotated[float, ranges.Range(1e-6, 0.999999)] = 0.2) -> Array:
  """D_f(policy, reference) per token, from tokens that the *reference* sampled.

    u = pi(y_t) / pi_ref(y_t)
    forward      u - 1 - log u                              KL(ref, policy)
    reverse      u log u - u + 1                            KL(policy, ref)
    js           u log u - (u + 1) log((u + 1) / 2)         twice Jensen-Shannon
    js_mixture   half of js: the mean of both KL to the mixture (pi + pi_ref) / 2
    alpha        (u^(1 - alpha) - (1 - alpha) u - alpha) / (alpha (alpha - 1))

  All are 0 at u = 1, and positive elsewhere. A loss, with gradients, on stored answers
  of the reference: the mass it had is kept, where `estimate` asks on the policy's own
  samples only.

  Source: DPH-RL, Li et al. 2025, arXiv:2509.07430, and its code. Differs from the
  paper: the log-ratio is clamped to [-20, 20], with gradient 0 beyond; js_mixture is
  taken under the reference alone.

  Args:
    logps_BT: nats, differentiable.
    ref_logps_BT: nats, stored with the answers.
    learn_BT: bool; elsewhere the result is 0.
    kind: one of REHEARSALS.
    alpha: of alpha.
  Example:
    >>> divergence.rehearsal(jnp.log(jnp.array([[.5]])), jnp.log(jnp.array([[.25]])),
    ...                      jnp.array([[True]])).round(2)
    Array([[0.31]], dtype=float32)
  """
  d_BT = jnp.clip(logps_BT - ref_logps_BT, -20, 20)
  u_BT = jnp.exp(d_BT)
  if kind == "forward": return u_BT - 1 - d_BT
  if kind == "reverse": return u_BT * d_BT - u_BT + 1
  if kind == "alpha":
    power_BT = jnp.exp((1 - alpha) * d_BT)
    return (power_BT - (1 - alpha) * u_BT - alpha) / (alpha * (alpha - 1))
  js_BT = u_BT * d_BT - (u_BT + 1) * jnp.log((u_BT + 1) / 2)
  return js_BT if kind == "js" else js_BT / 2
