"""Runs tests of a solution; this whole file runs inside of the sandbox of sandbox.py.

  first process       Starts the other processes, one solution at a time, and reports one
                      character per test. It reads neither tests nor solutions nor results, so
                      that nothing of them is in the memory that other processes inherit.
  test processes      One for each test. The test is ordinary Python. A name that neither the
                      test nor Python defines is a function of the solution (`Function`): a call
                      of it writes the arguments to a file, asks the first process for a solution
                      process, and reads the result from another file.
  solution processes  One for each call, with its own /tmp and files that no other process has
                      had open, so that a solution cannot remember earlier calls. It gets the
                      solution and the call.

Trusted are this file and the tests. Solutions are not: a solution process may change all of its
memory and write anything as its result. Results are plain data (`decode`) of built-in types, so
nothing of the solution runs in a test process. If a result is large or slow to compute with, the
test process exceeds its limits, and the test fails. A solution should never receive what a test
compares its results with. `inspect` therefore refuses tests that pass results to further calls:
it runs them with many constants as results and compares the arguments. That cannot detect calls
which none of the constants leads to.

  objects     A name with a capital letter may be a class. Its result may be an `Object`, which
              represents all calls that led to it: each process that needs it repeats them. The
              solution computes attributes of its objects. A test that compares two of them is
              refused, since only the solution could tell whether they are equal.
  exceptions  What a call raises is raised in the test too. It is of the class of the same name
              if the test can import that, else of a new class, derived from the builtin one.
  statements  Only a call that is a statement, f(x), may change the lists, sets and dicts that
              are its arguments. Other calls get copies.
  frameworks  `import pytest` and `import unittest` give what frameworks.py defines.
"""
import ast
import builtins
import cmath
import collections
import contextlib
import copy
import ctypes
import itertools
import json
import math
import operator
import os
import re
import resource
import select
import signal
import site
import struct
import sys
import _thread
import time
import types

FRAMEWORKS = ""    # The source of frameworks.py, which sandbox.py appends to this file.
MAX_BYTES = 2**22  # Size of a result, of a program's output and of a file.
MAX_INPUT = 2**26  # Size of what a test process sends: the input of a program, or a call.
STDIN = "/proc/self/fd/0"  # Where /dev/stdin leads.
MAX_CALLS = 200    # Calls in a run of a test with constants.
MAX_TRIES = 500    # Runs of a test with constants.


# Processes.


class Run(BaseException):
  """Raised in a new process, with the function that it has to run."""


def main():
  """Runs the first process: argv[1] is a JSON dict of sandbox.py."""
  try:
    serve(json.loads(sys.argv[1]))
  except Run as process:
    run = process.args[0]
  except BaseException:
    sys.excepthook(*sys.exc_info())
    os.write(1, b"?")
    os._exit(1)
  run()  # As the only function on the stack, so that the program ends like any other.


def serve(options):
  # The packages of the interpreter can be imported, but no code of their .pth files runs here.
  site.addpackage = lambda *_: None
  site.main()
  sys.set_int_max_str_digits(0)
  signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ignored by the first process of a namespace.
  signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
  end = time.monotonic() + options["total_s"]
  if options["walls"]:
    use_one_arena()
    _thread.start_new_thread(watch, (options["files"]["alive"],))
  else: signal.setitimer(signal.ITIMER_REAL, options["total_s"] + 1)  # In case the parent dies.
  os.write(1, b"\n")
  if options["tests"] is None:
    report(run_solution(options, None, end) == 0)
  for place in options["tests"] or (): report(serve_test(options, place, end))
  os._exit(0)


def use_one_arena():
  """Keeps glibc from reserving 64 MB or more of addresses for the allocations of a second thread.

  RLIMIT_AS counts these addresses, and a forked process inherits them. Whether they are reserved
  before or after the fork is a race, so that programs would have different amounts of memory.
  """
  with contextlib.suppress(AttributeError):  # Another C library.
    ctypes.CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX


def watch(alive):
  """Ends the first process, and with it all others, when the launcher closes a pipe."""
  os.read(alive, 1)
  os._exit(1)


def report(is_passed): os.write(1, b"1" if is_passed else b"0")


