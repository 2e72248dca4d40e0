"""Runs one program under limits, inside of the sandbox of _sandbox.py.

argv[1] is a JSON dict with limits, walls and the file descriptor of the job, which is a JSON
dict with source and, if an expression has to be evaluated, call. This process receives no
expected values, and its output is not trusted.
"""
import json
import os
import resource
import signal
import struct
import sys


def main():
  options = json.loads(sys.argv[1])
  walls = options["walls"]
  libc = enter(**walls) if walls else None
  # None keeps the limit as it is.
  for limit, value in ((resource.RLIMIT_CPU, options["cpu_s"]), (resource.RLIMIT_CORE, 0),
                       (resource.RLIMIT_FSIZE, options["file"]), (resource.RLIMIT_NOFILE, 64),
                       (resource.RLIMIT_AS, options["memory"]),
                       (resource.RLIMIT_NPROC, walls and walls["threads"])):
    if value is None: continue
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))
  if walls: refuse(libc, bytes.fromhex(walls["filter"]))
  else: signal.setitimer(signal.ITIMER_REAL, options["wall_s"])  # In case the parent dies.
  sink = os.open("/dev/null", os.O_RDWR)
  os.dup2(sink, 2)
  os.write(1, b"\n")  # Marks the start: any later failure is caused by the program.
  with os.fdopen(options["program"]) as f: job = json.load(f)
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


def enter(alive, user, tmpfs, **_):
  """Continues in a second process, in an own folder and without privileges. Returns libc.

  The first process waits. It ends when the second one ends or the other end of `alive` is
  closed, and with it everything in its namespace.
  """
  import ctypes
  import _thread
  libc = ctypes.CDLL(None, use_errno=True)
  nosuid_nodev_noexec = 2 | 4 | 8
  check(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", nosuid_nodev_noexec, tmpfs.encode()), "mount")
  os.chdir("/tmp")
  if user is not None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
  # Header of version 3, and no capability in any of the three sets.
  check(libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24)), "capset")
  open(os.__file__).close()  # Fails before the start mark if the user cannot read it.
  pid = os.fork()
  if not pid:
    os.close(alive)
    return libc
  signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ignored by the first process of a namespace.
  os.closerange(0, alive)
  def watch():
    os.read(alive, 1)
    os._exit(1)
  _thread.start_new_thread(watch, ())
  os._exit(os.waitpid(pid, 0)[1] != 0)


def refuse(libc, program):
  """Installs the filter of system calls."""
  import ctypes
  no_new_privileges, seccomp, by_filter = 38, 22, 2  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP.
  check(libc.prctl(no_new_privileges, 1, 0, 0, 0), "no_new_privs")
  code = ctypes.create_string_buffer(program, len(program))
  program = struct.pack("HP", len(program) // 8, ctypes.addressof(code))
  check(libc.prctl(seccomp, by_filter, program, 0, 0), "seccomp")


def check(result, name):
  import ctypes
  if result: raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def encode(x):
  """Returns a plain value, or an iterable of plain values, as JSON; else raises TypeError."""
  if x is None or isinstance(x, bool): return x
  if isinstance(x, str): return str(x)
  if isinstance(x, int): return ["int", hex(x)]
  if isinstance(x, float): return ["float", float(x).hex()]
  if isinstance(x, complex): return ["complex", f"{x.real.hex()} {x.imag.hex()}"]
  if isinstance(x, bytes): return ["bytes", x.hex()]
  if isinstance(x, dict): return ["dict", [[encode(k), encode(v)] for k, v in x.items()]]
  for kind in (list, tuple, set, frozenset):
    if isinstance(x, kind): return [kind.__name__, [encode(v) for v in x]]
  return ["iterable", [encode(v) for v in x]]  # A generator, a range, the keys of a dict.


main()
