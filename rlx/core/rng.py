"""Random keys from names, so that a resumed or re-batched run draws the same."""
import zlib

import jax
import numpy as np


def key(seed, stream, *path):
  """Key of (seed, stream, *path); integers may be traced.

    key = fold_in(... fold_in(fold_in(key(seed), crc32(stream)), path_0) ...)

  Args:
    seed: the run's seed.
    stream: a name such as "sample" or "shuffle"; streams are independent.
    *path: step, prompt id, sample, position, ...; ints in [0, 2**32).
  """
  k = jax.random.fold_in(jax.random.key(seed), zlib.crc32(stream.encode()))
  for i in path:
    k = jax.random.fold_in(k, i)
  return k


def number(text):
  """A stable 32-bit number of a string, to fold into a key."""
  return zlib.crc32(text.encode())


def secret(seed, stream):
  """32 hex digits of (seed, stream), for hashes where no key of jax can be taken."""
  bits = jax.jit(jax.random.bits, static_argnums=1)(key(seed, stream), 4)
  return np.asarray(bits).astype(">u4").tobytes().hex()