def serve_test(options, place, end):
  """Starts a test process and the solution processes that it asks for. Returns: does it pass?"""
  asks, ask = os.pipe()
  answer, answers = os.pipe()
  test = start(options, lambda: test_process(options["files"], place, ask, answer),
               max_bytes=MAX_INPUT)
  os.close(ask)
  os.close(answer)
  limit_s, is_open = 2 * options["cpu_s"] + 1, False
  while (left_s := end - time.monotonic()) > 0 and select.select([asks], [], [], left_s)[0]:
    kind = os.read(asks, 1)
    if not (is_open := bool(kind)): break
    if run_solution(options, kind, min(end, time.monotonic() + limit_s)) != 0: break
    with contextlib.suppress(BrokenPipeError): os.write(answers, b"1")  # It may have been killed.
  os.close(asks)
  os.close(answers)
  return wait(test, 0 if is_open else end) == 0


def run_solution(options, kind, end):
  """Runs a solution process. Returns its exit status, None if it is late."""
  files, has_input = options["files"], kind != b"c"
  os.lseek(0, 0, os.SEEK_SET)
  written = os.memfd_create("value")  # What it does to this file and its flags ends with it.
  status = wait(start(options, lambda: solution_process(files, written, has_input),
                      files["call"] if has_input else None), end)
  os.ftruncate(files["value"], 0)
  copy_file(written, files["value"])
  os.close(written)
  return status


def copy_file(source, target):
  """Appends a file to an empty one, without reading it."""
  os.lseek(target, 0, os.SEEK_SET)
  done = 0
  while copied := os.sendfile(target, source, done, MAX_INPUT): done += copied


def start(options, run, stdin=None, max_bytes=MAX_BYTES):
  """Starts a process behind the walls, in which `main` calls `run`. Returns its id."""
  reads, writes = os.pipe()
  if pid := os.fork():
    os.close(writes)
    is_started = os.read(reads, 1)
    os.close(reads)
    if is_started: return pid
    raise OSError("a process did not start")
  try:
    enter(options, stdin, max_bytes)
    os.write(writes, b"\n")  # Any later failure is caused by the program.
  except BaseException as e:
    os.write(2, f"{type(e).__name__}: {e}\n".encode())
    os._exit(1)
  raise Run(run)


def wait(pid, end):
  """Returns the exit status of a process, None if it is killed because it is late."""
  while True:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended: return status
    left_s = end - time.monotonic()
    if left_s <= 0:
      os.kill(pid, signal.SIGKILL)
      os.waitpid(pid, 0)
      return None
    signal.sigtimedwait([signal.SIGCHLD], left_s)


def enter(options, stdin, max_bytes):
  """Gives this process its own /tmp, stdin and limits, and takes its privileges."""
  walls = options["walls"]
  if walls:
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, nosuid_nodev_noexec = 0x20000, 2 | 4 | 8
    check(libc.unshare(new_mounts), "unshare")
    check(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", nosuid_nodev_noexec, walls["tmpfs"].encode()),
          "mount")
    os.chdir("/tmp")
    if stdin is not None: give_stdin(libc, stdin, nosuid_nodev_noexec)
    if (user := walls["user"]) is not None:
      os.setgroups([])
      os.setresgid(user, user, user)
      os.setresuid(user, user, user)
    # Header of version 3, and no capability in any of the three sets.
    check(libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24)), "capset")
    open(os.__file__).close()  # The user can read it.
  # None keeps the limit as it is.
  for limit, value in ((resource.RLIMIT_CPU, options["cpu_s"]), (resource.RLIMIT_CORE, 0),
                       (resource.RLIMIT_FSIZE, max_bytes), (resource.RLIMIT_NOFILE, 64),
                       (resource.RLIMIT_AS, options["memory"]),
                       (resource.RLIMIT_NPROC, walls and walls["threads"])):
    if value is None: continue
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))
  signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
  if walls: refuse(libc, bytes.fromhex(walls["filter"]))
  else: signal.setitimer(signal.ITIMER_REAL, options["total_s"] + 1)


def give_stdin(libc, stdin, flags):
  """Copies the input of a program to the place where /dev/stdin leads; it cannot be written to."""
  remount_read_only, folder = 32 | 1, os.path.dirname(STDIN).encode()
  settings = f"size={2 * MAX_INPUT},nr_inodes=4,mode=755".encode()
  check(libc.mount(b"tmpfs", folder, b"tmpfs", flags, settings), "mount")
  copy = os.open(STDIN, os.O_WRONLY | os.O_CREAT, 0o444)
  copy_file(stdin, copy)
  os.close(copy)
  check(libc.mount(b"tmpfs", folder, b"tmpfs", flags | remount_read_only, settings), "remount")
  copy = os.open(STDIN, os.O_RDONLY)
  os.dup2(copy, 0)
  os.close(copy)


