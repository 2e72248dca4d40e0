"""Writes plain values into a sandbox, as Python source, and reads them from it, as JSON.

The JSON is written by an untrusted solution. Reading takes time proportional to its length,
which is limited, and returns plain values only: None, numbers, strings, bytes, lists, tuples,
sets, dicts, and `Iterable` for any other iterable.
"""
import collections.abc
import json

MAX_BYTES = 2**20   # Size of a result.
MAX_DEPTH = 100     # Nested lists.
MAX_BITS = 2**17    # Size of an integer.
MAX_LENGTH = 2**20  # Length of a string or list that is not a result.
_SAME_HASH = 16     # Different members of a set, or keys of a dict, with the same hash.
PLAIN = (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict)


class Iterable:
  """The items of a generator or another iterable of no plain type; equal to itself alone."""

  def __init__(self, items):
    self.items = list(items)

  def __iter__(self):
    return iter(self.items)


def decode(printed):
  """Returns the value in the bytes that `encode` of _solution.py wrote.

  Raises:
    ValueError: the bytes, which may be anything, are not a value within the limits.
  """
  if len(printed) > MAX_BYTES: raise ValueError(f"more than {MAX_BYTES} bytes")
  try:
    return _decode(json.loads(printed), 0)
  except (TypeError, KeyError, OverflowError, RecursionError) as e:
    raise ValueError(f"no value: {e}") from None


def _decode(x, depth):
  if x is None or isinstance(x, (bool, str)): return x
  if depth > MAX_DEPTH: raise ValueError("nested too deeply")
  if not isinstance(x, list) or len(x) != 2: raise ValueError("no value")
  kind, content = x
  if isinstance(content, str) and kind in _NUMBERS: return _NUMBERS[kind](content)
  if not isinstance(content, list): raise ValueError("no value")
  if kind == "dict":
    pairs = [(_decode(k, depth + 1), _decode(v, depth + 1)) for k, v in content]
    check_hashes(k for k, _ in pairs)
    return dict(pairs)
  items = [_decode(v, depth + 1) for v in content]
  if kind in ("set", "frozenset"): check_hashes(items)
  return _CONTAINERS[kind](items)


def _integer(text):
  if len(text) > MAX_BITS // 4: raise ValueError("too many digits")
  return int(text, 16)


def _complex(text):
  real, imag = map(float.fromhex, text.split())
  return complex(real, imag)


_NUMBERS = {"int": _integer, "float": float.fromhex, "complex": _complex, "bytes": bytes.fromhex}
_CONTAINERS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset,
               "iterable": Iterable}


def check_hashes(values):
  """Checks members of a set or keys of a dict: equal hashes would take quadratic time.

  Raises:
    ValueError: too many values have the same hash.
    TypeError: a value has no hash.
  """
  by_hash = {}
  for v in values:
    same = by_hash.setdefault(hash(v), [])
    if v not in same: same.append(v)
    if len(same) > _SAME_HASH: raise ValueError("too many values with one hash")


def weigh(value, limit, marker):
  """Returns (size of a value in numbers, up to about `limit`; whether it contains `marker`)."""
  n, stack, has_marker = 0, [value], False
  while stack and n < limit:
    x = stack.pop()
    n += 1
    has_marker = has_marker or x is marker
    if isinstance(x, (str, bytes)): n += len(x) // 64
    elif isinstance(x, int): n += x.bit_length() // 64
    elif isinstance(x, dict): stack += [*x.keys(), *x.values()]
    elif isinstance(x, (list, tuple, set, frozenset)): stack += x
    elif isinstance(x, Iterable): stack += x.items
    elif isinstance(x, collections.abc.Sized): n += len(x)
  return n, has_marker


def source(value):
  """Returns the Python source of a plain value or of the type of one.

  Raises:
    ValueError: the value is not plain.
  """
  if value is None or isinstance(value, (bool, str, bytes, range)): return repr(value)
  if isinstance(value, int): return repr(value) if value.bit_length() < 4096 else hex(value)
  if isinstance(value, float):  # 1e999 is infinite even if a solution redefines names.
    return repr(value).replace("inf", "1e999").replace("nan", "(1e999-1e999)")
  if isinstance(value, complex): return f"complex({source(value.real)}, {source(value.imag)})"
  listed = lambda items: ", ".join(map(source, items))
  if isinstance(value, list): return f"[{listed(value)}]"
  if isinstance(value, tuple): return f"({listed(value)}{',' * (len(value) == 1)})"
  if isinstance(value, set): return f"{{{listed(value)}}}" if value else "{*()}"
  if isinstance(value, frozenset): return f"frozenset([{listed(value)}])"
  if isinstance(value, dict):
    return "{" + ", ".join(f"{source(k)}: {source(v)}" for k, v in value.items()) + "}"
  if isinstance(value, Iterable): return f"iter([{listed(value.items)}])"
  if value in PLAIN: return value.__name__
  raise ValueError(f"{value!r} is no plain value")
