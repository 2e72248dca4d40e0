"""Programs that attack the sandbox of code_tests, by family; test_attacks.py runs them.

Each prints LEAK where it gets what it should not, and none knows what is expected of it:
its verdict is 0. They find the names of `BEFORE` and of the test: SECRET and OUT, files of
the host to be read and written; ROOT, the checkout; HOST, the process id of the test; PORT, where it listens.
"""

# Some of these would end the machine: they go on only among the few processes of a sandbox.
GUARD = "if os.getpid() > 9: print('LEAK', flush=True); os._exit(0)\n"
BEFORE = """
import builtins, ctypes, gc, json, os, platform, resource, signal, socket, struct, sys, threading, time
C = ctypes.CDLL(None, use_errno=True)
def call(x86, arm, *arguments):
  number = x86 if platform.machine() == 'x86_64' else arm
  return C.syscall(ctypes.c_long(number), *(
      ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
def leak_if(yes):
  if yes: print('LEAK', flush=True)
def open_files():
  for fd in range(64):
    try: yield fd, os.fstat(fd)
    except OSError: pass
""" + GUARD
# What a program prints as long as it can.
FLOOD = "while True: os.write({fd}, b'x' * 2**16)"

FAMILIES = dict(
    devices=dict(
        null="os.chmod('/dev/null', 0)\nprint('LEAK')",
        null_by_descriptor="os.fchmod(os.open('/dev/null', os.O_RDWR), 0)\nprint('LEAK')",
        zero="for d in ('zero', 'full', 'random', 'urandom', 'tty'):\n"
             "  try: os.chmod('/dev/' + d, 0o600); print('LEAK')\n  except OSError: pass",
        owner="os.chown('/dev/null', os.getuid(), -1)\nprint('LEAK')",
        times="os.utime('/dev/null', (0, 0))\nprint('LEAK')",
        remove="os.unlink('/dev/null')\nprint('LEAK')", rename="os.rename('/dev/null', '/dev/x')\nprint('LEAK')",
        replace="os.symlink('/tmp/x', '/dev/x')\nprint('LEAK')", folder="os.mkdir('/dev/x')\nprint('LEAK')",
        space="open('/dev/x', 'wb').write(bytes(2**20))\nprint('LEAK')",
        make="os.mknod('x', 0o20666, os.makedev(1, 3))\nprint('LEAK')",
        disk="os.mknod('x', 0o60666, os.makedev(254, 0))\nprint('LEAK', os.open('x', 0))",
        others="leak_if(set(os.listdir('/dev')) - {'null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx',\n"
               "  'pts', 'shm', 'core', 'fd', 'stdin', 'stdout', 'stderr'})",
        kernel_log="print('LEAK', open('/dev/kmsg').read())", memory="print('LEAK', open('/dev/mem'))",
        random_pool="fd = os.open('/dev/urandom', os.O_RDWR)\nleak_if(C.ioctl(fd, 0x5206, 0) == 0)",
        terminal="print('LEAK', os.open('/dev/tty', os.O_RDWR))",
        type_ahead="for fd in range(3): leak_if(C.ioctl(fd, 0x5412, b'x') == 0)",
        name="os.mknod('x', 0o20666, 1)\nprint('LEAK')",
        disks="print('LEAK', os.listdir('/sys'), os.listdir('/dev/disk'))"),
    files=dict(
        read="print(open(SECRET).read())", passwd="print('LEAK', open('/etc/passwd').read())",
        shadow="print('LEAK', open('/etc/shadow').read())", checkout="print('LEAK', os.listdir(ROOT))",
        up="print('LEAK', open('../' * 20 + SECRET).read())",
        symlink="os.symlink(SECRET, 'x')\nprint(open('x').read())",
        symlink_folder="os.symlink('/', 'x')\nprint(open('x' + SECRET).read())",
        hardlink="os.link(SECRET, 'x')\nprint(open('x').read())",
        hardlink_program="os.link(os.__file__, 'x')\nprint('LEAK')",
        write="open(OUT, 'w').write('x')\nprint('LEAK')", root="open('/x', 'w')\nprint('LEAK')",
        interpreter="open(os.__file__, 'a')\nprint('LEAK')", usr="open('/usr/lib/x', 'w')\nprint('LEAK')",
        chmod="os.chmod(os.__file__, 0o777)\nprint('LEAK')", truncate="os.truncate(os.__file__, 0)\nprint('LEAK')",
        touch="os.utime(os.__file__)\nprint('LEAK')",
        bytecode="open(os.path.join(os.path.dirname(os.__file__), '__pycache__', 'x'), 'w')\nprint('LEAK')",
        site="import site\nopen(site.getsitepackages()[0] + '/x.pth', 'w')\nprint('LEAK')",
        handle="leak_if(call(304, 265, -100, struct.pack('IIQ', 8, 1, 2), 0) >= 0)",
        leftovers="leak_if(os.listdir('/tmp'))", home="print('LEAK', os.listdir(os.path.expanduser('~')))",
        working_folder="leak_if(os.getcwd() != '/tmp')"),
    space=dict(
        fallocate="fd = os.open('x', os.O_RDWR | os.O_CREAT)\n"
                  "leak_if(call(285, 47, fd, 1, 0, 2**30) == 0)",
        fallocate_stdin="leak_if(call(285, 47, 0, 1, 0, 2**30) == 0)",
        fallocate_stdout="leak_if(call(285, 47, 1, 1, 0, 2**30) == 0)",
        emulated="fd = os.open('x', os.O_RDWR | os.O_CREAT)\nos.posix_fallocate(fd, 0, 2**23)\nprint('LEAK')",
        sparse="f = open('x', 'wb')\nf.truncate(2**40)\nprint('LEAK')",
        offset="fd = os.open('x', os.O_RDWR | os.O_CREAT)\nos.pwrite(fd, b'x', 2**40)\nprint('LEAK')",
        large_file="open('x', 'wb').write(bytes(2**23))\nprint('LEAK')",
        many_files="try:\n  for i in range(99): open(str(i), 'wb').write(bytes(2**21))\nexcept OSError: pass\n"
                   "else: print('LEAK')",
        names="for i in range(5000): open(str(i), 'w').close()\nprint('LEAK')",
        folders="for i in range(5000): os.mkdir(str(i))\nprint('LEAK')",
        links="for i in range(5000): os.symlink('/' * 4000, str(i))\nprint('LEAK')",
        deep="for i in range(5000): os.mkdir('x'); os.chdir('x')\nprint('LEAK')",
        attributes="open('x', 'w')\nfor i in range(99): os.setxattr('x', f'user.{i}', bytes(60000))\nprint('LEAK')",
        unnamed="os.memfd_create('x')\nprint('LEAK')",
        mapped="import mmap\nf = open('x', 'w+b')\nf.truncate(2**22)\nm = mmap.mmap(f.fileno(), 2**22)\n"
               "m.resize(2**23)\nprint('LEAK')",
        shared_memory="open('/dev/shm/x', 'w')\nprint('LEAK')",
        shared_module="from multiprocessing import shared_memory as s\ns.SharedMemory('x', True, 2**20)\nprint('LEAK')",
        system_v="leak_if(call(29, 194, 0, 2**20, 0o1600) >= 0)",
        semaphores="leak_if(call(64, 190, 0, 9, 0o1600) >= 0)", messages="leak_if(call(68, 186, 0, 0o1600) >= 0)",
        queue="leak_if(call(240, 180, b'x', 0o102, 0o600, 0) >= 0)",
        pipe="import fcntl\nr, w = os.pipe()\nfcntl.fcntl(w, 1031, 2**20)\nprint('LEAK')",
        locked="leak_if(C.mlockall(3) == 0)"),
    output=dict(
        print="while True: print('x' * 10**5)", raw=FLOOD.format(fd=1), problem=FLOOD.format(fd=2),
        size="os.ftruncate(1, 2**30)\nprint('LEAK')", seek="os.lseek(1, 2**30, 0)\nprint('LEAK')",
        stdin="os.write(0, b'x')\nprint('LEAK')", stdin_size="os.ftruncate(0, 2**30)\nprint('LEAK')",
        stdin_mode="os.fchmod(0, 0o777)\nprint('LEAK')",
        says_no_start="for fd in range(9):\n  try: os.write(fd, b'bwrap: No permissions\\n')\n"
                      "  except OSError: pass\nsys.stderr.write('bwrap: failed')\nos._exit(1)",
        status="for fd in range(64):\n  try: os.write(fd, struct.pack('Q', 1))\n  except OSError: pass\nos._exit(1)",
        closed="os.closerange(0, 64)\nos._exit(1)", closed_well="os.closerange(0, 64)\nos._exit(0)",
        crossed="os.dup2(0, 1)\nos.dup2(1, 2)\nprint('LEAK')", nothing="", mark="os.write(1, b'\\n' * 9)",
        value="os.write(1, b'true'); os._exit(0)", non_blocking="os.set_blocking(1, False)\nos._exit(0)"),
    descriptors=dict(
        any="leak_if(any(fd > 2 and s.st_rdev != os.stat('/dev/null').st_rdev for fd, s in open_files()))",
        kinds="import stat\nleak_if(any(stat.S_ISDIR(s.st_mode) or stat.S_ISSOCK(s.st_mode) for _, s in open_files()))",
        pidfd="leak_if(call(434, 434, 1, 0) >= 0)", own="leak_if(call(434, 434, os.getpid(), 0) >= 0)",
        launcher="fd = call(434, 434, 1, 0)\nfor i in range(64):\n  g = call(438, 438, fd, i, 0)\n"
                 "  if g >= 0: print('LEAK'); os.write(g, b'bwrap: failed\\n')",
        event="fd = call(434, 434, 1, 0)\nfor i in range(64):\n  g = call(438, 438, fd, i, 0)\n"
              "  if g >= 0: print('LEAK'); os.write(g, struct.pack('Q', 1))\nos._exit(1)",
        signal="leak_if(call(424, 424, call(434, 434, 1, 0), 9, 0, 0) >= 0)",
        named="print('LEAK', os.listdir('/proc/self/fd'), os.open('/dev/fd/0', os.O_RDWR))",
        standard="print('LEAK', os.open('/dev/stdin', os.O_RDWR))",
        compare="leak_if(call(312, 272, 1, os.getpid(), 0, 0, 0) >= 0)",
        passed="a, b = socket.socketpair()\nsocket.send_fds(a, [b'x'], [0])\nprint('LEAK')",
        owner="import fcntl\nr, w = os.pipe()\nfcntl.fcntl(r, 8, 1)\nprint('LEAK')",
        lease="import fcntl\nfcntl.fcntl(0, 1024, 0)\nprint('LEAK')",
        watch="import fcntl\nfcntl.fcntl(os.open('/tmp', 0), 1026, 1)\nprint('LEAK')",
        splice="r, w = os.pipe()\nleak_if(call(275, 76, 0, 0, w, 0, 1, 0) >= 0)",
        many="fds = [os.dup(0) for _ in range(99)]\nprint('LEAK')"),
    processes=dict(
        fork="os.fork()\nprint('LEAK')",
        fork_bomb="end = time.time() + 1\nwhile time.time() < end:\n  try: os.fork(); print('LEAK')\n"
                  "  except OSError: pass",
        spawn="os.posix_spawn('/bin/sh', ['sh', '-c', 'echo LEAK'], {})", system="os.system('echo LEAK')",
        processes="import multiprocessing as m\nm.Process(target=print, args=['LEAK']).start()",
        clone="leak_if(call(56, 220, 17, 0, 0, 0, 0) >= 0)",
        clone3="leak_if(call(435, 435, struct.pack('11Q', 0, 0, 0, 0, 17, *[0] * 6), 88) >= 0)",
        clone_thread="leak_if(call(56, 220, 0x10000 | 0x10000000, 0, 0, 0, 0) >= 0)",
        vfork="leak_if(call(58, 58, 0) > 0)", x32="leak_if(C.syscall(0x40000000 + 39) >= 0)",
        shell="os.execv('/usr/bin/sh', ['sh', '-c', 'echo LEAK'])",
        program="open('x', 'w').write('#!/bin/sh\\necho LEAK')\nos.chmod('x', 0o755)\nos.execv('x', ['x'])",
        unreadable="open('x', 'wb').write(open(sys.executable, 'rb').read(2**22))\nos.chmod('x', 0o111)\n"
                   "print('LEAK', os.execv('x', ['x']))",
        from_descriptor="leak_if(call(322, 281, os.open('/usr/bin/env', 0), b'', 0, 0, 0x1000) >= 0)",
        ptrace="leak_if(C.ptrace(0, 0, 0, 0) >= 0)", attach="leak_if(C.ptrace(0x4206, 1, 0, 0) >= 0)",
        peek="leak_if(call(310, 270, 1, 0, 0, 0, 0, 0) >= 0)", poke="leak_if(call(311, 271, 1, 0, 0, 0, 0, 0) >= 0)",
        others="leak_if(any(call(62, 129, p, 0) == 0 for p in range(4, 300)))",  # The first has a thread.
        limits_of_first="leak_if(call(302, 261, 1, 0, struct.pack('QQ', 0, 0), 0) == 0)",
        priority="os.setpriority(os.PRIO_PROCESS, 1, 19)\nprint('LEAK')",
        affinity="os.sched_setaffinity(0, {0})\nprint('LEAK')", session="os.setsid()\nprint('LEAK')",
        group="os.setpgid(0, 0)\nprint('LEAK')"),
    signals=dict(
        kill_first="os.kill(1, 9)\nos.kill(1, 15)\nos.kill(1, 2)\ntime.sleep(.3)\nos._exit(1)",
        kill_parent="os.kill(os.getppid(), 9)\ntime.sleep(.3)\nos.kill(1, 9)\nos.kill(1, 15)",
        kill_all="os.kill(-1, 9)", kill_group="os.killpg(0, 9)", kill_host="os.kill(HOST, 0)\nprint('LEAK')",
        stop_first="os.kill(1, signal.SIGSTOP)\ntime.sleep(.3)\nos._exit(1)",
        stop="os.kill(os.getpid(), signal.SIGSTOP)",
        stop_group="os.killpg(0, signal.SIGSTOP)",
        itself="os.kill(os.getpid(), 9)", abort="os.abort()", trap="signal.raise_signal(signal.SIGTRAP)",
        segfault="ctypes.string_at(0)", bad_call="signal.raise_signal(signal.SIGSYS)",
        queued="leak_if(call(129, 138, 1, 9, bytes(128)) >= 0)",
        blocked="signal.pthread_sigmask(signal.SIG_SETMASK, range(1, 65))\nwhile True: pass",
        ignored="for s in range(1, 65):\n  try: signal.signal(s, lambda *a: None)\n  except Exception: pass\n"
                "while True: pass",
        timers="signal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, 1e-5, 1e-5)\n"
               "while True: pass",
        death="leak_if(C.prctl(1, 0, 0, 0, 0) == 0)", reaper="leak_if(C.prctl(36, 1, 0, 0, 0) == 0)",
        leader="threading.Thread(target=time.sleep, args=[60]).start()\ncall(60, 93, 0)"),
    namespaces=dict(
        user="leak_if(C.unshare(0x10000000) >= 0)", mounts="leak_if(C.unshare(0x20000) >= 0)",
        network="leak_if(C.unshare(0x40000000) >= 0)", join="leak_if(C.setns(0, 0) >= 0)",
        mount="leak_if(C.mount(b'/', b'/tmp', b'', 4096, b'') >= 0)",
        remount="leak_if(C.mount(b'none', b'/', b'', 32 | 4096, b'') >= 0)",
        unmount="leak_if(C.umount2(b'/tmp', 2) >= 0)", tmpfs="leak_if(C.mount(b'x', b'/tmp', b'tmpfs', 0, b'') >= 0)",
        open_tree="leak_if(call(428, 428, -100, b'/', 1) >= 0)",
        move_mount="leak_if(call(429, 429, 0, b'', 0, b'/tmp', 4) >= 0)",
        fsopen="leak_if(call(430, 430, b'tmpfs', 0) >= 0)", fsmount="leak_if(call(432, 432, 0, 0, 0) >= 0)",
        fspick="leak_if(call(433, 433, -100, b'/tmp', 0) >= 0)",
        mount_setattr="leak_if(call(442, 442, -100, b'/', 0, bytes(32), 32) >= 0)",
        chroot="os.chroot('/tmp')\nprint('LEAK')", pivot="leak_if(call(155, 41, b'/tmp', b'/tmp') >= 0)",
        quota="leak_if(call(179, 60, 0, b'/', 0, 0) >= 0)"),
    privileges=dict(
        root_user="os.setuid(0)\nprint('LEAK')", root_group="os.setgid(0)\nprint('LEAK')",
        groups="os.setgroups([0])\nprint('LEAK')",
        capabilities="leak_if(call(126, 91, struct.pack('Ii', 0x20080522, 0), struct.pack('6I', *[2**32 - 1] * 6)) == 0)",
        held="leak_if(C.capget(struct.pack('Ii', 0x20080522, 0), ctypes.create_string_buffer(24)) == 0)",
        keep="leak_if(C.prctl(8, 1, 0, 0, 0) == 0)", secure_bits="leak_if(C.prctl(28, 0, 0, 0, 0) == 0)",
        filter="leak_if(C.prctl(22, 2, 0, 0, 0) >= 0)", no_filter="leak_if(C.prctl(22, 0, 0, 0, 0) >= 0)",
        keys="leak_if(call(250, 219, 0, -3, 0) >= 0)", add_key="leak_if(call(248, 217, b'user', b'x', b'x', 1, -3) >= 0)",
        bpf="leak_if(call(321, 280, 0, bytes(64), 64) >= 0)",
        perf="leak_if(call(298, 241, bytes(112), 0, -1, -1, 0) >= 0)",
        rings="leak_if(call(425, 425, 1, bytes(120)) >= 0)", faults="leak_if(call(323, 282, 1) >= 0)",
        clock="time.clock_settime(0, 0)\nprint('LEAK')", host_name="socket.sethostname('x')\nprint('LEAK')",
        reboot="leak_if(call(169, 142, 0xfee1dead, 672274793, 0, 0) >= 0)",
        module="leak_if(call(313, 273, 0, b'', 0) >= 0)", swap="leak_if(call(167, 224, b'/tmp/x', 0) >= 0)",
        personality="leak_if(call(135, 92, 0x40000) >= 0)"),
    network=dict(
        tcp="socket.create_connection(('127.0.0.1', PORT), 1)\nprint('LEAK')",
        udp="socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nprint('LEAK')",
        unix="socket.socket(socket.AF_UNIX)\nprint('LEAK')",
        abstract="a, b = socket.socketpair()\na.connect('\\0x')\nprint('LEAK')",
        bound="a, b = socket.socketpair()\na.bind('x')\nprint('LEAK')",
        netlink="leak_if(call(53, 199, 16, 3, 0, bytes(8)) >= 0)",
        packets="socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\nprint('LEAK')",
        names="print('LEAK', socket.gethostbyname('localhost'))",
        urgent="a, b = socket.socketpair()\na.send(b'x', socket.MSG_OOB)\nprint('LEAK')",
        options="a, b = socket.socketpair()\na.setsockopt(1, 26, bytes(16))\nprint('LEAK')",
        http="import urllib.request\nprint('LEAK', urllib.request.urlopen('http://127.0.0.1:%d' % PORT))"),
    limits=dict(
        memory="x = bytearray(10**10)\nprint('LEAK')", maps="import mmap\nx = mmap.mmap(-1, 2**31)\nprint('LEAK')",
        raise_memory="resource.setrlimit(resource.RLIMIT_AS, (-1, -1))\nprint('LEAK')",
        raise_time="resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))\nprint('LEAK')",
        raise_files="resource.setrlimit(resource.RLIMIT_NOFILE, (999, 999))\nprint('LEAK')",
        raise_threads="resource.setrlimit(resource.RLIMIT_NPROC, (-1, -1))\nprint('LEAK')",
        loop="while True: pass", sleep="time.sleep(99)", read="while True: os.read(0, 1)",
        threads="def g(): time.sleep(9)\nfor i in range(10**5): threading.Thread(target=g, daemon=True).start()\n"
                "print('LEAK')",
        small_threads="C.mallopt(-8, 1)  # M_ARENA_MAX\nthreading.stack_size(2**15)\nfor i in range(1000):\n"
                      "  threading.Thread(target=time.sleep, args=[9], daemon=True).start()\nprint('LEAK')",
        busy_threads="def g():\n  while True: pass\nfor i in range(50): threading.Thread(target=g).start()\ng()",
        recursion="sys.setrecursionlimit(10**9)\nf = lambda x: f(x)\nf(1)", number="9 ** 9 ** 9",
        pattern="import re\nre.match('(a+)+$', 'a' * 64 + 'b')"),
    exits=dict(
        exit="sys.exit(0)", hard_exit="os._exit(0)", raw_exit="call(231, 94, 0)",
        at_exit="import atexit\natexit.register(os._exit, 0)\nraise SystemExit(1)",
        finalizer="class A:\n  def __del__(self): os._exit(0)\na = A()\nraise SystemExit(1)",
        hook="sys.excepthook = lambda *a: os._exit(0)\nraise ValueError",
        in_thread="threading.Thread(target=os._exit, args=[0]).start()\ntime.sleep(9)",
        code_of_no_start="os._exit(125)", code_of_signal="os._exit(137)", code="os._exit(-9 % 256)"),
    interpreter=dict(
        frames="g = sys._getframe()\nwhile g:\n  for v in [*g.f_locals.values(), *g.f_globals.values()]:\n"
               "    if 'expected-output' in str(v) and 'str(v)' not in str(v): print('LEAK', v)\n  g = g.f_back",
        objects="for v in gc.get_objects():\n  if isinstance(v, dict):\n    for w in [*v.values()]:\n"
                "      if type(w) is str and w.startswith('the-expected-'): print('LEAK', w)",
        files="for fd in range(64):\n  try: t = os.pread(fd, 10**6, 0).decode()\n  except OSError: continue\n"
              "  leak_if('the-' + 'expected' in t)",
        arguments="leak_if('the-' + 'expected' in str(sys.argv[1:]) + str(sys.orig_argv[4:]))\nf = lambda x: sys.argv[-1]",
        main="import __main__\nfor k in [*vars(__main__)]:\n  if callable(vars(__main__)[k]): setattr(__main__, k, lambda *a: True)\n"
             "f = lambda x: True",
        patched="builtins.eval = builtins.compile = lambda *a: True\njson.dumps = lambda *a: 'true'\nf = lambda x: True",
        hooks="import types\nclass F:\n  find_spec = lambda *a: os._exit(0)\nsys.meta_path.insert(0, F())\nimport zipapp",
        audit="sys.addaudithook(lambda *a: os._exit(0) if a[0] == 'compile' else None)\ncompile('1', '', 'eval')",
        trace="sys.settrace(lambda *a: os._exit(0))\nsys.setprofile(lambda *a: os._exit(0))",
        memory="p = 0\nfor line in range(99): ctypes.memset(id(os) + 8 * line, 0, 8)",
        modules="for m in [*sys.modules]: del sys.modules[m]\nf = lambda x: None",
        any_output="class E(str):\n  __eq__ = lambda *a: True\n  __hash__ = None\nprint(E())\nf = lambda x: E()"),
    surroundings=dict(
        environment="print(os.environ)\nleak_if('RLX_TEST_KEY' in os.environ)", env="os.execv('/usr/bin/env', ['env'])",
        c_environment="C.getenv.restype = ctypes.c_char_p\nprint(C.getenv(b'RLX_TEST_KEY'))",
        proc="print('LEAK', os.listdir('/proc'))", proc_environ="print(open('/proc/1/environ').read())",
        proc_parent="print('LEAK', open(f'/proc/{os.getppid()}/mem', 'rb'))",
        proc_memory="print('LEAK', open('/proc/self/mem', 'r+b'))", sys="print('LEAK', os.listdir('/sys'))",
        cgroup="print('LEAK', os.listdir('/sys/fs/cgroup'))",
        host_name="leak_if(call(170, 161, b'x', 1) >= 0)",
        run="print('LEAK', os.listdir('/run'))", var="print('LEAK', os.listdir('/var'))"))
