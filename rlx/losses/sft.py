"""Supervised fine-tuning."""
from rlx.core import axes
from rlx.core import masked


def nll(logps_BT, learn_BT):
  """Negative log-likelihood of the demonstrated tokens.

    l_t = - log pi(y_t | x, y_<t)

  Source: Ouyang et al. 2022, arXiv:2203.02155, section 3.5 (SFT). Differs from
  the paper: nothing known. Aggregate with token-mean.

  Args:
    logps_BT: differentiable; anything on padding.
    learn_BT: bool, the tokens to learn.
  Returns:
    loss_BT, 0 on padding.
  """
  axes.dims(logps_BT=logps_BT, learn_BT=learn_BT)
  return -masked.where_valid(logps_BT, learn_BT)
