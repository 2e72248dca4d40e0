"""The inside of _sandbox.py: runs one program under limits.

argv[1] is the fd of its job, a JSON dict: source, limits and, where a value is asked
for, call. Nothing that comes out of here is trusted, and no expected value comes in.
"""
import json
import os
import resource
import signal
import sys


def main():
  with os.fdopen(int(sys.argv[1])) as f: job = json.load(f)
  for limit, value in ((resource.RLIMIT_CPU, job["cpu_s"]), (resource.RLIMIT_CORE, 0),
                       (resource.RLIMIT_FSIZE, job["file"]), (resource.RLIMIT_NOFILE, 64),
                       (resource.RLIMIT_AS, job["memory"])):
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))
  signal.setitimer(signal.ITIMER_REAL, job["wall_s"])  # If nobody is left to kill it.
  sink = os.open("/dev/null", os.O_RDWR)
  os.dup2(sink, 2)
  call = job.get("call")
  if call is None:
    exec(compile(job["source"], "solution.py", "exec"), {"__name__": "__main__"})
    return
  out = os.dup(1)
  os.dup2(sink, 1)
  names = {"__name__": "solution"}
  exec(compile(job["source"], "solution.py", "exec"), names)
  value = json.dumps(encode(eval(compile(call, "test.py", "eval"), names)))
  os.write(out, value.encode())
  os._exit(0)


def encode(x):
  """A value of plain types as JSON that tells them apart; else a TypeError."""
  if x is None or isinstance(x, bool): return x
  if isinstance(x, str): return str(x)
  if isinstance(x, int): return ["int", hex(x)]
  if isinstance(x, float): return ["float", float(x).hex()]
  if isinstance(x, bytes): return ["bytes", x.hex()]
  if isinstance(x, dict): return ["dict", [[encode(k), encode(v)] for k, v in x.items()]]
  for kind in (list, tuple, set, frozenset):
    if isinstance(x, kind): return [kind.__name__, [encode(v) for v in x]]
  raise TypeError(type(x).__name__)


main()
