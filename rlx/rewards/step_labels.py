"""Labels and value targets of steps and tokens, to train process reward models.

They are made from what rollouts from a step's end reached. Arrays in, arrays out,
so they stand with the rewards; only `bisect_first_error` is for the host, since
it decides where to sample next. The values of prefixes that completions share are
core.prefixes.values.

Math-Shepherd, Wang et al. 2023, arXiv:2312.08935.
"""
from typing import Literal, get_args

import jax.numpy as jnp
from jax import Array

from rlx.core import ranges
from rlx.core.method import method

Kind = Literal["hard", "soft", "until_first_zero", "monotone", "relative"]
KINDS = get_args(Kind)
OF_STEPS, OF_TOKENS = (*KINDS, "both"), ("prefixes", "spans")
LABELS = (*OF_STEPS, *OF_TOKENS, "outcome")  # What a head learns, see train_scorer.labels.


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
  Example:
    >>> step_labels.from_values(jnp.array([[.5, 0.]]), jnp.ones((1, 2), bool))
    Array([[1., 0.]], dtype=float32)
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
  Example:
    >>> step_labels.first_error(jnp.array([[1., 0., 1.]]), jnp.ones((1, 3), bool))
    Array([1], dtype=int32)
  """
  is_wrong_BJ = mask_BJ & (labels_BJ < 0.5)
  return jnp.where(jnp.any(is_wrong_BJ, axis=1), jnp.argmax(is_wrong_BJ, axis=1), -1)


@method
def consensus(labels_BJ: Array, judged_BJ: Array, mask_BJ: Array) -> Array:
  """Whether two labellers agree on the first wrong step, or on that there is none.

    keep_i = 1[first_error(labels_i) = first_error(judged_i)]

  Source: consensus filtering, Zhang et al. 2025, arXiv:2501.07301.
  Differs from the paper: the judge there is a language model, here any labeller.

  Args:
    labels_BJ: from Monte-Carlo values.
    judged_BJ: by a judge that knows nothing of them.
    mask_BJ: bool.
  Returns:
    keep_B, bool; False for a row without steps.
  Example:
    >>> step_labels.consensus(jnp.array([[1., 0.]]), jnp.array([[0., 0.]]), jnp.ones((1, 2), bool))
    Array([False], dtype=bool)
  """
  same_B = first_error(labels_BJ, mask_BJ) == first_error(judged_BJ, mask_BJ)
  return same_B & jnp.any(mask_BJ, axis=1)


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
  Example:
    >>> step_labels.bisect_first_error(lambda k: k < 3, steps=5)
    2
  """
  if steps < 1: raise ValueError(f"steps={steps!r}: must be >= 1.")
  low, high = 0, steps
  while high - low > 1:
    middle = (low + high) // 2
    if is_open(middle): low = middle
    else: high = middle
  return low