def refuse(libc, program):
  """Installs the filter of system calls."""
  no_new_privileges, seccomp, by_filter = 38, 22, 2  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP.
  check(libc.prctl(no_new_privileges, 1, 0, 0, 0), "no_new_privs")
  code = ctypes.create_string_buffer(program, len(program))
  program = struct.pack("HP", len(program) // 8, ctypes.addressof(code))
  check(libc.prctl(seccomp, by_filter, program, 0, 0), "seccomp")


def check(result, name):
  if result: raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def read(fd): return os.pread(fd, os.fstat(fd).st_size, 0)


# Solutions.


def solution_process(files, written, is_program):
  """Runs the solution as a program, or makes the call that the test process has written."""
  source = json.loads(read(files["program"]))
  call = None if is_program else json.loads(read(files["call"]))
  os.dup2(written, 1)
  null = os.open("/dev/null", os.O_RDWR)
  os.dup2(null, 2)
  if not is_program: os.dup2(null, 0)
  os.closerange(3, max(64, written, *files.values()) + 1)
  if is_program:
    exec(compile(source, "solution.py", "exec"), {"__name__": "__main__"})
    return
  out = os.dup(1)
  os.dup2(0, 1)
  names = {"__name__": "solution"}
  if call["steps"][-1][1][0][0] == "entry": exec(find_imports(source), names)
  exec(compile(source, "solution.py", "exec"), names)
  os.write(out, json.dumps(call_steps(names, **call)).encode())
  os._exit(0)


# What the sites have imported whose tests name a function, and solutions leave out.
IMPORTED = dict(
    typing="Any Callable DefaultDict Deque Dict Iterable Iterator List Optional Set Tuple Union",
    collections="Counter OrderedDict defaultdict deque namedtuple",
    functools="cache cmp_to_key lru_cache partial reduce",
    itertools="accumulate chain combinations count cycle groupby permutations product "
              "zip_longest pairwise", heapq="heapify heappop heappush heappushpop heapreplace "
              "nlargest nsmallest", bisect="bisect bisect_left bisect_right insort",
    math="ceil comb factorial floor gcd inf isqrt lcm log log2 pi sqrt", operator="itemgetter",
    string="ascii_lowercase ascii_uppercase", copy="deepcopy", sys="maxsize")


def find_imports(source):
  """Returns the imports of `IMPORTED`, and of these modules, whose names a solution uses."""
  used = set(re.findall(r"\w+", source))
  return "\n".join([f"import {m}" for m in [*IMPORTED, "random", "re"] if m in used] + [
      f"from {m} import {name}" for m, names in IMPORTED.items() for name in names.split()
      if name in used and name != m])


def call_steps(names, steps, returns):
  """Returns the encoded result of the last step, and what it has made of its arguments.

  Args:
    names: those that the solution defines.
    steps: encoded (function, arguments, keyword arguments); objects are results of earlier steps.
    returns: "value"; "object" if the result may be an object or a method; "nothing".
  """
  results = []
  def look_up(kind, content):
    if kind == "object": return results[content]
    if kind == "entry":
      owner = names.get("Solution")
      return getattr(owner(), content) if hasattr(owner, content) else names[content]
    if kind == "method": return getattr(decode(content[0], look_up), content[1])
    if kind == "operator": return getattr(operator, content)
    return names[content] if content in names else getattr(builtins, content)
  for step in steps:
    function, arguments, keywords = decode(step, look_up)
    try:
      results.append(function(*arguments, **keywords))
    except (Exception, SystemExit) as e:
      return describe_exception(e), []
  changed = [encode(a) for a in select_mutable(arguments, keywords)] if returns == "nothing" else []
  result = None if returns == "nothing" else results[-1]
  if returns == "object" and not (result is None or isinstance(result, PLAIN)):
    return ["method" if callable(result) else "object", None], changed
  return encode(result), changed


def describe_exception(error):
  """Returns the JSON of which `Exceptions.make` makes an exception."""
  try:
    arguments = encode(error.args)
  except TypeError:
    arguments = encode([str(error)])
  return ["raised", [[c.__module__, c.__name__] for c in type(error).__mro__], arguments,
          str(error)]


def select_mutable(arguments, keywords):
  return [a for a in (*arguments, *keywords.values()) if isinstance(a, (list, dict, set))]


# Values.

PLAIN = (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict, range)


def encode(x, named=lambda x: None):
  """Returns a plain value, or an iterable of plain values, as JSON; else raises TypeError.

  Args:
    named: returns the JSON of a value of another type, or None.
  """
  if x is None or isinstance(x, bool): return x
  if isinstance(x, str): return str(x)
  if isinstance(x, int): return ["int", hex(x)]
  if isinstance(x, float): return ["float", float(x).hex()]
  if isinstance(x, complex): return ["complex", f"{x.real.hex()} {x.imag.hex()}"]
  if isinstance(x, bytes): return ["bytes", x.hex()]
  if isinstance(x, dict): return ["dict", [[encode(k, named), encode(v, named)]
                                           for k, v in x.items()]]
  if isinstance(x, range): x, kind = (x.start, x.stop, x.step), "range"
  elif isinstance(x, PLAIN): kind = next(k for k in PLAIN if isinstance(x, k)).__name__
  elif name := named(x): return name
  else: kind = "iterable"
  return [kind, [encode(v, named) for v in x]]


def decode(x, other=None):
  """Returns the value of the JSON that `encode` makes; raises an exception for other JSON.

  Args:
    other: (kind, content) -> value of a kind that is not plain.
  """
  if x is None or isinstance(x, (bool, str)): return x
  kind, content = x
  if kind in NUMBERS: return NUMBERS[kind](content)
  if kind == "dict": return {decode(k, other): decode(v, other) for k, v in content}
  if kind in CONTAINERS: return CONTAINERS[kind]([decode(v, other) for v in content])
  return other(kind, content)


NUMBERS = dict(int=lambda text: int(text, 16), float=float.fromhex, bytes=bytes.fromhex,
               complex=lambda text: complex(*map(float.fromhex, text.split())))
CONTAINERS = dict(list=list, tuple=tuple, set=set, frozenset=frozenset, iterable=iter,
                  range=lambda items: range(*items))


# Tests.


class Refused(BaseException):
  """The test cannot be run, whatever the solution."""


class Function:
  """A function of the solution, or a method of an object of the solution."""

  def __init__(self, calls, name, owner=None):
    self._calls, self._name, self._owner = calls, name, owner

  def __call__(self, *arguments, **keywords):
    return self._calls.make(self, arguments, keywords)

  def __getattr__(self, name):
    if name.startswith("__"): raise AttributeError(name)
    return self._calls.make(getattr, (self, name))


class Object:
  """An object of the solution: the result of the step `_index`."""

  def __init__(self, calls, index):
    self.__dict__.update(_calls=calls, _index=index)

  def __getattr__(self, name):
    if name.startswith("__"): raise AttributeError(name)
    return self._calls.make(getattr, (self, name))

  def __setattr__(self, name, value): self._calls.make(setattr, (self, name, value))

  def __len__(self): return self._calls.make(len, (self,))

  def __str__(self): return self._calls.make(str, (self,))

  def __iter__(self): return iter(self._calls.make(iter, (self,)))


def _operator(name):
  def method(*operands):
    # A solution does not decide what its objects and other values are compared with.
    if not all(isinstance(x, Object) for x in operands): return NotImplemented
    return operands[0]._calls.make(getattr(operator, name), operands)
  return method


def _comparison(self, other):
  if isinstance(other, Object): raise Refused(
      "it compares two objects of the solution, which alone could tell whether they are equal")
  return NotImplemented


for _name in "add sub mul truediv neg".split(): setattr(Object, f"__{_name}__", _operator(_name))
for _name in "eq ne lt le gt ge".split(): setattr(Object, f"__{_name}__", _comparison)


def name_object(x):
  """Returns the JSON of an object or function of the solution, or of a builtin; else None."""
  if isinstance(x, Object): return ["object", x._index]
  if isinstance(x, Function):
    if x._owner is not None: return ["method", [name_object(x._owner), x._name]]
    return ["name", x._name]
  for kind, module in (("name", builtins), ("operator", operator)):
    if callable(x) and getattr(module, getattr(x, "__name__", ""), None) is x:
      return [kind, x.__name__]
  return None


class Calls:
  """Makes the calls of a test.

  `result` returns the result of `call_steps`; it gets its arguments and the JSON of the last step.
  """

  def __init__(self, result):
    self._result, self._steps, self.exceptions = result, [], Exceptions()

  def make(self, function, arguments, keywords={}, is_statement=False):
    try:
      step = encode((function, arguments, keywords), name_object)
    except TypeError:
      raise Refused("an argument of a call of the solution is no literal") from None
    text = json.dumps(step)
    has_object = '["object", ' in text  # In a string, the quotes are escaped.
    may_be_object = (function is getattr or function in OPERATORS or isinstance(function, Function)
                     and function._owner is None and function._name[:1].isupper())
    returns = "nothing" if is_statement else "object" if may_be_object else "value"
    steps = [*self._steps, step] if has_object else [step]
    value, changed = self._result(dict(steps=steps, returns=returns), text)
    if is_raised(value): raise self.exceptions.make(*value[1:])
    is_object = may_be_object and value == ["object", None]
    if is_object or has_object and function is not getattr: self._steps.append(step)
    for old, new in zip(select_mutable(arguments, keywords), changed): replace(old, decode(new))
    if is_object: return Object(self, len(self._steps) - 1)
    if function is getattr and value == ["method", None]:
      return Function(self, arguments[1], arguments[0])
    return decode(value)


OPERATORS = tuple(getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "neg"))


