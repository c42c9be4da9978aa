package python

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// open makes a tool in bubblewrap.
func open(t *testing.T, o Options) *Tool {
	t.Helper()
	hosttest.Program(t, "bwrap")
	o.Sandbox = "bwrap"
	tool, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tool.Close(); err != nil {
			t.Error(err)
		}
	})
	return tool
}

func run(t *testing.T, tool *Tool, code string) (string, error) {
	t.Helper()
	var streamed strings.Builder
	result, err := tool.Run(t.Context(), session.Call{Arguments: code},
		func(text string) { streamed.WriteString(text) })
	if !strings.HasPrefix(result.Text, streamed.String()) {
		t.Errorf("streamed %q, returned %q", streamed.String(), result.Text)
	}
	return result.Text, err
}

func says(t *testing.T, tool *Tool, code, want string) {
	t.Helper()
	if got, err := run(t, tool, code); err != nil || !strings.Contains(got, want) {
		t.Errorf("%s\nprinted %q, %v, not %q", code, got, err, want)
	}
}

func TestCells(t *testing.T) {
	defer goleak.VerifyNone(t)
	tool := open(t, Options{})
	defer tool.Close()
	says(t, tool, "x = 20\nx + 1", "21\n")
	says(t, tool, "x *= 2\nprint(x)", "40\n")
	says(t, tool, "None", "")
	says(t, tool, "def f():\n    return undefined\nf()", "NameError: name 'undefined' is not defined")
	says(t, tool, "1 +", "SyntaxError")
	says(t, tool, "import sys; sys.exit(3)", "")
	says(t, tool, "x", "40")
	says(t, tool, "import os; os.system('echo from a child')", "from a child\n0\n")
	says(t, tool, "print('ä' * 3, '\\U0001F600')", "äää \U0001F600")
	says(t, tool, "import sys; sys.stdout.buffer.write(b'\\xff\\n'); sys.stdin.read()", "\ufffd")
	if got, _ := run(t, tool, "def g(): raise ValueError('no')\ng()"); strings.Contains(got,
		"in run") || !strings.Contains(got, `File "<cell>", line 1, in g`) {
		t.Errorf("the traceback shows the driver: %s", got)
	}
}

