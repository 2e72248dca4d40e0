"""Modules whose functions are compiled as wholes.

An operation outside jit costs 25 ms when it is first met. That NaN on padding reaches nothing
where XLA does not simplify what it sees is in test_contracts.py, for every method.
"""
import functools
import inspect
import types

import jax
import numpy as np


# jax.jit, but that XLA does not rewrite `x * mask` to a select, which hides NaN.
jit = functools.partial(jax.jit, compiler_options=dict(xla_disable_hlo_passes="algsimp"))


@functools.cache
def _compiled(fn, options, compile_):
  return compile_(functools.partial(fn, **dict(options)))


def compile_module(module, compile_=jax.jit):
  """The module with its public functions under jit, in which named options are constants.

  A call with a number or a function in the place of an array is left as it is.
  """
  def whole(fn):
    @functools.wraps(fn)
    def call(*args, **named):
      if any(isinstance(x, int) or callable(x) for x in args): return fn(*args, **named)
      arrays = {k: v for k, v in named.items() if isinstance(v, (jax.Array, np.ndarray))}
      options = tuple((k, v) for k, v in named.items() if k not in arrays)
      return _compiled(fn, options, compile_)(*args, **arrays)
    return call
  return types.SimpleNamespace(**{
      name: whole(fn) for name, fn in inspect.getmembers(module, inspect.isfunction)
      if not name.startswith("_") and fn.__module__ == module.__name__})
