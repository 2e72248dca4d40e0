"""Value model: a decoder with a scalar head, and the value of each state."""
import jax
import jax.numpy as jnp

from rlx.core import masked
from rlx.models import logps, transformer


def init(config, params):
  """A decoder's parameters, or adapters, with a value head: their own, or one that is zero.

  A separate token head is left out, because it has no gradient. The value head has the dtype of
  `params`.
  """
  decoder = {name: params[name] for name in ("embed", "layers", "norm") if name in params}
  dtype = jax.tree.leaves(decoder)[0].dtype
  head = {"w_D1": jnp.zeros((config.d_model, 1), dtype), "b_1": jnp.zeros((1,), dtype)}
  return {**decoder, "value": params.get("value", head)}


@transformer.exact_products
def values(params, config, tokens_BS, positions_BS, valid_BS, *, completion_width, plan=None):
  """V(x, y_<t): the value of the state before each completion token.

  Args:
    params: from `init`.
    config, tokens_BS, positions_BS, valid_BS: see `transformer.hidden`.
    completion_width: T; the completions are the last T of the S columns.
    plan: see `logps.logps`.
  Returns:
    values_BT: float32, 0 on padding.
  """
  hidden_BTD, _, mask_BT, spread = logps.compute_hidden(
      params, config, tokens_BS, positions_BS, valid_BS, completion_width, plan)
  head = params["value"]
  wide = jnp.promote_types(config.dtype, jnp.float32)
  values_BT = jnp.einsum("BTD,D->BT", hidden_BTD.astype(wide),
                         head["w_D1"][:, 0].astype(wide)) + head["b_1"].astype(wide)[0]
  return spread(masked.where_valid(values_BT, mask_BT))
