"""Whitening of advantages, after the terms are summed."""
from jax import Array

from rlx.core import masked
from rlx.core.method import method


@method
def whiten(advantages_BT: Array, learn_BT: Array) -> Array:
  """Mean 0 and variance 1 over all valid tokens of the batch.

    A <- (A - mean A) / sqrt(var A + 1e-8)     var unbiased

  Source: masked_whiten of the released PRIME code, arXiv:2502.01456. Differs
  from the released code: padding gets 0.

  Token-weighted: long completions dominate mean and variance.

  Example:
    >>> normalize.whiten(jnp.array([[1., 2., 3.]]), jnp.ones((1, 3), bool))
    Array([[-1.,  0.,  1.]], dtype=float32)
  """
  return masked.whiten(advantages_BT, learn_BT)
