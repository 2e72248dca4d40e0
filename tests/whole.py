"""Modules whose functions are compiled as wholes.

An operation outside jit costs 25 ms when it is first met. That NaN on padding reaches nothing
where XLA does not simplify what it sees is in test_contracts.py, for every method.
"""
import functools
import inspect
import types

import jax
import numpy as np


@functools.cache
def _compiled(fn, options):
  return jax.jit(functools.partial(fn, **dict(options)))


def compile_module(module):
  """The module with its public functions under jit, in which named options are constants.

  A call with a number or a function in the place of an array is left as it is.
  """
  def whole(fn):
    @functools.wraps(fn)
    def call(*args, **named):
      if any(isinstance(x, int) or callable(x) for x in args): return fn(*args, **named)
      arrays = {k: v for k, v in named.items() if isinstance(v, (jax.Array, np.ndarray))}
      return _compiled(fn, tuple((k, v) for k, v in named.items() if k not in arrays))(
          *args, **arrays)
    return call
  return types.SimpleNamespace(**{
      name: whole(fn) for name, fn in inspect.getmembers(module, inspect.isfunction)
      if not name.startswith("_") and fn.__module__ == module.__name__})
