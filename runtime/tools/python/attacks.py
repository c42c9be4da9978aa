"""Known ways out of a sandbox, each as a cell that tries it.

An attack returns what it has reached, or None. An OSError or a MemoryError is the sandbox that
holds. Its cell says "begun" through the driver, which arrives even if the attack ends the
interpreter, and "held N", the number of ways that were tried.
What must stay true: an attack that gets out does no harm: it looks, and gives back.
PLANTED is what the other side has put in its way: home, a file with a secret in the home; port, of
this machine's loopback; pid and name of a process outside; secret; memory and disk, the limits.
A bomb takes a quarter more than its limit, waits and reports. The sandbox holds if it ends the
interpreter before: without a cgroup it measures memory only a few times a second. AFTER looks at
what an attack leaves for the next cell, which begins twice pause seconds later.
"""
import ctypes
import fcntl
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import types

libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": dict(clone=56, keyctl=250, add_key=248, bpf=321, perf=298, userfaultfd=323,
                   memfd=319, timer=222, set_timer=223, handle=304, mq_open=240, shmget=29,
                   shmat=30, vm_readv=310, setns=308),
    "aarch64": dict(clone=220, keyctl=219, add_key=217, bpf=280, perf=241, userfaultfd=282,
                    memfd=279, timer=107, set_timer=110, handle=265, mq_open=180, shmget=194,
                    shmat=196, vm_readv=270, setns=268),
}.get(platform.machine(), {})
NUMBERS.update(io_uring=425, fsopen=430, clone3=435, pidfd_getfd=438)
ATTACKS, AFTER, TRIED = {}, {}, []
driver = sys.modules["__main__"]


def attack(name):
    return lambda f: ATTACKS.setdefault(name, f)


bomb = attack


def after(name):
    return lambda f: AFTER.setdefault(name, f)


def call(name, *arguments):
    """A system call's result; OSError where it fails."""
    libc.syscall.restype = ctypes.c_long
    arguments = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(NUMBERS[name]), *arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return result


def works(*tries):
    """What the first try that ends without an error has returned."""
    for one in tries:
        try:
            got = one()
        except (OSError, MemoryError):
            got = None
        except (ValueError, AttributeError):  # this Python has no such call
            continue
        TRIED.append(one)
        if got not in (None, False, -1, ""):
            return f"{got!r:.80}"


def made(path):
    open(path, "x").close()
    os.remove(path)
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read(64)


@attack("files of the home")
def _():
    home = os.path.dirname(PLANTED["home"])
    return works(lambda: read(PLANTED["home"]), lambda: "secrets" in str(os.listdir(home)) and home,
                 lambda: read("/proc/1/root" + PLANTED["home"]),
                 lambda: read("/proc/1/cwd/" + os.path.relpath(PLANTED["home"], "/")))


@attack("files of the system")
def _():
    return works(lambda: read("/etc/shadow"), lambda: read("/etc/passwd"),
                 lambda: made("/usr/bin/planted"), lambda: made("/etc/planted"),
                 lambda: open(sys.executable, "r+b"))


@attack("files by handle")
def _():
    handle = ctypes.create_string_buffer(struct.pack("IiQ", 8, 1, 2) + bytes(128))
    return works(lambda: call("handle", os.open("/usr", os.O_RDONLY), handle, os.O_RDONLY))


@attack("the environment")
def _():
    return works(lambda: PLANTED["secret"] in os.environ.values() and "of this process",
                 lambda: PLANTED["secret"].encode() in open("/proc/1/environ", "rb").read() and
                 "of process 1")


@attack("mounts")
def _():
    def mount():
        os.makedirs("/tmp/mounted", exist_ok=True)
        return libc.mount(b"none", b"/tmp/mounted", b"tmpfs", 0, None) == 0 and \
            libc.umount2(b"/tmp/mounted", 2) == 0 and "mounted"

    return works(mount, lambda: call("fsopen", b"tmpfs", 0), lambda: os.chroot("/") or "chroot")


@attack("device nodes")
def _():
    def node(kind, major, minor):
        os.mknod("/tmp/node", kind | 0o600, os.makedev(major, minor))
        os.remove("/tmp/node")
        return "made"

    return works(lambda: read("/dev/sda"), lambda: read("/dev/mem"), lambda: read("/dev/kmsg"),
                 lambda: read("/dev/vda"), lambda: os.open("/dev/kvm", os.O_RDWR),
                 lambda: os.open("/dev/fuse", os.O_RDWR), lambda: os.open("/dev/net/tun", os.O_RDWR),
                 lambda: node(0o020000, 1, 1), lambda: node(0o060000, 8, 0))


