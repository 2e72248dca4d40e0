"""Runs tests of a solution; this whole file runs inside of the sandbox of sandbox.py.

  first process       Starts the other processes, one solution at a time, and reports one
                      character per test. It reads neither tests nor solutions nor results, so
                      that nothing of them is in the memory that other processes inherit.
  test processes      One for each test. The test is ordinary Python. A name that neither the
                      test nor Python defines is a function of the solution (`Function`): a call
                      of it writes the arguments to a file, asks the first process for a solution
                      process, and reads the result from another file.
  solution processes  One for each call, with its own /tmp, so that a solution cannot remember
                      earlier calls. It gets the solution and the call.

Trusted are this file and the tests. Solutions are not: a solution process may change all of its
memory and write anything as its result. Results are plain data (`decode`) of built-in types, so
nothing of the solution runs in a test process. If a result is large or slow to compute with, the
test process exceeds its limits, and the test fails. A solution should never receive what a test
compares its results with. `inspect` therefore refuses tests that pass results to further calls:
it runs them with many constants as results and compares the arguments. That cannot detect calls
which none of the constants leads to.

  objects     A name with a capital letter may be a class. Its result may be an `Object`, which
              represents all calls that led to it: each process that needs it repeats them. The
              solution computes attributes of its objects, and comparisons of two of them, but
              no comparison of an object with another value.
  statements  Only a call that is a statement, f(x), may change the lists, sets and dicts that
              are its arguments. Other calls get copies.
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
import random
import re
import resource
import select
import signal
import site
import struct
import sys
import _thread
import time

MAX_BYTES = 2**22  # Size of a result, of a program's output and of a file.
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
  signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ignored by the first process of a namespace.
  signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
  end = time.monotonic() + options["total_s"]
  if options["walls"]: _thread.start_new_thread(watch, (options["files"]["alive"],))
  else: signal.setitimer(signal.ITIMER_REAL, options["total_s"] + 1)  # In case the parent dies.
  os.write(1, b"\n")
  if options["tests"] is None:
    report(wait(start_solution(options, None), end) == 0)
  for i in range(options["tests"] or 0): report(serve_test(options, i, end))
  os._exit(0)


def watch(alive):
  """Ends the first process, and with it all others, when the launcher closes a pipe."""
  os.read(alive, 1)
  os._exit(1)


def report(is_passed): os.write(1, b"1" if is_passed else b"0")


def serve_test(options, i, end):
  """Starts a test process and the solution processes that it asks for. Returns: does it pass?"""
  asks, ask = os.pipe()
  answer, answers = os.pipe()
  test = start(options, lambda: test_process(options["files"], i, ask, answer))
  os.close(ask)
  os.close(answer)
  limit_s, is_open = 2 * options["cpu_s"] + 1, False
  while (left_s := end - time.monotonic()) > 0 and select.select([asks], [], [], left_s)[0]:
    kind = os.read(asks, 1)
    if not (is_open := bool(kind)): break
    if wait(start_solution(options, kind), min(end, time.monotonic() + limit_s)) != 0: break
    with contextlib.suppress(BrokenPipeError): os.write(answers, b"1")  # It may have been killed.
  os.close(asks)
  os.close(answers)
  return wait(test, 0 if is_open else end) == 0


def start_solution(options, kind):
  os.ftruncate(options["files"]["value"], 0)
  for fd in options["files"]["value"], 0: os.lseek(fd, 0, os.SEEK_SET)
  return start(options, lambda: solution_process(options["files"], kind == b"c"))


def start(options, run):
  """Starts a process behind the walls, in which `main` calls `run`. Returns its id."""
  reads, writes = os.pipe()
  if pid := os.fork():
    os.close(writes)
    is_started = os.read(reads, 1)
    os.close(reads)
    if is_started: return pid
    raise OSError("a process did not start")
  try:
    enter(options)
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


def enter(options):
  """Gives this process its own /tmp and limits, and takes its privileges."""
  walls = options["walls"]
  if walls:
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, nosuid_nodev_noexec = 0x20000, 2 | 4 | 8
    check(libc.unshare(new_mounts), "unshare")
    check(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", nosuid_nodev_noexec, walls["tmpfs"].encode()),
          "mount")
    os.chdir("/tmp")
    if (user := walls["user"]) is not None:
      os.setgroups([])
      os.setresgid(user, user, user)
      os.setresuid(user, user, user)
    # Header of version 3, and no capability in any of the three sets.
    check(libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24)), "capset")
    open(os.__file__).close()  # The user can read it.
  # None keeps the limit as it is.
  for limit, value in ((resource.RLIMIT_CPU, options["cpu_s"]), (resource.RLIMIT_CORE, 0),
                       (resource.RLIMIT_FSIZE, MAX_BYTES), (resource.RLIMIT_NOFILE, 64),
                       (resource.RLIMIT_AS, options["memory"]),
                       (resource.RLIMIT_NPROC, walls and walls["threads"])):
    if value is None: continue
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))
  signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
  if walls: refuse(libc, bytes.fromhex(walls["filter"]))
  else: signal.setitimer(signal.ITIMER_REAL, options["total_s"] + 1)


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


def solution_process(files, is_call):
  """Runs the solution as a program, or makes the call that the test process has written."""
  source = json.loads(read(files["program"]))
  call = json.loads(read(files["call"])) if is_call else None
  os.dup2(files["value"], 1)
  null = os.open("/dev/null", os.O_RDWR)
  os.dup2(null, 2)
  if is_call: os.dup2(null, 0)
  os.closerange(3, max(64, *files.values()) + 1)
  if not is_call:
    exec(compile(source, "solution.py", "exec"), {"__name__": "__main__"})
    return
  out = os.dup(1)
  os.dup2(0, 1)
  names = {"__name__": "solution"}
  exec(compile(source, "solution.py", "exec"), names)
  os.write(out, json.dumps(call_steps(names, **call)).encode())
  os._exit(0)


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
    if kind == "method": return getattr(decode(content[0], look_up), content[1])
    if kind == "operator": return getattr(operator, content)
    return names[content] if content in names else getattr(builtins, content)
  for step in steps:
    function, arguments, keywords = decode(step, look_up)
    results.append(function(*arguments, **keywords))
  changed = [encode(a) for a in select_mutable(arguments, keywords)] if returns == "nothing" else []
  result = None if returns == "nothing" else results[-1]
  if returns == "object" and not (result is None or isinstance(result, PLAIN)):
    return ["method" if callable(result) else "object", None], changed
  return encode(result), changed


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
    self.calls, self.name, self.owner = calls, name, owner

  def __call__(self, *arguments, **keywords):
    return self.calls.make(self, arguments, keywords)


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


for _name in "eq ne lt le gt ge add sub mul truediv neg".split():
  setattr(Object, f"__{_name}__", _operator(_name))


def name_object(x):
  """Returns the JSON of an object or function of the solution, or of a builtin; else None."""
  if isinstance(x, Object): return ["object", x._index]
  if isinstance(x, Function):
    return ["method", [name_object(x.owner), x.name]] if x.owner is not None else ["name", x.name]
  for kind, module in (("name", builtins), ("operator", operator)):
    if callable(x) and getattr(module, getattr(x, "__name__", ""), None) is x:
      return [kind, x.__name__]
  return None


class Calls:
  """Makes the calls of a test.

  `result` returns the result of `call_steps`; it gets its arguments and the JSON of the last step.
  """

  def __init__(self, result):
    self._result, self._steps = result, []

  def make(self, function, arguments, keywords={}, is_statement=False):
    try:
      step = encode((function, arguments, keywords), name_object)
    except TypeError:
      raise Refused("an argument of a call of the solution is no literal") from None
    text = json.dumps(step)
    has_object = '["object", ' in text  # In a string, the quotes are escaped.
    may_be_object = (function is getattr or function in OPERATORS or isinstance(function, Function)
                     and function.owner is None and function.name[:1].isupper())
    returns = "nothing" if is_statement else "object" if may_be_object else "value"
    steps = [*self._steps, step] if has_object else [step]
    value, changed = self._result(dict(steps=steps, returns=returns), text)
    is_object = may_be_object and value == ["object", None]
    if is_object or has_object and function is not getattr: self._steps.append(step)
    for old, new in zip(select_mutable(arguments, keywords), changed): replace(old, decode(new))
    if is_object: return Object(self, len(self._steps) - 1)
    if function is getattr and value == ["method", None]:
      return Function(self, arguments[1], arguments[0])
    return decode(value)


OPERATORS = tuple(getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "neg"))


def replace(container, content):
  content = copy.copy(content)
  container.clear()
  (container.extend if isinstance(container, list) else container.update)(content)


class Names(dict):
  """The global names of a test: what nobody defines belongs to the solution."""

  def __init__(self, calls, own):
    super().__init__(__name__="__main__", math=math, cmath=cmath, _statement=_statement,
                     _assert=self._assert)
    self._calls, self._own, self.has_assert = calls, own, False

  def _assert(self): self.has_assert = True

  def __missing__(self, name):
    if hasattr(builtins, name) and name not in self._own or name.startswith("__"):
      raise KeyError(name)
    return Function(self._calls, name)


def _statement(function, *arguments, **keywords):
  if not isinstance(function, Function): return function(*arguments, **keywords)
  function.calls.make(function, arguments, keywords, is_statement=True)


class _Statements(ast.NodeTransformer):
  """Replaces statements f(x) by _statement(f, x), and notes which asserts are run."""

  def visit_Assert(self, node):
    return [ast.Expr(ast.Call(ast.Name("_assert", ast.Load()), [], [])), node]

  def visit_Expr(self, node):
    if isinstance(call := node.value, ast.Call):
      node.value = ast.Call(ast.Name("_statement", ast.Load()), [call.func, *call.args],
                            call.keywords)
    return node


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
  """Runs a test; raises an exception if it fails. Returns: was an assert run?"""
  if "random" in code.co_names: random.seed(0)  # The calls of all runs are the same.
  names = Names(calls, own)
  sys.modules["solution"] = _Solution(names)
  exec(code, names)
  return names.has_assert


def test_process(files, i, ask, answer):
  """Runs test `i`; exits with 0 if it passes."""
  test = json.loads(read(files["tests"]))[i]
  os.dup2(os.open("/dev/null", os.O_RDWR), 1)

  def result(kind, content):
    os.ftruncate(files["call"], 0)
    os.pwrite(files["call"], content, 0)
    os.write(ask, kind)
    if not os.read(answer, 1): os._exit(1)
    return read(files["value"])

  try:
    if isinstance(test, dict):
      printed = result(b"p", test["input"].encode()).decode(errors="replace")
      assert lines(printed) == lines(test["output"])
    else:
      source, own = test
      run_test(compile_test(source), Calls(
          lambda call, _: json.loads(result(b"c", json.dumps(call).encode()))), own)
  except BaseException:
    os._exit(1)
  os._exit(0)


def lines(text): return [line.rstrip() for line in text.rstrip().split("\n")]


# Constants.

OBVIOUS: tuple = (True, False, None, 0, 1, -1, 0.0, "", [], (), {}, set())
VARIED = ([0], (1, 2), "ab", {"a": 1})  # To see whether calls depend on results.
OBJECT, METHOD = ["object", None], ["method", None]


class _Unassigned(BaseException):
  """Raised by the first call of a function without a constant: its name, results of other kinds."""


class _Constants:
  """The results of functions that always return the same value."""

  def __init__(self):
    self.failure = ""  # The newest exception of a test.
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
    if is_statement and not changing: return None, []
    name = f".{function[1][1]}()" if function[0] == "method" else function[1]
    is_attribute = name == "getattr"
    if is_attribute: name = f".{arguments[1]}"
    self.ways[name].add(text)
    if name not in self._constants:
      may_be_object = call["returns"] == "object"
      raise _Unassigned(name, [METHOD] * is_attribute + [OBJECT] * may_be_object)
    value = self._constants[name]
    if not is_statement: return value, []
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
      results.failure = f"{type(e).__name__}: {e}"[:200]
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
  problems, bodies, values = {}, [], []
  for i, (source, own) in enumerate(tests):
    results = _Constants()
    try:
      bodies.append((compile_test(source), own))
      values.append(literals(source))
      for _ in find_passing(bodies[-1:], encode_unique(OBVIOUS, VARIED, values[-1]), results): pass
      if not results.texts:
        problems[i] = (f"no solution passes it: {results.failure}" if results.failure else
                       "it calls no function of the solution")
    except Refused as e:
      problems[i] = str(e)
  if problems: return problems, None
  results, obvious = _Constants(), encode_unique(OBVIOUS)
  try:
    for constants in find_passing(bodies, encode_unique(OBVIOUS, add_near(sum(values, []))),
                                  results):
      constants = {name: v for name, v in constants.items() if v not in (OBJECT, METHOD)}
      if all(v in obvious or len(results.ways[name]) > 1 for name, v in constants.items()):
        return {}, {name: repr(decode(v))[:100] for name, v in constants.items()}
  except Refused as e:
    return {results.test: str(e)}, None
  return {}, None


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