def is_raised(value): return isinstance(value, list) and value[:1] == ["raised"]


class Exceptions:
  """Those that calls of a test raise; their classes stay the same during the test."""

  # A caller that iterates takes these for the end.
  _UNHEARD = (StopIteration, StopAsyncIteration, GeneratorExit)

  def __init__(self): self._classes = {}

  def make(self, classes, arguments, text):
    """Returns an exception.

    Args:
      classes: [module, name] of its class and of all that this derives from.
      arguments: their JSON; text: that of the exception.
    """
    kind = None
    for module, name in reversed(classes):
      known = None if module == "__main__" else getattr(sys.modules.get(module), name, None)
      if isinstance(known, type) and issubclass(known, (Exception, SystemExit)): kind = known
      elif kind: kind = self._classes.setdefault((name, kind), type(name, (kind,), {}))
    if kind is None or issubclass(kind, self._UNHEARD): raise Refused("no exception of a test")
    error = kind.__new__(kind, *(arguments := decode(arguments)))
    error.args = arguments
    if str(error) != text: error.args = (text,)
    return error

  def catch(self, kinds):
    """Returns the classes that `except kinds` catches, a tuple."""
    if isinstance(kinds, tuple): return tuple(itertools.chain(*map(self.catch, kinds)))
    if isinstance(kinds, Function):
      return tuple(c for c in self._classes.values() if c.__name__ == kinds._name)
    return (Exception, SystemExit) if kinds is BaseException else (kinds,)


