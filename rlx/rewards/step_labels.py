"""Labels and value targets of steps and tokens, to train process reward models.

They are made from what rollouts from a step's end reached. Arrays in, arrays out,
so they stand with the rewards; only `bisect_first_error` is for the host, since
it decides where to sample next. The values of prefixes that completions share are
core.prefixes.values.

Math-Shepherd, Wang et al. 2023, arXiv:2312.08935.
"""
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked
from rlx.core import ranges
from rlx.core.method import method

Kind = Literal["hard", "soft", "until_first_zero", "monotone", "relative"]
KINDS = get_args(Kind)


@method
def from_values(values_BJ: Array, mask_BJ: Array, start_B: Array | None = None, *,
                kind: Kind = "hard", threshold: ranges.Share = 0.8) -> Array:
  """Labels of steps from Monte-Carlo values v_j = share of right rollouts after j.

    hard:              1[v_j > 0]
    soft:              v_j
    until_first_zero:  1[v_i > 0 for all i <= j]
    monotone:          1[v_i > 0 for some i >= j]
    relative:          1[v_j > 0 and v_j >= threshold v_{j-1}]

  Source: hard and soft, Math-Shepherd, Wang et al. 2023, arXiv:2312.08935;
  until_first_zero, Zhang et al. 2025, arXiv:2501.07301; monotone, SORM, Havrilla
  et al. 2024, arXiv:2402.10963; relative, GenPRM, Zhao et al. 2025,
  arXiv:2504.00891. Differs from the papers: relative is written without the ratio
  v_j / v_{j-1}, which has no value after a step from which nothing was right.

  Args:
    values_BJ: in [0, 1]; anything where there is no step.
    mask_BJ: bool, the steps there are; they come first.
    start_B: value of the prompt, before the first step; None labels the first
      step by v_1 > 0. Only relative reads it.
    kind: one of KINDS.
    threshold: of relative.
  Returns:
    labels_BJ, 0 where there is no step.
  Raises:
    ValueError: unknown kind.
  """
  if kind == "soft": return values_BJ
  labels_BJ = values_BJ > 0
  if kind == "until_first_zero":
    labels_BJ = jnp.cumsum(~labels_BJ, axis=1) == 0
  elif kind == "monotone":
    labels_BJ = jnp.cumsum(labels_BJ[:, ::-1], axis=1)[:, ::-1] > 0
  elif kind == "relative":
    start_B1 = values_BJ[:, :1] if start_B is None else start_B[:, None]
    before_BJ = jnp.concatenate([start_B1, values_BJ[:, :-1]], axis=1)
    labels_BJ &= values_BJ >= threshold * before_BJ
  return labels_BJ.astype(values_BJ.dtype)


@method
def first_error(labels_BJ: Array, mask_BJ: Array) -> Array:
  """Index of the first step with label < 1/2.

    e_i = min {j : y_j < 1/2}, -1 if there is none

  Source: the labels of ProcessBench, Zheng et al. 2024, arXiv:2412.06559. Differs
  from the paper: nothing known.

  Args:
    labels_BJ: in [0, 1]; anything where there is no step.
    mask_BJ: bool.
  Returns:
    error_B, int32.
  """
  is_wrong_BJ = mask_BJ & (labels_BJ < 0.5)
  return jnp.where(jnp.any(is_wrong_BJ, axis=1), jnp.argmax(is_wrong_BJ, axis=1), -1)


@method
def consensus(labels_BJ: Array, judged_BJ: Array, mask_BJ: Array) -> Array:
  """Whether two labellers put the first error at the same step, or see none.

    keep_i = 1[first_error(labels_i) = first_error(judged_i)]

  Source: consensus filtering, Zhang et al. 2025, arXiv:2501.07301.
  Differs from the paper: the judge there is a language model, here any labeller.

  Args:
    labels_BJ: from Monte-Carlo values.
    judged_BJ: by a judge that knows nothing of them.
    mask_BJ: bool.
  Returns:
    keep_B, bool; False for a row without steps.
  """
  same_B = first_error(labels_BJ, mask_BJ) == first_error(judged_BJ, mask_BJ)
  return same_B & jnp.any(mask_BJ, axis=1)


