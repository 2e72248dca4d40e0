"""The decorator of rewards, estimators, losses and weights: checks, and masks of padding."""
import functools
import inspect
import re
from typing import Any, Callable, Literal, Mapping, TypeVar, get_args, get_origin, overload

import jax
import jax.numpy as jnp

from rlx.core import axes, fields

Function = TypeVar("Function", bound=Callable)
COMPUTED: Any = None  # Default of arguments in `whole`, which are never None inside of the method.


@overload
def method(fn: Function) -> Function: ...
@overload
def method(*, unmasked: tuple[str, ...] = (), whole: Mapping[str, Callable] = {},
           **facts: Any) -> Callable[[Function], Function]: ...
def method(fn=None, *, unmasked=(), whole={}, **facts):
  """Decorator: checks the arguments of a method, and keeps padding out of it.

    @method
    def rloo(rewards_PG, learn_PG): ...

    @method(centres=True)
    def mean_baseline(rewards_PG, learn_PG): ...

  Arrays must have the axes that their names end in and agree on their sizes (`axes.dims`); an
  option annotated with Literal must be one of its values. The arguments learn_*, valid_* and
  mask_* are masks. Outside of the masks, floating-point arguments and results are set to 0: an
  array that starts with the axes of a mask is masked by it, and a mask [P, G] applies to arrays
  [B, ...] too. Since values are selected before anything is computed, padding may hold anything,
  NaN too, and has gradient 0. The results have no names: an array in them is masked by each mask
  whose shape its own shape begins with.

  Args:
    unmasked: names of arrays to pass as they are; "return" is the result, for one whose shape can
      be that of a mask by chance.
    whole: {argument: statistic} of arguments that are computed over the whole minibatch. A
      statistic is a function like the method, whose parameters are fields and options of the
      method. It returns constants, one row for each row of the fields: learner.py computes it
      before the minibatch is cut into microbatches, and each gets its rows. Decisions (a mask,
      weights) are better than thresholds, which a token at the threshold may pass in one program
      and not in another. If the argument is None, the statistic is of the rows given.
    facts: properties of the method, set as attributes of the function:
      unread: {argument: options -> whether the method does not read it with these options}.
      centres: the estimator subtracts the mean of each group, so that a constant added to all
        rewards of a group has no effect.
      scales: it also divides by the spread of the group, so that a factor has no effect either.
      cancelled: for a reward, ((attribute of the estimator, options, what is left), ...): an
        estimator with this attribute cancels the reward that has these options.
      adds_later: unless its gamma is 0, the estimator adds the rewards of later tokens or steps to
        a step's own.
      unchanged: the reward is what the verifier returned, so it can be compared with the verdict
        of another completion.
      aggregation: the learner.aggregation that the loss is defined for; others are refused.
  """
  if fn is None: return functools.partial(method, unmasked=unmasked, whole=whole, **facts)
  signature = inspect.signature(fn)
  choices = {p.name: get_args(p.annotation) for p in signature.parameters.values()
             if get_origin(p.annotation) is Literal}

  @functools.wraps(fn)
  def check_and_call(*args, **kwargs):
    call = signature.bind(*args, **kwargs)
    call.apply_defaults()
    for name, allowed in choices.items():
      if call.arguments[name] not in allowed:
        raise ValueError(f"{name}={call.arguments[name]!r}: one of {allowed}.")
    arrays = {name: x for name, x in call.arguments.items()
              if x is not None and fields.axes_of(name)}
    axes.dims(**arrays)
    masks = {fields.axes_of(name): x for name, x in arrays.items()
             if re.match("(learn|valid|mask)_", name)}
    if "PG" in masks: masks.setdefault("B", masks["PG"].reshape(-1))
    for name, x in arrays.items():
      if name in unmasked or not jnp.issubdtype(x.dtype, jnp.floating): continue
      for letters, mask in masks.items():
        if fields.axes_of(name).startswith(letters): x = _select(x, mask)
      call.arguments[name] = x
    for name, statistic in whole.items():
      if call.arguments[name] is None:
        call.arguments[name] = statistic(**{
            p: call.arguments[p] for p in inspect.signature(statistic).parameters})
    result = fn(*call.args, **call.kwargs)
    for mask in masks.values() if "return" not in unmasked else ():
      result = jax.tree.map(
          lambda x: _select(x, mask) if jnp.shape(x)[:mask.ndim] == mask.shape else x, result)
    return result

  vars(check_and_call).update(facts, whole=whole)
  return check_and_call


def _select(x, mask):
  """`x` where the mask of its first axes is True, else 0."""
  return jnp.where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), x, jnp.zeros_like(x))
