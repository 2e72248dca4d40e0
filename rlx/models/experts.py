"""A mixture of experts: each token goes through k of E gated MLPs, by one ragged product each.

Tokens are sorted by their expert, and `jax.lax.ragged_dot` multiplies the tokens of each expert
by its matrix. Experts have no capacity: no token is dropped, and the output of a token does not
depend on other tokens.
"""
import jax
import jax.numpy as jnp

from rlx.models import attention


def mix(x_UD, router_DE, gate_EDF, up_EDF, down_EFD, *, per_token, norm_topk, activated):
  """sum over a token's experts e of w_e down_e(activated(gate_e x, up_e x)).

    p = softmax(router x);  experts: the k largest p_e;  w_e = p_e [/ their sum]

  Source: Shazeer et al. 2017, arXiv:1701.06538; Jiang et al. 2024, arXiv:2401.04088.
  Differs from the papers: nothing known; there is no auxiliary loss that balances the load.

  Args:
    x_UD: tokens.
    per_token: k.
    norm_topk: whether the weights of a token sum to 1.
    activated: (gate, up) -> the input of `down`.
  Returns:
    y_UD, in the dtype of x.
  """
  (u, d), e = x_UD.shape, router_DE.shape[1]
  wide = jnp.promote_types(x_UD.dtype, jnp.float32)
  p_UE = jax.nn.softmax((x_UD @ router_DE).astype(wide), axis=-1)
  w_Uk, expert_Uk = jax.lax.top_k(p_UE, per_token)
  if norm_topk: w_Uk = w_Uk / jnp.sum(w_Uk, axis=-1, keepdims=True)
  order = jnp.argsort(expert_Uk.reshape(-1), stable=True)
  sizes_E = jnp.bincount(expert_Uk.reshape(-1), length=e).astype(jnp.int32)
  # Each token is repeated k times and sorted by expert; the products are sorted back.
  sorted_D = jnp.repeat(x_UD, per_token, axis=0)[order]
  hidden_F = activated(jax.lax.ragged_dot(sorted_D, gate_EDF, sizes_E),
                       jax.lax.ragged_dot(sorted_D, up_EDF, sizes_E))
  out_D = jax.lax.ragged_dot(hidden_F, down_EFD, sizes_E)
  y_UkD = out_D[jnp.argsort(order)].reshape(u, per_token, d)
  return attention.multiply("UkD,Uk->UD", y_UkD, w_Uk.astype(x_UD.dtype)).astype(x_UD.dtype)
