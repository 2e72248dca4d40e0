"""The inside of _sandbox.py: runs one program under limits.

argv[1] is a JSON dict: limits, walls and the fd of the job, another one: source and, where a
value is asked for, call. Nothing that comes out of here is trusted, and no expected value
comes in.
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
  # None: as it was.
  for limit, value in ((resource.RLIMIT_CPU, options["cpu_s"]), (resource.RLIMIT_CORE, 0),
                       (resource.RLIMIT_FSIZE, options["file"]), (resource.RLIMIT_NOFILE, 64),
                       (resource.RLIMIT_AS, options["memory"]),
                       (resource.RLIMIT_NPROC, walls and walls["threads"])):
    if value is None: continue
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))
  if walls: refuse(libc, bytes.fromhex(walls["filter"]))
  else: signal.setitimer(signal.ITIMER_REAL, options["wall_s"])  # If nobody is left to kill it.
  sink = os.open("/dev/null", os.O_RDWR)
  os.dup2(sink, 2)
  os.write(1, b"\n")  # It has started: from here on everything is the program's doing.
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
  """Goes on in a second process, in a folder of its own and without privileges; libc.

  The first one stays and ends with this one, or when the other end of `alive` is closed;
  with it ends all that is in its namespace.
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
  # Version 3 of the header of capset; no capability in any of the three sets.
  check(libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24)), "capset")
  open(os.__file__).close()  # An interpreter that the user cannot read is no solution's fault.
  pid = os.fork()
  if not pid:
    os.close(alive)
    return libc
  signal.signal(signal.SIGINT, signal.SIG_DFL)  # Of which the first process gets none.
  os.closerange(0, alive)
  def watch():
    os.read(alive, 1)
    os._exit(1)
  _thread.start_new_thread(watch, ())
  os._exit(os.waitpid(pid, 0)[1] != 0)


def refuse(libc, program):
  """Starts the filter of system calls."""
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
  """A value of plain types, or what gives them one by one, as JSON; else a TypeError."""
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