def replace(container, content):
  content = copy.copy(content)
  container.clear()
  (container.extend if isinstance(container, list) else container.update)(content)


class Names(dict):
  """The global names of a test: what nobody defines belongs to the solution."""

  Refused = Refused

  def __init__(self, calls, own):
    known = dict(vars(builtins), __import__=self._import, isinstance=_isinstance)
    super().__init__(
        __name__="__main__", __file__="test.py",
        __builtins__={k: v for k, v in known.items() if k not in own},
        math=math, cmath=cmath, _is=_is, _statement=self._statement, _assert=self.note_assert,
        _caught=self.catch, _collect=self._collect)
    self._calls, self._own, self.has_assert = calls, own, False

  def note_assert(self): self.has_assert = True

  def catch(self, kinds): return self._calls.exceptions.catch(kinds)

  def _statement(self, function, *arguments, **keywords):
    if isinstance(function, Function):
      function._calls.make(function, arguments, keywords, is_statement=True)
      return
    function(*arguments, **keywords)
    code = getattr(function, "__code__", None)
    if getattr(function, "__name__", "").startswith("assert") and not (
        code and code.co_filename == "test.py"): self.has_assert = True

  def _import(self, name, *where):
    if name == "solution": return _Solution(self)
    return getattr(load_frameworks(self), name) if name in ("pytest", "unittest") else __import__(
        name, *where)

  def _collect(self, *tests): load_frameworks(self).collect(*tests)

  def __missing__(self, name):
    if hasattr(builtins, name) and name not in self._own or name.startswith("__"):
      raise KeyError(name)
    return Function(self._calls, name)


