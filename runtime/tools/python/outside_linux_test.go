// What a cell cannot undo: its end, and the bounds of the kernel's memory, as seen from outside.
//
// What must stay true: each test looks at the processes themselves, never at what a cell reports of
// them.

package python

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// runningAfterCell looks for a while, since what was hidden or asleep may run again.
func runningAfterCell(t *testing.T, r *interpreter) (found string) {
	t.Helper()
	for range 300 {
		list, err := fs.ReadDir(r.processes.FS(), ".")
		if err != nil {
			t.Fatal(err)
		}
		for _, process := range list {
			pid := process.Name()
			if _, err := strconv.Atoi(pid); err != nil || pid == "1" {
				continue
			}
			if states := r.states(pid); strings.Trim(states, "ZX") != "" && (pid != r.driverPID ||
				strings.Trim(states, "T") != "") {
				found += fmt.Sprintf("process %s: %s\n", pid, states)
			}
		}
	}
	return found
}

// forgedEnd is a cell's start: it ends itself for a runner that believes it.
const forgedEnd = `
import ctypes, json, os, signal, sys, threading, time
driver = sys.modules["__main__"]
driver.end_children = lambda *_: None
frame = sys._getframe()
while frame.f_code.co_name != "main": frame = frame.f_back
def forge(*files):
    driver.send({"done": True, "cell": frame.f_locals.get("cell"), "files": files})
`

// A cell ends when nothing of it runs: processes end and threads stop with it.
//
// SECURITY.md: time: ossrun, outside, ends processes and stops threads until none runs
func TestNothingRunsAfterACell(t *testing.T) {
	for name, code := range map[string]string{
		"processes made while a picture is copied": `
with open("big.png", "wb") as f: f.truncate(200 << 20)
def later():
    time.sleep(0.03)
    for _ in range(6):
        if not os.fork():
            os.setsid()
            while True: pass
threading.Thread(target=later).start()
forge("big.png")
time.sleep(0.3)`,
		"a process whose first thread has ended": `
if not os.fork():
    def spin():
        while True: pass
    threading.Thread(target=spin, daemon=True).start()
    ctypes.CDLL(None).pthread_exit(None)`,
		"a process that wakes the driver": `
if not os.fork():
    while True: os.kill(os.getppid(), signal.SIGCONT)`,
		"processes that change their number": `
if not os.fork():
    for _ in range(3000):
        if os.fork(): os._exit(0)
    time.sleep(60)`,
	} {
		t.Run(name, func(t *testing.T) {
			tool := open(t, Options{})
			says(t, tool, "x = 1", "")
			_, err := run(t, tool, forgedEnd+code)
			if err == nil {
				if found := runningAfterCell(t, tool.run); found != "" {
					t.Error(found)
				}
				says(t, tool, "x + 1", "2") // not the end of the cell before
			} else if tool.run != nil || !strings.Contains(err.Error(), "are gone") {
				t.Error(err)
			}
		})
	}
}

// No call has the kernel wake the stopped driver.
//
// SECURITY.md: kernel: seccomp: a list of allowed system calls; none wakes a stopped process
func TestStoppedDriverStaysStopped(t *testing.T) {
	tool := open(t, Options{})
	r, err := tool.Run(t.Context(), session.Call{Arguments: `
import ctypes, fcntl, os, struct, threading
libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
event = struct.pack("Qii48x", 0, 18, 0)  # SIGCONT
made = libc.timer_create(1, event, ctypes.byref(timer))
libc.timer_settime(timer, 0, struct.pack("4q", 0, 10**7, 0, 10**7), None)
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
reading, writing = os.pipe()
def allowed(call, *arguments):
    try: call(*arguments)
    except OSError: return False
    return True
print(made, [a for a in ((fcntl.F_SETOWN, os.getpid()), (fcntl.F_SETSIG, 18), (fcntl.F_NOTIFY, 1),
    (fcntl.F_SETLEASE, 0), (15, bytes(8)), (37, bytes(32))) if allowed(fcntl.fcntl, reading, *a)],
    [a for a in (0x5452, 0x8901, 0x8902) if allowed(fcntl.ioctl, reading, a, bytes(8))])`},
		func(string) {})
	if err != nil || r.Text != "-1 [] []\n" {
		t.Errorf("%q, %v", r.Text, err)
	}
	if found := runningAfterCell(t, tool.run); found != "" {
		t.Error(found)
	}
}

