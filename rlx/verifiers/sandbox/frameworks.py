"""What tests use of pytest and unittest; inside.py executes this file, as the module `pytest`.

Tests of a framework run in the process of the test, one after the other, and the first that fails
ends it. `host` is what inside.py knows of the test, its `Names`.
"""
import math
import re
import types
import unittest as _unittest

host = None


class _Raises:
  """The context in which an exception has to be raised."""

  def __init__(self, expected, match): self._expected, self._match = expected, match

  def __enter__(self): return self

  def __exit__(self, kind, error, trace):
    if error is None: raise AssertionError(f"did not raise {self._expected}")
    if not isinstance(error, host.catch(self._expected)): return False
    self.type, self.value, self.exception = kind, error, error
    if self._match is not None: self.match(self._match)
    host.note_assert()
    return True

  def match(self, pattern):
    if not re.search(pattern, str(self.value)):
      raise AssertionError(f"{str(self.value)!r} does not match {pattern!r}")
    return True


def raises(expected_exception, *call, match=None, **keywords):
  context = _Raises(expected_exception, match)
  if not call: return context
  with context: call[0](*call[1:], **keywords)
  return context


class approx:
  """A number, or numbers in lists, tuples and dicts, that are equal up to a tolerance."""

  def __init__(self, expected, rel=None, abs=None, nan_ok=False):
    self._expected, self._nan_ok = expected, nan_ok
    self._rel = rel if rel is not None else 1e-6 if abs is None else 0.0
    self._abs = 1e-12 if abs is None else abs

  __array_ufunc__ = None  # Arrays leave the comparison to this class.

  def __eq__(self, other): return self._is_close(other, self._expected)

  def _is_close(self, a, b):
    a, b = (x.tolist() if hasattr(type(x), "tolist") else x for x in (a, b))
    if isinstance(b, dict):
      return isinstance(a, dict) and a.keys() == b.keys() and all(
          self._is_close(a[k], v) for k, v in b.items())
    if isinstance(b, (list, tuple)):
      return isinstance(a, (list, tuple)) and len(a) == len(b) and all(
          map(self._is_close, a, b))
    if isinstance(b, bool) or not isinstance(b, (int, float, complex)) or not isinstance(
        a, (int, float, complex)): return a == b
    if a == b or a != a and b != b: return a == b or self._nan_ok
    limit = max(self._rel * abs(b), self._abs)
    return math.isfinite(abs(a)) and abs(a - b) <= limit


class _Mark:

  def parametrize(self, names, values, ids=None):
    names = [n.strip() for n in names.split(",") if n.strip()] if isinstance(names, str) else names
    rows = [dict(zip(names, v if len(names) > 1 or isinstance(v, _Param) else [v], strict=True))
            for v in values]
    def decorate(test):
      test.parameters = [old | new for new in rows for old in getattr(test, "parameters", [{}])]
      return test
    return decorate

  def __getattr__(self, name):
    if name in ("skip", "skipif", "xfail", "usefixtures", "asyncio"):
      raise host.Refused(f"pytest.mark.{name} is not read")
    return lambda *a, **k: a[0] if len(a) == 1 and callable(a[0]) else lambda test: test


mark = _Mark()


class _Param(tuple): pass


def param(*values, id=None): return _Param(values)


def fixture(function=None, **options):
  if unread := options.keys() - {"scope"}:
    raise host.Refused(f"pytest.fixture({', '.join(sorted(unread))}) is not read")
  if function is None: return fixture
  function.is_fixture = True
  return function


def fail(reason="", pytrace=True): raise AssertionError(reason)


def main(*arguments, **keywords): pass  # The tests are run behind the module.


class _TestCase(_unittest.TestCase):

  def assertRaises(self, expected_exception, *call, **keywords):
    return raises(expected_exception, *call, **keywords)

  def assertRaisesRegex(self, expected_exception, expected_regex, *call, **keywords):
    return raises(expected_exception, *call, match=expected_regex, **keywords)


class _Runner:

  def __init__(self, *arguments, **keywords): pass

  def run(self, suite):
    for case in suite:
      if isinstance(case, _TestCase): _run_method(case, case._testMethodName)
      else: self.run(case)


unittest = types.ModuleType("unittest")
vars(unittest).update(vars(_unittest), TestCase=_TestCase, TextTestRunner=_Runner, main=main)
pytest = types.SimpleNamespace(**globals())


def collect(*tests):
  """Runs test functions, and the methods of test classes."""
  for test in tests:
    if not isinstance(test, type): _run(test)
    elif issubclass(test, _TestCase) or test.__name__.startswith("Test"):
      for name in [n for n in dir(test) if n.startswith("test")]:
        for row in getattr(test, "parameters", [{}]): _run_method(test(), name, row)


def _run_method(one, name, row={}):
  def prepare(*steps):
    for step in steps: _call(getattr(one, step, lambda: None), dict(method=name))
  prepare("setUpClass", "setup_class", "setUp", "setup_method")
  _run(getattr(one, name), row)
  prepare("tearDown", "teardown_method")


def _run(test, row={}):
  for own in getattr(test, "parameters", [{}]): _call(test, row | own)


def _call(function, values={}):
  """Calls a function with these values, and with fixtures for its other arguments."""
  owner, code = getattr(function, "__self__", None), getattr(function, "__code__", None)
  if code is None: return function()
  names = code.co_varnames[owner is not None:code.co_argcount - len(function.__defaults__ or ())]
  result = function(**{n: values[n] if n in values else _fixture(n, owner) for n in names})
  if isinstance(result, types.CoroutineType): raise host.Refused("a test is a coroutine")
  return next(result) if isinstance(result, types.GeneratorType) else result


def _fixture(name, owner):
  function = getattr(owner, name, None) or host.get(name)
  if not getattr(function, "is_fixture", False):
    raise host.Refused(f"the fixture {name!r} is not known")
  return _call(function)