def load_frameworks(names, loaded=types.ModuleType("pytest")):
  """Returns the module of frameworks.py, for the test with these names."""
  if not hasattr(loaded, "collect"): exec(compile(FRAMEWORKS, "pytest", "exec"), vars(loaded))
  loaded.host = names
  return loaded


def _is(a, b):
  return _comparison(a, b) if isinstance(a, Object) and isinstance(b, Object) else a is b


def _isinstance(x, kinds):
  kinds = list(kinds if isinstance(kinds, tuple) else [kinds])
  own = [k for k in kinds if isinstance(k, Function)]
  return isinstance(x, tuple(k for k in kinds if k not in own)) or isinstance(x, Object) and any(
      x._calls.make(isinstance, (x, k)) is True for k in own)


class _Statements(ast.NodeTransformer):
  """Replaces statements f(x) by _statement(f, x), `is`, and what `except` catches, and notes which
  asserts hold."""

  def visit_Assert(self, node):
    self.generic_visit(node)
    return [node, ast.Expr(_call("_assert"))]

  def visit_Expr(self, node):
    self.generic_visit(node)
    if isinstance(call := node.value, ast.Call):
      node.value = ast.Call(ast.Name("_statement", ast.Load()), [call.func, *call.args],
                            call.keywords)
    return node

  def visit_ExceptHandler(self, node):
    self.generic_visit(node)
    node.type = _call("_caught", node.type or ast.Name("BaseException", ast.Load()))
    node.body.insert(0, ast.Expr(_call("_assert")))
    return node

  def visit_Compare(self, node):
    self.generic_visit(node)
    operands = [node.left, *node.comparators]
    if not isinstance(node.ops[0], (ast.Is, ast.IsNot)) or len(operands) > 2 or any(
        isinstance(x, ast.Constant) for x in operands): return node
    same = _call("_is", *operands)
    return same if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(ast.Not(), same)


def _call(name, *arguments): return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


class _Solution:
  """The module `solution`, which a test may import."""

  __all__ = ()

  def __init__(self, names): self._names = names

  def __getattr__(self, name):
    if name.startswith("__"): raise AttributeError(name)
    return self._names[name]


def compile_test(source):
  return compile(ast.fix_missing_locations(_Statements().visit(ast.parse(source))), "test.py",
                 "exec")


def run_test(code, calls, own):
  """Runs a test; raises an exception if it fails. Returns: did an assert hold?"""
  if "random" in code.co_names: __import__("random").seed(0)  # The calls of all runs are the same.
  names = Names(calls, own)
  exec(code, names)
  return names.has_assert


def test_process(files, place, ask, answer):
  """Runs the test that stands at `place`, (start, size); exits with 0 if it passes."""
  test = json.loads(os.pread(files["tests"], place[1], place[0]))
  os.dup2(os.open("/dev/null", os.O_RDWR), 1)

  def result(kind, content):
    os.ftruncate(files["call"], 0)
    if os.pwrite(files["call"], content, 0) < len(content): os._exit(1)
    os.write(ask, kind)
    if not os.read(answer, 1): os._exit(1)
    return read(files["value"])

  def make_call(call): return json.loads(result(b"c", json.dumps(call).encode()))

  try:
    if not isinstance(test, dict):
      source, own = test
      passes = run_test(compile_test(source), Calls(lambda call, _: make_call(call)), own)
    elif "function" in test:
      step = ["tuple", [["entry", test["function"]], test["arguments"], ["dict", []]]]
      value, _ = make_call(dict(steps=[step], returns="value"))
      passes = not is_raised(value) and any(
          is_same(as_json(decode(value)), decode(output), test["tolerance"])
          for output in test["outputs"])
    else:
      printed = result(b"p", test["input"].encode()).decode(errors="replace")
      passes = is_same_text(printed, test["output"], test["tolerance"])
  except BaseException:
    os._exit(1)
  os._exit(0 if passes else 1)


def lines(text): return [line.rstrip() for line in text.rstrip().split("\n")]


def is_same_text(text, expected, tolerance):
  """Compares what is printed, line by line; with a tolerance, floats by their values."""
  text, expected = lines(text), lines(expected)
  return text == expected or bool(tolerance) and len(text) == len(expected) and all(
      a == b or len(a.split()) == len(b.split()) and all(
          is_same_word(*words, tolerance) for words in zip(a.split(), b.split()))
      for a, b in zip(text, expected))