@attack("the kernel's settings")
def _():
    return works(lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
                 lambda: os.open("/proc/sysrq-trigger", os.O_WRONLY), lambda: read("/proc/kcore"),
                 lambda: os.open("/sys/kernel/uevent_helper", os.O_WRONLY))


@attack("the network")
def _():
    def reach(address):
        with socket.create_connection(address, 2) as s:
            return s.getpeername()

    return works(lambda: reach(("127.0.0.1", PLANTED["port"])), lambda: reach(("1.1.1.1", 53)),
                 lambda: reach(("::1", PLANTED["port"])), lambda: reach(("169.254.169.254", 80)),
                 lambda: socket.getaddrinfo("example.com", 80))


@attack("sockets of other families")
def _():
    kinds = [(family, kind, 0) for family in (40, 38, 17, 31, 29, 15, 16, 21, 44)
             for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW,
                          socket.SOCK_SEQPACKET)]
    kinds += [(socket.AF_INET, socket.SOCK_STREAM, 132), (socket.AF_INET, socket.SOCK_STREAM, 262),
              (socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_SEQPACKET, 132)]
    return works(*[lambda k=k: bool(socket.socket(*k)) and f"family, kind, protocol {k}"
                   for k in kinds])


def cloned(flags, number):
    """Whether a child with a namespace of its own can be made, and what it can do there."""
    if number == "clone3":
        structure = ctypes.create_string_buffer(struct.pack("11Q", flags, 0, 0, 0, 17, *[0] * 6))
        pid = call("clone3", structure, 88)
    else:
        pid = call("clone", flags | 17, 0, 0, 0, 0)
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return f"{number} with {flags:#x}"


USER = 0x10000000


@attack("user namespaces")
def _():
    return works(lambda: libc.unshare(USER) == 0 and "unshare", lambda: cloned(USER, "clone"),
                 lambda: cloned(USER, "clone3"), lambda: cloned(USER | 0x40000000, "clone"))


@attack("other namespaces")
def _():
    kinds = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x20000000, 0x40000000)
    return works(*[lambda k=k: libc.unshare(k) == 0 and hex(k) for k in kinds],
                 *[lambda k=k: cloned(k, "clone") for k in kinds],
                 *[lambda k=k: cloned(k, "clone3") for k in kinds],
                 lambda: call("setns", os.open("/proc/1/ns/net", os.O_RDONLY), 0) == 0)


@attack("more rights")
def _():
    status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    return works(lambda: int(status["CapEff"], 16) | int(status["CapBnd"], 16) and
                 f"capabilities {status['CapEff'].strip()}, {status['CapBnd'].strip()} at most",
                 lambda: status["NoNewPrivs"].strip() != "1" and "setuid programs")


@attack("ptrace")
def _():
    buffer = ctypes.create_string_buffer(64)
    local, remote = struct.pack("PN", ctypes.addressof(buffer), 64), struct.pack("PN", 0x1000, 64)
    attached = lambda p: libc.ptrace(16, p, 0, 0) == 0 and libc.ptrace(17, p, 0, 0) is not None
    others = [int(n) for n in os.listdir("/proc") if n.isdigit() and int(n) != os.getpid()]
    return works(*[lambda p=p: attached(p) and f"of process {p}" for p in others],
                 *[lambda p=p: call("vm_readv", p, local, 1, remote, 1, 0) for p in others],
                 *[lambda p=p: read(f"/proc/{p}/mem") for p in others],
                 *[lambda p=p: call("pidfd_getfd", os.pidfd_open(p), 0, 0) for p in others])


@attack("keyring")
def _():
    return works(lambda: call("add_key", b"user", b"planted", b"x", 1, -3),
                 lambda: call("keyctl", 0, -4, 1), lambda: read("/proc/keys"))


@attack("bpf")
def _():
    attributes = ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 4, 1) + bytes(112))
    return works(lambda: call("bpf", 0, attributes, 128))


@attack("perf, userfaultfd, io_uring")
def _():
    event = ctypes.create_string_buffer(struct.pack("II", 1, 128) + bytes(120))
    return works(lambda: call("perf", event, 0, -1, -1, 0), lambda: call("userfaultfd", 1),
                 lambda: call("io_uring", 8, ctypes.create_string_buffer(256)))


@attack("signals")
def _():
    def outside():
        os.kill(PLANTED["pid"], 0)
        return open(f"/proc/{PLANTED['pid']}/comm").read().strip() == PLANTED["name"]

    return works(outside, lambda: os.kill(-1, 0) or "all processes")


@attack("other processes")
def _():
    seen = [n for n in os.listdir("/proc") if n.isdigit()]
    return len(seen) > 9 and f"{len(seen)} are seen"