// A call is streamed while it runs, ends when it is interrupted, and keeps its variables.
func TestInterruptedCellsKeepTheirVariables(t *testing.T) {
	tool := open(t, Options{Time: 500 * time.Millisecond})
	says(t, tool, "x = 5", "")
	ctx, cancel := context.WithCancel(t.Context())
	said := ""
	r, err := tool.Run(ctx, session.Call{Arguments: "import time\nprint('begun')\n" +
		"time.sleep(60)\nprint('slept')"}, func(text string) { said += text; cancel() })
	if err == nil || strings.Contains(said+r.Text, "slept") {
		t.Errorf("%v, %q", err, said+r.Text)
	}
	if _, err := run(t, tool, "while True: pass"); err == nil ||
		!strings.Contains(err.Error(), "stopped after 500ms") {
		t.Error(err)
	}
	says(t, tool, "x", "5")
	if _, err := run(t, tool, `
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt: pass`); err == nil || !strings.Contains(err.Error(), "are gone") {
		t.Error(err)
	}
	if got, err := run(t, tool, "x"); err != nil || !strings.Contains(got, "NameError") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFilesAndOutputAreBounded(t *testing.T) {
	folder := t.TempDir()
	tool := open(t, Options{Folder: folder, Output: 1000})
	says(t, tool, "open('a.txt', 'w').write('here')", "4")
	if b, err := os.ReadFile(filepath.Join(folder, "a.txt")); err != nil || string(b) != "here" {
		t.Errorf("%q, %v", b, err)
	}
	says(t, tool, "print('x' * 100000)", "[99001 more bytes of output are left out]")
	says(t, tool, "f = open('big', 'wb')\nf.truncate(1 << 40)", "File too large")
}

// Whatever a cell tries, it stays inside, it is told, and the next cell runs.
func TestEscapes(t *testing.T) {
	defer goleak.VerifyNone(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(home, ".ossrun-secret-")
	if err != nil {
		file, err = os.CreateTemp(t.TempDir(), "secret-") // a home that cannot be written
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	t.Setenv("HF_TOKEN", "token")
	tool := open(t, Options{Memory: 512 << 20, Time: 20 * time.Second})
	defer tool.Close()
	for _, c := range []struct{ name, code, want string }{
		{"a file", fmt.Sprintf("open(%q).read()", file.Name()), "No such file"},
		{"passwords", "open('/etc/shadow').read()", "No such file"},
		{"the system", "open('/usr/bin/x', 'w')", "Read-only file system"},
		{"the environment", "import os; print(os.environ.get('HF_TOKEN'))", "None"},
		{"the network", "import socket; socket.create_connection(('1.1.1.1', 80), 2)",
			"Network is unreachable"},
		{"names", "import socket; socket.getaddrinfo('example.com', 80)", "gaierror"},
		{"this host", fmt.Sprintf("import os; os.kill(%d, 9)", os.Getpid()), "No such process"},
		{"init", "import os; os.listdir('/proc/1/root/home')", "Error"},
		{"mounts", "import ctypes; ctypes.CDLL(None, use_errno=True).mount(b'none', b'/mnt', " +
			"b'tmpfs', 0, None)", "-1"},
		{"ptrace", "import ctypes; ctypes.CDLL(None).ptrace(16, 1, 0, 0)", "-1"},
		{"root", "import os; os.setuid(0) if os.getuid() else os.chroot('/proc')",
			"Error"},
		{"devices", "open('/dev/sda')", "No such file"},
		{"the kernel", "open('/proc/sysrq-trigger', 'w')", "Error"},
		{"its settings", "open('/proc/sys/kernel/core_pattern', 'w')", "Error"},
		{"a signal to all", "import os; os.kill(-1, 9)", "No such process"},
		{"other processes", "import os; print('seen', sum(n.isdigit() for n in os.listdir('/proc')) < 10)",
			"seen True"},
		{"their memory", "open('/proc/1/mem', 'r+b').read(1)", "Error"},
		{"attaching", "import ctypes, os; ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)", "-1"},
		{"namespaces", "import ctypes; ctypes.CDLL(None).unshare(0x10000000)", "-1"},
		{"memory", "x = bytearray(4 << 30)", "MemoryError"},
	} {
		if got, err := run(t, tool, c.code); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, %v, not %q", c.name, got, err, c.want)
		}
	}
	for _, c := range []struct{ name, code, want string }{
		{"memory of many", "import os\nfor i in range(8):\n    if not os.fork():\n" +
			"        x = b'x' * (200 << 20); import time; time.sleep(60)\nos.wait()", "memory"},
		{"a fork bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", ""},
		{"the driver", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "are gone"},
	} {
		if got, err := run(t, tool, c.code); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v, not %q", c.name, got, err, c.want)
		}
		says(t, tool, "1 + 1", "2")
	}
}

// A hundred calls leave no process, no file and no descriptor behind.
func TestNothingIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t)
	tool := open(t, Options{})
	cell := "import tempfile; f = tempfile.NamedTemporaryFile(delete=False); 1"
	says(t, tool, cell, "1")
	mine, its := descriptors(t), "import os; print('has', len(os.listdir('/proc/self/fd')))"
	first, _ := run(t, tool, its)
	for range 100 {
		says(t, tool, cell, "1")
	}
	if last, err := run(t, tool, its); err != nil || last != first || !strings.Contains(last, "has ") {
		t.Errorf("the interpreter %q at first, then %q, %v", first, last, err)
	}
	if n := descriptors(t); n != mine {
		t.Errorf("%d descriptors, then %d", mine, n)
	}
	pid, folder := tool.run.process.Process.Pid, tool.o.Folder
	if err := tool.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", folder, err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); runtime.GOOS == "linux" &&
		!os.IsNotExist(err) {
		t.Errorf("process %d is there: %v", pid, err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	return len(list)
}

// What matplotlib has drawn is saved in the folder and named, to the user and to the model.
func TestFigures(t *testing.T) {
	python := hosttest.Program(t, "python3")
	if exec.Command(python, "-I", "-c", "import matplotlib").Run() != nil {
		hosttest.Lacks(t, "python3 has no matplotlib")
	}
	folder := t.TempDir()
	tool := open(t, Options{Folder: folder})
	draw := func(code string, want ...string) {
		t.Helper()
		r, err := tool.Run(t.Context(), session.Call{Arguments: code}, func(string) {})
		if err != nil || len(r.Files) != len(want) {
			t.Fatalf("%+v, %v", r, err)
		}
		for i, name := range want {
			b, err := os.ReadFile(r.Files[i])
			if err != nil || filepath.Base(r.Files[i]) != name ||
				!strings.HasPrefix(string(b), "\x89PNG") ||
				!strings.Contains(r.Text, "[a figure was saved as /mnt/data/"+name+"]") {
				t.Errorf("%+v, %d bytes, %v", r, len(b), err)
			}
		}
	}
	draw("import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()", "figure-1.png")
	draw("1 + 1")
	draw("plt.plot([1])\nplt.figure()\nplt.plot([2])", "figure-2.png", "figure-3.png")
}

func TestNoSandboxIsARefusal(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "install") {
		t.Error(err)
	}
	if _, err := New(Options{Sandbox: "jail"}); err == nil ||
		!strings.Contains(err.Error(), "bwrap, podman, docker, unsafe") {
		t.Error(err)
	}
}

// Docker and podman are driven through an executable that checks its arguments and runs the driver.
func TestContainers(t *testing.T) {
	python := hosttest.Program(t, "python3")
	for _, name := range []string{"podman", "docker"} {
		t.Run(name, func(t *testing.T) {
			folder, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
			script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> %s\n[ \"$1\" = run ] || exit 0\n"+
				"while [ \"$1\" != python3 ]; do shift; done\nshift; exec %s \"$@\"\n", log, python)
			if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", folder+":/usr/bin:/bin")
			tool, err := New(Options{Sandbox: name})
			if err != nil {
				t.Fatal(err)
			}
			says(t, tool, "6 * 7", "42")
			if err := tool.Close(); err != nil {
				t.Error(err)
			}
			b, _ := os.ReadFile(log)
			for _, want := range []string{"--network none", "--memory 2147483648", "--pids-limit",
				"--read-only", "--cap-drop ALL", ":/mnt/data", "python:3.13-slim", "rm --force ossrun-python-"} {
				if !strings.Contains(string(b), want) {
					t.Errorf("%q is not in %.600s", want, b)
				}
			}
		})
	}
}
