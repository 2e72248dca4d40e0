"""Supervised fine-tuning."""
from jax import Array

from rlx.core.method import method


@method
def nll(logps_BT: Array, learn_BT: Array) -> Array:
  """Negative log-likelihood of the demonstrated tokens.

    l_t = - log pi(y_t | x, y_<t)

  Source: Ouyang et al. 2022, arXiv:2203.02155, section 3.5 (SFT). Differs from
  the paper: nothing known. Aggregate with token-mean.

  Args:
    logps_BT: differentiable; anything on padding.
    learn_BT: bool, the tokens to learn.
  Returns:
    loss_BT, 0 on padding.
  Example:
    >>> sft.nll(jnp.array([[-1., -2.]]), jnp.array([[True, False]]))
    Array([[1., 0.]], dtype=float32)
  """
  return -logps_BT