// Buffers of sockets and pipes, and locks of files, are bounded: a process's memory has none.
//
// SECURITY.md: memory of the kernel: sockets count with the most they can hold; 10,000 locks of
// files
// SECURITY.md: shared memory: no memfd, System V or anonymous shared memory; all file systems
// are sized
// SECURITY.md: Pipes keep their default size, about 0.1 GB a user.
func TestMemoryOfTheKernelIsBounded(t *testing.T) {
	tool := open(t, Options{Memory: 256 << 20})
	says(t, tool, `
import ctypes, errno, fcntl, os, socket
libc = ctypes.CDLL(None, use_errno=True)
a, b = socket.socketpair()
reading, writing = os.pipe()
def refused(call, *arguments):
    try: call(*arguments)
    except OSError as error: return error.errno == errno.EPERM
all([refused(a.setsockopt, socket.SOL_SOCKET, n, 1 << 20) for n in (7, 8, 32, 33)] +
    [refused(socket.socket, family, kind) for family in (2, 10) for kind in (1, 2)] +
    [refused(fcntl.fcntl, writing, 1031, 1 << 20), refused(os.memfd_create, "a"),
     refused(fcntl.flock, reading, fcntl.LOCK_EX)])`, "True")
	for _, c := range []struct{ code, want string }{
		{`
import socket
HELD, last = [], socket.socketpair()
for n in range(40):
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"/tmp/{n}")
    server.listen(4096)
    HELD.append(server)
    for _ in range(100):
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)
            client.connect(f"/tmp/{n}")
            try:
                while True: client.send(bytes(1 << 16))
            except BlockingIOError: pass
import time; time.sleep(60)`, "sockets used more than 0.3 GB"},
		{`
import fcntl, time
files = [open(f"/tmp/locked-{n}", "w") for n in range(40)]
for file in files:
    for n in range(500): fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * n)
time.sleep(60)`, "more than 10000 locks of files"},
	} {
		if _, err := run(t, tool, c.code); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, not %q", err, c.want)
		}
	}
	says(t, tool, "import asyncio, socket\nasync def f(): return 7\n"+
		"[asyncio.run(f()) for _ in range(200)][-1], len([socket.socketpair() for _ in range(20)])",
		"(7, 20)")
}

// An interpreter in a cgroup of its own is frozen between cells, and the server's is never.
//
// SECURITY.md: A cgroup is frozen between cells.
func TestCgroupIsFrozenBetweenCells(t *testing.T) {
	tool := open(t, Options{})
	says(t, tool, "x = 1", "")
	tool.run.openFreezer("/sys/fs/cgroup")
	if tool.run.freezer != nil {
		t.Fatal("the server's own cgroup can be frozen")
	}
	root := "/sys/fs/cgroup/unified"
	if _, err := os.Stat(root); err != nil {
		root = "/sys/fs/cgroup"
	}
	group := filepath.Join(root, fmt.Sprint("ossrun-test-", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("no cgroup can be made: %v", err)
	}
	t.Cleanup(func() {
		_ = tool.Close()
		hosttest.Until(t, "the cgroup is empty", func() bool { return os.Remove(group) == nil })
	})
	pids := []int{tool.run.process.Process.Pid}
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children(pids[i])...)
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, pids[i]),
			0); err != nil {
			t.Fatal(err)
		}
	}
	tool.run.openFreezer(root)
	if tool.run.freezer == nil {
		t.Fatal("the interpreter's cgroup is not found")
	}
	for range 2 {
		says(t, tool, "x += 1; x", "")
		signalProcess(tool.run.driver, 18) // SIGCONT, as whatever might wake it
		hosttest.Until(t, "the cgroup is frozen", func() bool {
			text, _ := os.ReadFile(filepath.Join(group, "cgroup.events"))
			return strings.Contains(string(text), "frozen 1")
		})
	}
	says(t, tool, "x", "3")
}
