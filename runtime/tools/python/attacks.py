"""Known ways out of a sandbox, each as a cell that tries it.

An attack returns what it has reached, or None. An OSError or a MemoryError is the sandbox that
holds. What must stay true: an attack that gets out does no harm: it looks, and gives back.
PLANTED is what the other side has put in its way: home, a file with a secret in the home; port, of
this machine's loopback; pid and name of a process outside; secret.
"""
import ctypes
import os
import platform
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": dict(clone=56, keyctl=250, add_key=248, bpf=321, perf=298, userfaultfd=323,
                   memfd=319, handle=304, mq_open=240, shmget=29, shmat=30, vm_readv=310,
                   setns=308),
    "aarch64": dict(clone=220, keyctl=219, add_key=217, bpf=280, perf=241, userfaultfd=282,
                    memfd=279, handle=265, mq_open=180, shmget=194, shmat=196, vm_readv=270,
                    setns=268),
}.get(platform.machine(), {})
NUMBERS.update(io_uring=425, fsopen=430, clone3=435, pidfd_getfd=438)
ATTACKS = {}


def attack(name):
    return lambda f: ATTACKS.setdefault(name, f)


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
        except (OSError, MemoryError, ValueError, AttributeError):
            continue
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


def attempt(name):
    try:
        got = ATTACKS[name]()
    except (OSError, MemoryError) as error:
        got = None
    print("not held: " + got if got else "held", flush=True)