def take(steps, limit=None):
    """Takes what each step gives, in bytes, until it is more than the limit by a quarter."""
    total, limit = 0, (limit or PLANTED["memory"]) * 5 // 4
    for step in steps:
        total += step
        if total > limit:
            time.sleep(PLANTED["wait"])
            return f"{total >> 20} MB of {limit * 4 // 5 >> 20}"


MB = 1 << 20
HELD = []  # what must not be given back


def fill(path, unlink=False):
    """Files of 64 MB until there is no room."""
    block, number = os.urandom(MB), 0
    while True:
        file = open(f"{path}/planted-{number}", "wb", buffering=0)
        HELD.append(file)
        if unlink:
            os.unlink(file.name)
        for _ in range(64):
            yield file.write(block)
        number += 1


def all_of(*several):
    for one in several:
        try:
            yield from one
        except (OSError, MemoryError, ValueError):
            pass


@bomb("memory: the heaps of many processes")
def _():
    def heaps():
        while True:
            reading, writing = os.pipe()
            if not os.fork():
                try:
                    heap = bytearray(PLANTED["memory"] // 4)
                    heap[::4096] = bytes(len(heap[::4096]))
                    os.write(writing, b"1")
                    time.sleep(60)
                finally:
                    os._exit(0)
            os.close(writing)
            if not os.read(reading, 1):
                return
            yield PLANTED["memory"] // 4

    return take(heaps())


@bomb("memory: buffers of sockets")
def _():
    def queues():
        for number in range(1000):
            server = socket.socket(socket.AF_UNIX)
            HELD.append(server)
            server.bind(f"/tmp/socket-{number}")
            server.listen(4096)
            for _ in range(100):  # the queue keeps what a closed client has sent
                with socket.socket(socket.AF_UNIX) as client:
                    client.setblocking(False)
                    works(lambda: client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30))
                    client.connect(f"/tmp/socket-{number}")
                    yield from sent(client)

    def pairs(family, kind):
        while True:
            HELD.append(socket.socketpair(family, kind))
            yield from sent(HELD[-1][0])

    def sent(end):
        end.setblocking(False)
        try:
            while True:
                yield end.send(bytes(1 << 16))
        except BlockingIOError:
            pass

    return take(all_of(queues(), pairs(socket.AF_INET, socket.SOCK_STREAM),
                       pairs(socket.AF_UNIX, socket.SOCK_STREAM),
                       pairs(socket.AF_UNIX, socket.SOCK_DGRAM)))


@bomb("memory: locks of files")
def _():
    for number in range(100):
        HELD.append(open(f"/tmp/locked-{number}", "w"))
        for at in range(500):
            fcntl.lockf(HELD[-1], fcntl.LOCK_EX, 1, 2 * at)
    time.sleep(PLANTED["wait"])
    return "50000 locks"


@bomb("memory: memfd")
def _():
    def memfds():
        while True:
            file = os.fdopen(call("memfd", b"planted", 0), "wb", buffering=0)
            HELD.append(file)
            for _ in range(64):
                yield file.write(bytes(MB))

    return take(memfds())


@bomb("memory: shared, of System V and without a file")
def _():
    def segments():
        libc.shmat.restype = ctypes.c_void_p
        while True:
            at = libc.shmat(call("shmget", 0, 64 * MB, 0o1600), None, 0)
            ctypes.memset(at, 1, 64 * MB)
            libc.shmdt(ctypes.c_void_p(at))
            yield 64 * MB

    def mapped(flags, file):
        libc.mmap.restype = ctypes.c_void_p
        while True:
            at = libc.mmap(None, ctypes.c_size_t(64 * MB), 3, flags, file, 0)
            if at in (None, ctypes.c_void_p(-1).value):
                return
            ctypes.memset(at, 1, 64 * MB)
            libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(64 * MB), 4)  # out of the account
            yield 64 * MB

    def zero():
        yield from mapped(1, os.open("/dev/zero", os.O_RDWR))

    try:
        return take(all_of(segments(), mapped(0x21, -1), zero()))
    finally:  # segments outlive their processes
        for line in list(open("/proc/sysvipc/shm"))[1:]:
            libc.shmctl(int(line.split()[1]), 0, None)


@bomb("memory: file systems in memory")
def _():
    kinds = dict(line.split()[1:3] for line in open("/proc/mounts"))
    memory = [path for path in kinds if kinds[path] in ("tmpfs", "ramfs", "devtmpfs", "rootfs")]
    return take(all_of(*[fill(path) for path in memory + ["/", "/dev", "/run", "/var/tmp"]]))


@bomb("memory: unlinked files")
def _():
    return take(all_of(fill("/tmp", True), fill("/dev/shm", True), fill("/mnt/data", True)),
                PLANTED["disk"])


@bomb("disk")
def _():
    return take(all_of(fill("/mnt/data"), fill("/var/tmp")), PLANTED["disk"])


