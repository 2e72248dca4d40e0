"""A mixture of experts: each token goes through k of E gated MLPs, by one ragged product each.

Tokens are sorted by their expert, so that those of one expert are neighbours and
`jax.lax.ragged_dot` multiplies each stretch by that expert's matrix: no capacity, no token
is dropped, and what a token gets does not depend on the others.
"""
import jax
import jax.numpy as jnp


def mix(x_MD, router_DE, gate_EDF, up_EDF, down_EFD, *, per_token, norm_topk, activated):
  """sum over a token's experts e of w_e down_e(activated(gate_e x, up_e x)).

    p = softmax(router x);  experts: the k largest p_e;  w_e = p_e [/ their sum]

  Source: Shazeer et al. 2017, arXiv:1701.06538; Jiang et al. 2024, arXiv:2401.04088.
  Differs from the papers: nothing known. A loss that balances the load is none of its business.

  Args:
    x_MD: M tokens.
    per_token: k.
    norm_topk: a token's weights sum to 1.
    activated: (gate, up) -> what `down` multiplies.
  Returns:
    y_MD, in the dtype of x.
  """
  (m, d), e = x_MD.shape, router_DE.shape[1]
  wide = jnp.promote_types(x_MD.dtype, jnp.float32)
  p_ME = jax.nn.softmax((x_MD @ router_DE).astype(wide), axis=-1)
  w_Mk, expert_Mk = jax.lax.top_k(p_ME, per_token)
  if norm_topk: w_Mk = w_Mk / jnp.sum(w_Mk, axis=-1, keepdims=True)
  order = jnp.argsort(expert_Mk.reshape(-1), stable=True)
  sizes_E = jnp.bincount(expert_Mk.reshape(-1), length=e).astype(jnp.int32)
  # Every token k times, then in the order of experts and, after the products, back.
  sorted_D = jnp.repeat(x_MD, per_token, axis=0)[order]
  hidden_F = activated(jax.lax.ragged_dot(sorted_D, gate_EDF, sizes_E),
                       jax.lax.ragged_dot(sorted_D, up_EDF, sizes_E))
  out_D = jax.lax.ragged_dot(hidden_F, down_EFD, sizes_E)
  y_MkD = out_D[jnp.argsort(order)].reshape(m, per_token, d)
  return jnp.einsum("MkD,Mk->MD", y_MkD, w_Mk.astype(x_MD.dtype),
                    preferred_element_type=wide).astype(x_MD.dtype)
