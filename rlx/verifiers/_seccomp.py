"""The system calls of a program in the sandbox, as a seccomp filter (man 2 seccomp).

Calls that are not listed fail with ENOSYS, and so does what a later kernel adds. Listed is
what CPython and numpy need for files, memory, threads, signals and time. Left out are, by
what they would allow: new processes (fork, execve) and access to others (ptrace, pidfd_*,
process_vm_*, kcmp); sockets other than a pair; memory that no limit counts (memfd_create,
System V, message queues, keys, xattrs) and files beyond their limit (fallocate); other
users, namespaces and mounts; bpf, perf, io_uring, userfaultfd, splice.
"""
import functools
import platform
import struct

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# (x86_64, aarch64) numbers; None: there is no such call.
_ALLOWED = dict(
    # Files.
    read=(0, 63), write=(1, 64), readv=(19, 65), writev=(20, 66), pread64=(17, 67),
    pwrite64=(18, 68), preadv=(295, 69), pwritev=(296, 70), preadv2=(327, 286),
    pwritev2=(328, 287), lseek=(8, 62), open=(2, None), openat=(257, 56), close=(3, 57),
    close_range=(436, 436), dup=(32, 23), dup2=(33, None), dup3=(292, 24), flock=(73, 32),
    fsync=(74, 82), fdatasync=(75, 83), fadvise64=(221, 223), stat=(4, None), fstat=(5, 80),
    lstat=(6, None), newfstatat=(262, 79), statx=(332, 291), statfs=(137, 43), fstatfs=(138, 44),
    access=(21, None), faccessat=(269, 48), faccessat2=(439, 439), readlink=(89, None),
    readlinkat=(267, 78), getdents=(78, None), getdents64=(217, 61), getcwd=(79, 17),
    chdir=(80, 49), fchdir=(81, 50), umask=(95, 166), mkdir=(83, None), mkdirat=(258, 34),
    rmdir=(84, None), unlink=(87, None), unlinkat=(263, 35), rename=(82, None),
    renameat=(264, 38), renameat2=(316, 276), link=(86, None), linkat=(265, 37),
    symlink=(88, None), symlinkat=(266, 36), chmod=(90, None), fchmod=(91, 52),
    fchmodat=(268, 53), truncate=(76, 45), ftruncate=(77, 46), utimensat=(280, 88),
    # Pipes, and what an event loop of asyncio needs.
    pipe=(22, None), pipe2=(293, 59), poll=(7, None), ppoll=(271, 73), select=(23, None),
    pselect6=(270, 72), epoll_create1=(291, 20), epoll_ctl=(233, 21), epoll_wait=(232, None),
    epoll_pwait=(281, 22), shutdown=(48, 210), getsockname=(51, 204), getpeername=(52, 205),
    getsockopt=(55, 209),
    # Memory and threads.
    mmap=(9, 222), mprotect=(10, 226), munmap=(11, 215), mremap=(25, 216), madvise=(28, 233),
    brk=(12, 214), msync=(26, 227), membarrier=(324, 283), futex=(202, 98),
    set_robust_list=(273, 99), rseq=(334, 293), gettid=(186, 178), sched_yield=(24, 124),
    sched_getaffinity=(204, 123), getcpu=(309, 168), exit=(60, 93), exit_group=(231, 94),
    # Signals; there is nobody else to send one to.
    rt_sigaction=(13, 134), rt_sigprocmask=(14, 135), rt_sigreturn=(15, 139),
    rt_sigpending=(127, 136), rt_sigsuspend=(130, 133), rt_sigtimedwait=(128, 137),
    sigaltstack=(131, 132), kill=(62, 129), tkill=(200, 130), tgkill=(234, 131),
    restart_syscall=(219, 128), pause=(34, None), alarm=(37, None), setitimer=(38, 103),
    getitimer=(36, 102),
    # Time.
    clock_gettime=(228, 113), clock_getres=(229, 114), clock_nanosleep=(230, 115),
    nanosleep=(35, 101), gettimeofday=(96, 169), time=(201, None), times=(100, 153),
    # What the process is.
    getrusage=(98, 165), wait4=(61, 260), getpid=(39, 172), getppid=(110, 173), getuid=(102, 174),
    geteuid=(107, 175), getgid=(104, 176), getegid=(108, 177), getgroups=(115, 158),
    getresuid=(118, 148), getresgid=(120, 150), getpgid=(121, 155), getpgrp=(111, None),
    getsid=(124, 156), getpriority=(140, 141), uname=(63, 160), sysinfo=(99, 179),
    getrandom=(318, 278), getrlimit=(97, 163), setrlimit=(160, 164))

# name -> (numbers, argument, its values): allowed with these alone.
_ALLOWED_WITH = dict(
    # FIONBIO, FIONREAD, FIOCLEX, FIONCLEX, TCGETS, TCGETS2, TIOCGWINSZ.
    ioctl=((16, 29), 1, (0x5421, 0x541B, 0x5451, 0x5450, 0x5401, 0x802C542A, 0x5413)),
    # Copies, flags and locks: no owner of signals, no lease, no size of a pipe.
    fcntl=((72, 25), 1, (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030)),
    # The name of a thread and of memory. Not PR_SET_*, such as what happens when a parent dies.
    prctl=((157, 167), 0, (15, 16, 0x53564D41)),
    prlimit64=((302, 261), 0, (0,)),   # Of this process.
    socketpair=((53, 199), 0, (1,)),   # AF_UNIX.
    sendto=((44, 206), 3, (0,)), recvfrom=((45, 207), 3, (0,)))  # No flags.
_CLONE, _CLONE_THREAD = (56, 220), 0x10000
_CLONE_FLAGS = 0x7D0F00  # Those of pthread_create in glibc and musl.


@functools.cache
def program():
  """The filter as a BPF program for this machine.

  Raises:
    ImportError: its architecture is not one of _ARCHITECTURES.
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
    if numbers[column] is not None: parts += [one(equal, numbers[column], 0, 1), one(give, allow)]
  for numbers, i, values in _ALLOWED_WITH.values():
    parts += [one(equal, numbers[column], 0, len(values) + 3), argument(i)]
    parts += [one(equal, v, len(values) - j) for j, v in enumerate(values)]
    parts += [one(give, refuse), one(give, allow)]
  parts += [one(equal, _CLONE[column], 0, 4), argument(0), one(any_bit, ~_CLONE_FLAGS % 2**32, 2),
            one(any_bit, _CLONE_THREAD, 0, 1), one(give, allow), one(give, refuse)]
  return b"".join(parts)