@bomb("descriptors")
def _():
    for n in range(5000):
        HELD.append(os.open("/dev/null", os.O_RDONLY))
    return f"{n} are open"


@bomb("forks")
def _():
    for n in range(1000):
        if not os.fork():
            time.sleep(60)
            os._exit(0)
    time.sleep(PLANTED["wait"])
    return f"{n} processes"


@bomb("processes that outlive their cell")
def _():
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    if not os.fork():
        os.setsid()
        if not os.fork():
            time.sleep(60)
        os._exit(0)


@after("processes that outlive their cell")
def _():
    others = {n for n in os.listdir("/proc") if n.isdigit()} - {"1", str(os.getpid())}
    living = [n for n in others if ") Z " not in open(f"/proc/{n}/stat").read()]
    return living and f"{len(living)} are there"


@bomb("processes of a cell that defends them")
def _():
    driver.end_children = lambda *_: None
    ATTACKS["processes that outlive their cell"]()


AFTER["processes of a cell that defends them"] = AFTER["processes that outlive their cell"]


def watch_pause():
    """Notes when a thread of this cell runs."""
    def tick():
        while True:
            ticks.append(time.clock_gettime(time.CLOCK_BOOTTIME))
            time.sleep(0.001)

    ticks = driver.ticks = []
    threading.Thread(target=tick, daemon=True).start()


def pause():
    """Start and end of the longest time in which no thread of the last cell ran."""
    ticks = getattr(driver, "ticks", [0, PLANTED["pause"]])  # its interpreter was ended
    ticks = [*ticks, time.clock_gettime(time.CLOCK_BOOTTIME)]  # none may have run since
    return max(zip(ticks, ticks[1:]), key=lambda pair: pair[1] - pair[0])


@bomb("processes made after a forged end of the cell")
def _():
    def later():
        time.sleep(0.03)  # the picture is being copied
        for _ in range(6):
            if not os.fork():
                os.setsid()
                time.sleep(60)
                os._exit(0)

    driver.end_children = lambda *_: None
    with open("planted.png", "wb") as file:
        file.truncate(200 * MB)
    watch_pause()
    threading.Thread(target=later).start()
    frame = sys._getframe()
    while frame.f_code.co_name != "main":
        frame = frame.f_back
    driver.send({"out": "held 1\n"})
    driver.send({"done": True, "cell": frame.f_locals.get("cell"), "files": ["planted.png"]})
    time.sleep(1)
    raise SystemExit


@after("processes made after a forged end of the cell")
def _():
    earlier, end = [], pause()[1]
    for number in set(filter(str.isdigit, os.listdir("/proc"))) - {"1", str(os.getpid())}:
        fields = open(f"/proc/{number}/stat").read().rsplit(")", 1)[1].split()
        start = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        if fields[0] != "Z" and start < end - PLANTED["pause"]:  # others are of this cell
            earlier.append(number)
    return earlier and f"{len(earlier)} are there"


@attack("threads that run between cells")
def _():
    def timer():
        event, made = struct.pack("Qii48x", 0, signal.SIGCONT, 0), ctypes.c_int()
        call("timer", 1, event, ctypes.byref(made))
        call("set_timer", made.value, 0, struct.pack("4q", 0, 10**7, 0, 10**7), None)

    reading = os.pipe()[0]
    watch_pause()
    works(timer, lambda: fcntl.fcntl(reading, fcntl.F_SETOWN, os.getpid()) and None,
          lambda: fcntl.fcntl(reading, fcntl.F_SETSIG, signal.SIGCONT) and None,
          lambda: fcntl.fcntl(reading, fcntl.F_NOTIFY, 1) and None)


@after("threads that run between cells")
def _():
    begin, end = pause()
    return end - begin < PLANTED["pause"] and f"{end - begin:.3f} s apart at most"


def drawn(make):
    """The driver takes what make puts at a name for a picture."""
    plots = types.ModuleType("matplotlib.pyplot")
    plots.get_fignums, plots.close = lambda: [1], lambda *_: sys.modules.pop("matplotlib.pyplot")
    plots.figure = lambda _: types.SimpleNamespace(savefig=make)
    sys.modules["matplotlib.pyplot"] = plots


@attack("figure-1.png is a FIFO")
def _():
    drawn(os.mkfifo)


@attack("figure-1.png is a link")
def _():
    drawn(lambda name: os.symlink(PLANTED["home"], name))


def attempt(name, attacks=None):
    driver.send({"out": "begun\n"})
    try:
        got = (ATTACKS if attacks is None else attacks)[name]()
    except (OSError, MemoryError):
        got = None
    print("not held: " + got if got else f"held {max(1, len(TRIED))}", flush=True)