@method
def rest_mcts(errors_BJ: Array, mask_BJ: Array, remaining_BJ: Array | None = None) -> Array:
  """Value targets that grow with right steps and near 1 at the end of a solution.

    v_j = max(v_{j-1} + w_j, 0),   v_0 = 0
    w_j = (1 - v_{j-1}) / (m_j + 1) (1 - 2 e_j)

  A solution of K right steps has v_j = j / K.

  Source: ReST-MCTS*, Zhang et al. 2024, arXiv:2406.03816. Differs from
  the paper: e_j, which it calls the process reward, is read as an error flag, the
  only reading in which right steps raise the value.

  Args:
    errors_BJ: e_j, 1 for a wrong step; anything where there is no step.
    mask_BJ: bool, the steps there are; they come first.
    remaining_BJ: m_j, the fewest steps from the end of j to a right answer; None
      takes those that the row itself still has.
  Returns:
    values_BJ, 0 where there is no step.
  """
  if remaining_BJ is None:
    remaining_BJ = jnp.cumsum(mask_BJ[:, ::-1], axis=1)[:, ::-1] - 1
  sign_BJ = 1 - 2 * masked.where_valid(errors_BJ, mask_BJ)
  rate_BJ = masked.where_valid(sign_BJ / (masked.where_valid(remaining_BJ, mask_BJ) + 1), mask_BJ)

  def step(value_B, rate_B):
    value_B = jnp.maximum(value_B + (1 - value_B) * rate_B, 0)
    return value_B, value_B

  _, values_JB = jax.lax.scan(step, jnp.zeros_like(rate_BJ[:, 0]), rate_BJ.T)
  return masked.where_valid(values_JB.T, mask_BJ)


@method
def omega_priority(values_N: Array, visits_N: Array, lengths_NR: Array, wrong_NR: Array, *,
                   alpha: ranges.Share = 0.5, beta: ranges.Share = 0.9, length: ranges.Count = 500,
                   c: ranges.NotNegative = 0.125) -> Array:
  """Which rollout to search for its first error next: the highest of

    Q(s, r) + U(s)
    Q(s, r) = alpha^(1 - MC(s)) beta^(len(r) / length)
    U(s) = c sqrt(sum_i visits(s_i)) / (1 + visits(s))

  Source: OmegaPRM, Luo et al. 2024, arXiv:2406.06592. Differs from
  the paper: nothing known.

  Args:
    values_N: MC(s), the share of right rollouts from each of N prefixes.
    visits_N: how often each was chosen before; 0 for a row that is no prefix.
    lengths_NR: tokens of each prefix's R rollouts.
    wrong_NR: bool, the rollouts that are there and failed; only these are searched.
    alpha, beta, length, c: as in the equations; length in tokens.
  Returns:
    priority_NR, -inf where there is nothing to find: the rollout is not wrong, or
    all or none of the prefix's rollouts are right.
  """
  explore_N = c * jnp.sqrt(jnp.sum(visits_N)) / (1 + visits_N)
  exploit_NR = alpha ** (1 - values_N)[:, None] * beta ** (lengths_NR / length)
  is_open_N = (values_N > 0) & (values_N < 1)
  return jnp.where(wrong_NR & is_open_N[:, None],
                   exploit_NR + explore_N[:, None], -jnp.inf)


def bisect_first_error(is_open, steps):
  """The first wrong step of a failed completion, in at most ceil(log2 steps) calls.

    low = 0, high = steps;  while high - low > 1:  middle = floor((low + high) / 2),
    low = middle if is_open(middle) else high = middle

  Source: OmegaPRM, Luo et al. 2024, arXiv:2406.06592. Differs from the
  paper: nothing known. If values are not monotone the step returned is still one
  before which the answer could be reached and after which it could not.

  Args:
    is_open: k -> bool, whether some rollout from the first k steps is right, for
      0 < k < steps. The prompt is taken to be open and the whole not.
    steps: how many the completion has.
  Returns:
    index of the step, from 0.
  Raises:
    ValueError: steps < 1.
  """
  if steps < 1: raise ValueError(f"steps={steps!r}: must be >= 1.")
  low, high = 0, steps
  while high - low > 1:
    middle = (low + high) // 2
    if is_open(middle): low = middle
    else: high = middle
  return low
