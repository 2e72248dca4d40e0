"""Makes the seccomp filter of the system calls in the sandbox (man 2 seccomp).

The filter allows the calls of syscalls.toml, which CPython and numpy need for files, memory,
threads, signals and time. All other calls, also those of later kernels, fail with ENOSYS. Not
allowed are new processes (fork, execve) and access to others (ptrace, pidfd_*, process_vm_*,
kcmp); sockets other than a pair; memory that no limit counts (memfd_create, System V, message
queues, keys, xattrs) and files beyond their limit (fallocate); other users, namespaces and
mounts; bpf, perf, io_uring, userfaultfd and splice.
"""
import functools
import pathlib
import platform
import struct
import tomllib

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# {name: numbers on these architectures}; some calls exist on the first one only.
_ALLOWED = {name: numbers for group in tomllib.loads(
    pathlib.Path(__file__).with_name("syscalls.toml").read_text()).values()
            for name, numbers in group.items()}

# {name: (numbers, argument, values)}: calls that are allowed with these values only.
_ALLOWED_WITH = dict(
    # FIONBIO, FIONREAD, FIOCLEX, FIONCLEX, TCGETS, TCGETS2, TIOCGWINSZ.
    ioctl=((16, 29), 1, (0x5421, 0x541B, 0x5451, 0x5450, 0x5401, 0x802C542A, 0x5413)),
    # Copies, flags and locks: no owner of signals, no lease, no size of a pipe.
    fcntl=((72, 25), 1, (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030)),
    # Names of threads and of memory, but no other settings of the process.
    prctl=((157, 167), 0, (15, 16, 0x53564D41)),
    prlimit64=((302, 261), 0, (0,)),   # Of this process.
    socketpair=((53, 199), 0, (1,)),   # AF_UNIX.
    sendto=((44, 206), 3, (0,)), recvfrom=((45, 207), 3, (0,)))  # No flags.
_CLONE, _CLONE_THREAD = (56, 220), 0x10000
_CLONE_FLAGS = 0x7D0F00  # Those of pthread_create in glibc and musl.


@functools.cache
def program():
  """Returns the filter as a BPF program for this machine.

  Raises:
    ImportError: the architecture is not one of _ARCHITECTURES.
  """
  if platform.machine() not in _ARCHITECTURES:
    raise ImportError(f"no system call filter for {platform.machine()}")
  column = list(_ARCHITECTURES).index(platform.machine())
  load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06
  allow, refuse, kill = 0x7FFF0000, 0x00050026, 0x80000000  # ENOSYS: libc tries another call.
  def one(code, value, yes=0, no=0): return struct.pack("HBBI", code, yes, no, value)
  def argument(i): return one(load, 16 + 8 * i)  # Its lower half.
  parts = [one(load, 4), one(equal, _ARCHITECTURES[platform.machine()], 1), one(give, kill),
           one(load, 0)]
  for numbers in _ALLOWED.values():
    for number in numbers[column:column + 1]: parts += [one(equal, number, 0, 1), one(give, allow)]
  for numbers, i, values in _ALLOWED_WITH.values():
    parts += [one(equal, numbers[column], 0, len(values) + 3), argument(i)]
    parts += [one(equal, v, len(values) - j) for j, v in enumerate(values)]
    parts += [one(give, refuse), one(give, allow)]
  parts += [one(equal, _CLONE[column], 0, 4), argument(0), one(any_bit, ~_CLONE_FLAGS % 2**32, 2),
            one(any_bit, _CLONE_THREAD, 0, 1), one(give, allow), one(give, refuse)]
  return b"".join(parts)