def is_same_word(word, expected, tolerance):
  number = r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?"
  return word == expected or bool(
      re.search("[.e]", expected.lower()) and re.fullmatch(number, expected, re.I)
      and re.fullmatch(number, word, re.I)
      and math.isclose(float(word), float(expected), rel_tol=tolerance, abs_tol=tolerance))


def is_same(value, expected, tolerance):
  """Compares what JSON can hold; with a tolerance, numbers with a float by their values."""
  if isinstance(value, list) and isinstance(expected, list):
    return len(value) == len(expected) and all(
        is_same(a, b, tolerance) for a, b in zip(value, expected))
  if isinstance(value, dict) and isinstance(expected, dict):
    return value.keys() == expected.keys() and all(
        is_same(v, expected[k], tolerance) for k, v in value.items())
  return value == expected or bool(
      tolerance and isinstance(expected, float) and isinstance(value, (int, float))
      and math.isclose(value, expected, rel_tol=tolerance, abs_tol=tolerance))


def as_json(value):
  """Returns a value as it would be after it has been written to JSON: tuples are lists."""
  if isinstance(value, (list, tuple)): return [as_json(v) for v in value]
  if isinstance(value, dict):
    return {str(k) if type(k) is int else k: as_json(v) for k, v in value.items()}
  return value


# Constants.

OBVIOUS: tuple = (True, False, None, 0, 1, -1, 0.0, "", [], (), {}, set(), math.nan, math.inf,
                  -math.inf)
VARIED = ([0], (1, 2), "ab", {"a": 1})  # To see whether calls depend on results.
OBJECT, METHOD = ["object", None], ["method", None]


class _Unassigned(BaseException):
  """Raised by the first call of a function without a constant: its name, results of other kinds."""


class _Constants:
  """The results of functions that always return the same value."""

  def __init__(self, may_raise=False):
    self.failures = collections.Counter()  # Exceptions of tests that no function raises.
    self.may_raise = may_raise
    self.texts = collections.defaultdict(list)  # {place in the test: calls that were made there}

  def start(self, constants):
    self._constants, self.ways = constants, collections.defaultdict(set)
    self._counts = collections.Counter()

  def __call__(self, call, text):
    _, (function, (_, arguments), (_, keywords)) = call["steps"][-1]
    text = re.sub(r'\["object", \d+\]', "object", text)
    frame = sys._getframe()
    while frame.f_code.co_filename != "test.py": frame = frame.f_back
    place = frame.f_code, frame.f_lasti
    if self._counts.total() == MAX_CALLS: raise Refused(f"it makes more than {MAX_CALLS} calls")
    texts, i = self.texts[place], self._counts[place]
    self._counts[place] += 1
    if i == len(texts): texts.append(text)
    if texts[i] != text:
      raise Refused("an argument of a call of the solution is what another call returns")
    is_statement = call["returns"] == "nothing"
    changing = [a for a in (*arguments, *(v for _, v in keywords))
                if isinstance(a, list) and a[0] in ("list", "dict", "set")]
    if is_statement and not changing and not self.may_raise: return None, []
    name = f".{function[1][1]}()" if function[0] == "method" else function[1]
    if name == "isinstance": return True, []
    is_attribute = name == "getattr"
    if is_attribute: name = f".{arguments[1]}"
    self.ways[name].add(text)
    if name not in self._constants:
      may_be_object = call["returns"] == "object"
      raise _Unassigned(name, [METHOD] * is_attribute + [OBJECT] * may_be_object)
    value = self._constants[name]
    if not is_statement or is_raised(value): return value, []
    return None, [value if isinstance(value, list) and value[0] == a[0] else a for a in changing]


def find_passing(bodies, candidates, results):
  """Yields the constants, {function: encoded value}, with which all bodies pass."""
  todo = collections.deque([{}])
  for _ in range(MAX_TRIES):
    if not todo: return
    results.start(constants := todo.popleft())
    try:
      for results.test, (code, own) in enumerate(bodies):
        if not run_test(code, Calls(results), own): raise Refused("it passes without an assert")
    except _Unassigned as call:
      name, others = call.args
      todo += [constants | {name: value} for value in others + candidates]
    except ImportError as e:
      raise Refused(f"no solution passes it: {e}") from None
    except (Exception, SystemExit) as e:
      if not any(map(is_raised, constants.values())):
        results.failures[f"{type(e).__name__}: {e}"[:200]] += 1
    else:
      yield constants


