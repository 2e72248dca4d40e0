"""Value model: a decoder with a head, and the value, or the score, of each state.

A value model has the head plain. Scorers may have others, of which a state gets several numbers o:

  plain    s = o_1
  spread   s = o_1, its spread sigma = softplus(o_2) + 0.001
  product  s = logit(sigmoid(o_1) sigmoid(o_2)): the log-odds that both of two things hold
  mixture  s = sum_k pi_k o_k, pi = softmax(o_{K+1}, ..., o_{2K}) of the end of the prompt

Source: spread, Yan et al. 2024, arXiv:2409.15360; product, DuaShepherd, Wu et al. 2025,
arXiv:2506.17533 (from memory, unverified); mixture, MiCRo, Shen et al. 2025, arXiv:2505.24846 (from
memory, unverified).
"""
import jax
import jax.numpy as jnp

from rlx.core import masked
from rlx.models import logps, transformer

HEADS = ("plain", "spread", "product", "mixture")
_LEAST = 1e-3  # A spread of 0 would make the likelihood of a rating infinite.


def count_outputs(kind, heads):
  """How many numbers a head of HEADS gives; `heads` is K of a mixture."""
  return dict(plain=1, mixture=2 * max(heads, 2)).get(kind, 2)


def init(config, params):
  """A decoder's parameters, or adapters, with a value head: their own, or one that is zero.

  A separate token head is left out, because it has no gradient. The value head has the dtype of
  `params`. The heads of a mixture start with small random numbers: equal ones would stay equal. The
  axis 1 of the parameters is that of config.outputs.
  """
  decoder = {name: params[name] for name in ("embed", "layers", "norm") if name in params}
  dtype = jax.tree.leaves(decoder)[0].dtype
  w_D1 = jnp.zeros((config.d_model, config.outputs), dtype)
  if config.score_head == "mixture":
    w_D1 = (0.1 * config.d_model**-0.5
            * jax.random.normal(jax.random.key(0), w_D1.shape)).astype(dtype)
  head = {"w_D1": w_D1, "b_1": jnp.zeros((config.outputs,), dtype)}
  own = params.get("value", {})
  return {**decoder, "value": own if jax.tree.map(jnp.shape, own) == jax.tree.map(jnp.shape, head)
          else head}


def values(params, config, tokens_BS, positions_BS, valid_BS, *, completion_width, plan=None):
  """V(x, y_<t): the value of the state before each completion token, by the head of the config.

  Args, Returns: as `outputs`, values_BT.
  """
  numbers_BTC = outputs(params, config, tokens_BS, positions_BS, valid_BS,
                        completion_width=completion_width, plan=plan)
  return masked.where_valid(combine(config, numbers_BTC), valid_BS[:, -completion_width:])


def combine(config, outputs_BTC):
  """scores_BT of a head's numbers, whose first column is the state at the end of the prompt."""
  if config.score_head == "mixture":
    heads_BTK, routing_B1K = split_mixture(outputs_BTC)
    return jnp.sum(heads_BTK * routing_B1K, axis=2)
  if config.score_head != "product": return outputs_BTC[..., 0]
  a_BT, b_BT = outputs_BTC[..., 0], outputs_BTC[..., 1]
  return a_BT + b_BT - jnp.logaddexp(0., jnp.logaddexp(a_BT, b_BT))


def spreads(outputs_BTC):
  """sigma_BT of the head spread."""
  return jax.nn.softplus(outputs_BTC[..., 1]) + _LEAST


def split_mixture(outputs_BTC):
  """(the K heads' scores_BTK, the probabilities routing_B1K of a prompt) of `outputs`."""
  k = outputs_BTC.shape[2] // 2
  return outputs_BTC[..., :k], jax.nn.softmax(outputs_BTC[:, :1, k:], axis=2)


def outputs(params, config, tokens_BS, positions_BS, valid_BS, *, completion_width, plan=None):
  """outputs_BTC of `outputs_and_features`; args as there."""
  return outputs_and_features(params, config, tokens_BS, positions_BS, valid_BS,
                              completion_width=completion_width, plan=plan)[0]


@transformer.exact_products
def outputs_and_features(params, config, tokens_BS, positions_BS, valid_BS, *, completion_width,
                         plan=None):
  """What a head gives of the state before each completion token, its C numbers, and the state.

  Args:
    params: from `init`.
    config, tokens_BS, positions_BS, valid_BS: see `transformer.hidden`.
    completion_width: T; the completions are the last T of the S columns.
    plan: see `logps.logps`.
  Returns:
    outputs_BTC and features_BTD, the hidden states that the head reads: float32, 0 on padding.
  """
  hidden_BTD, _, mask_BT, spread = logps.compute_hidden(
      params, config, tokens_BS, positions_BS, valid_BS, completion_width, plan)
  head = params["value"]
  wide = jnp.promote_types(config.dtype, jnp.float32)
  features_BTD = hidden_BTD.astype(wide)
  outputs_BTC = jnp.stack([spread(masked.where_valid(
      jnp.einsum("BTD,D->BT", features_BTD, w_D) + b, mask_BT))
                           for w_D, b in zip(head["w_D1"].astype(wide).T,
                                             head["b_1"].astype(wide))], axis=2)
  return outputs_BTC, spread(masked.where_valid(features_BTD, mask_BT[..., None]))
