"""The decorator of rewards, estimators, losses and weights: checks, and masks of padding."""
import functools
import inspect
import re
from typing import Any, Callable, Literal, Mapping, TypeVar, get_args, get_origin, overload

import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import axes, fields

Function = TypeVar("Function", bound=Callable)
COMPUTED: Any = None  # Default of arguments in `whole`, which are never None inside of the method.
INITIAL: Any = None   # Default of arguments in `state`, likewise.


@overload
def method(fn: Function) -> Function: ...
@overload
def method(*, unmasked: tuple[str, ...] = (), whole: Mapping[str, Callable] = {},
           state: Mapping[str, Any] = {}, **facts: Any) -> Callable[[Function], Function]: ...
def method(fn=None, *, unmasked=(), whole={}, state={}, **facts):
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
    state: {keyword-only argument: initial value} of what the method keeps between steps. The method
      then returns (value, metrics, {argument: next value}), and a run gives it the next value at
      the next step. An initial value is a number, an array, or a function of options of the
      method, by name; it is repeated along the axes that the name ends in. Numbers are float32. If
      the argument is None, it is the initial value. For rewards, estimators and
      learner.reward_std_filter, which run once in a step.
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
  if fn is None: return functools.partial(method, unmasked=unmasked, whole=whole, state=state,
                                          **facts)
  signature = inspect.signature(fn)
  keywords = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
  if missing := sorted(set(state) - set(keywords)):
    raise ValueError(f"{fn.__name__}: the state {missing[0]!r} is no keyword-only argument of it.")
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
    sizes = axes.dims(**arrays)
    before = {name: x for name, x in call.arguments.items() if name in state and x is not None}
    before |= make_state({name: x for name, x in state.items() if name not in before},
                         call.arguments, sizes)
    call.arguments.update(before)
    masks = _find_masks(arrays)
    for name, x in arrays.items():
      if name in unmasked or name in state or not jnp.issubdtype(x.dtype, jnp.floating): continue
      for letters, mask in masks.items():
        if fields.axes_of(name).startswith(letters): x = _select(x, mask)
      call.arguments[name] = x
    for name, statistic in whole.items():
      if call.arguments[name] is None:
        call.arguments[name] = _call_by_name(statistic, call.arguments)
    result = fn(*call.args, **call.kwargs)
    after = ()
    if state: *result, after = _split_state(fn.__name__, result, before)
    for mask in masks.values() if "return" not in unmasked else ():
      result = jax.tree.map(
          lambda x: _select(x, mask) if jnp.shape(x)[:mask.ndim] == mask.shape else x, result)
    return (*result, after) if state else result

  vars(check_and_call).update(facts, whole=whole, initial_state=state)
  return check_and_call


def _find_masks(arrays):
  """{axis letters: mask} of the arguments that say which rows, tokens, ... are valid."""
  masks = {fields.axes_of(name): x for name, x in arrays.items()
           if re.match("(learn|valid|mask)_", name)}
  if "PG" in masks: masks.setdefault("B", masks["PG"].reshape(-1))
  return masks


def _call_by_name(fn, arguments):
  """`fn` of those of the arguments that it has parameters for."""
  return fn(**{name: arguments[name] for name in inspect.signature(fn).parameters})


def _select(x, mask):
  """`x` where the mask of its first axes is True, else 0."""
  return jnp.where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), x, jnp.zeros_like(x))


def make_state(state: Mapping[str, Any], options: Mapping[str, Any],
               sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
  """The state that a method starts with.

  Args:
    state: of `method`.
    options: the method's options.
    sizes: {axis letter: size} of the axes that names end in.
  Returns:
    {name: array}.
  Raises:
    ValueError: an axis has no size, or the value does not fit the axes.
  """
  initial = {}
  for name, value in state.items():
    if callable(value): value = _call_by_name(value, options)
    x = np.asarray(value, getattr(value, "dtype", np.float32))
    shape: Any = tuple(sizes.get(letter) for letter in fields.axes_of(name))
    try:
      initial[name] = np.broadcast_to(x, shape if fields.axes_of(name) else x.shape).astype(
          jax.dtypes.canonicalize_dtype(x.dtype))
    except (TypeError, ValueError):
      raise ValueError(f"name: its state {name} starts with an array of shape {x.shape}; its axes "
                       f"have the sizes {shape}, None if it is not known.") from None
  return initial


def _split_state(name, result, before):
  """(value, metrics, state) that a method with state returned, the state in its dtypes."""
  if not isinstance(result, tuple) or len(result) != 3 or set(result[2]) != set(before):
    raise ValueError(f"name: {name} has the state {sorted(before)}, and returns (value, metrics, "
                     "{name: next value of each of them}).")
  value, metrics, after = result
  describe = lambda x: f"{jnp.result_type(x)}{list(jnp.shape(x))}"
  for key, x in before.items():
    is_same_kind = jnp.can_cast(jnp.result_type(after[key]), jnp.result_type(x), "same_kind")
    if jnp.shape(after[key]) != jnp.shape(x) or not is_same_kind:
      raise ValueError(f"name: {name} makes its state {key} {describe(after[key])}; it was "
                       f"{describe(x)}.")
  # Without weak types, for which the program of the next step would be compiled again.
  return value, metrics, {
      key: jax.lax.convert_element_type(jax.lax.stop_gradient(after[key]), jnp.result_type(x))
      for key, x in before.items()}