def inspect():
  """Inspects tests of prompts: stdin is JSON, for each prompt a list of (source, own).

  Prints a line for each prompt: {test: why it cannot be run} and {function: constant} or null.
  """
  sys.set_int_max_str_digits(0)  # Constants may be large numbers.
  for line in sys.stdin:
    signal.setitimer(signal.ITIMER_PROF, 2.0)  # Kills this process, also in a function of C.
    print(json.dumps(inspect_tests(json.loads(line))), flush=True)


def inspect_tests(tests):
  problems, bodies, values = find_contradictions(tests), [], []
  raised = find_raised("\n".join(source for source, _ in tests))
  for i, (source, own) in enumerate(tests):
    results, passes = _Constants(bool(raised)), False
    try:
      bodies.append((compile_test(source), own))
      values.append(literals(source))
      candidates = [*encode_unique(OBVIOUS, VARIED, values[-1]), *raised]
      for _ in find_passing(bodies[-1:], candidates, results): passes = True
      (failure, n), = results.failures.most_common(1) or [("", 0)]
      if not results.texts:
        problems[i] = f"no solution passes it: {failure}" if failure else (
            "it calls no function of the solution")
      elif not passes and n > len(OBVIOUS) and len(results.failures) == 1 and not (
          failure.startswith("AssertionError")):
        problems[i] = f"no solution passes it: {failure}"
    except Refused as e:
      problems[i] = str(e)
  if problems: return problems, None
  results, obvious = _Constants(bool(raised)), encode_unique(OBVIOUS) + raised
  try:
    for constants in find_passing(
        bodies, encode_unique(OBVIOUS, add_near(sum(values, []))) + raised, results):
      constants = {name: v for name, v in constants.items() if v not in (OBJECT, METHOD)}
      if all(v in obvious or len(results.ways[name]) > 1 for name, v in constants.items()):
        return {}, {name: f"raises {v[1][0][1]}" if is_raised(v) else
                    f"returns {decode(v)!r}"[:100] for name, v in constants.items()}
  except Refused as e:
    return {results.test: str(e)}, None
  return {}, None


def find_raised(source):
  """Returns the JSON of the exceptions that tests may wait for, with which solutions may end."""
  if not re.search("[rR]aises|except|suppress", source): return []
  raised = []
  for name in dict.fromkeys(re.findall(r"\b[A-Z]\w+(?:Error|Exception|Exit)\b|\bException\b",
                                       source)):
    kind = getattr(builtins, name, None)
    classes = kind.__mro__[:-2] if isinstance(kind, type) else (Exception,)
    raised.append(["raised", [["solution", name]] * (kind is None) + [
        ["builtins", c.__name__] for c in classes], ["tuple", []], ""])
  return raised


def find_contradictions(tests):
  """Returns {test: why} where one call is expected to return two values."""
  problems, seen = {}, {}
  for i, (source, _) in enumerate(tests):
    for node in ast.walk(ast.parse(source)):
      match node:
        case ast.Assert(test=ast.Compare(
            left=ast.Call(func=ast.Name()) as call, ops=[ast.Eq()], comparators=[value])): pass
        case _: continue
      try:
        for part in (*call.args, *(k.value for k in call.keywords)): ast.literal_eval(part)
        value, text = ast.literal_eval(value), ast.unparse(call)
      except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        continue
      if (old := seen.setdefault(text, value)) != value:
        problems[i] = f"{text[:100]} is {old!r:.50} and {value!r:.50}, each time in a new process"
  return problems


def literals(source):
  values = []
  for node in ast.walk(ast.parse(source)):
    with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
      values.append(ast.literal_eval(node))
  return [v for v in values if v is None or isinstance(v, PLAIN)]


def add_near(values):
  """Returns the values, and others that lie next to one or have its length or members."""
  numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
  values = values + [[v] for v in values] + [values] + [n + d for n in numbers for d in (-1, 1)]
  return values + [list(range(n)) for n in numbers if isinstance(n, int) and 1 < n < 100]


def encode_unique(*values):
  """Returns the JSON of values without repetitions."""
  texts = dict.fromkeys(json.dumps(encode(v)) for v in itertools.chain(*values))
  return [json.loads(text) for text in texts][:MAX_TRIES]
