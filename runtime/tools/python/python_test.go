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
	tool := open(t, Options{})
	minutes, little := tool.o.Time, 100*time.Millisecond
	says(t, tool, "x = 5", "")
	ctx, cancel := context.WithCancel(t.Context())
	said := ""
	r, err := tool.Run(ctx, session.Call{Arguments: "import time\nprint('begun')\n" +
		"time.sleep(60)\nprint('slept')"}, func(text string) { said += text; cancel() })
	if err == nil || strings.Contains(said+r.Text, "slept") {
		t.Errorf("%v, %q", err, said+r.Text)
	}
	tool.o.Time = little
	if _, err := run(t, tool, "while True: pass"); err == nil ||
		!strings.Contains(err.Error(), "stopped after 100ms") {
		t.Error(err)
	}
	tool.o.Time = minutes
	says(t, tool, "x", "5")
	tool.o.Time = little
	if _, err := run(t, tool, `
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt: pass`); err == nil || !strings.Contains(err.Error(), "are gone") {
		t.Error(err)
	}
	tool.o.Time = minutes
	if got, err := run(t, tool, "x"); err != nil || !strings.Contains(got, "NameError") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFilesAndOutputAreBounded(t *testing.T) {
	tool := open(t, Options{Output: 1000})
	says(t, tool, "open('a.txt', 'w').write('here')", "4")
	says(t, tool, "open('/mnt/data/a.txt').read()", "here")
	says(t, tool, "print('x' * 100000)", "[99001 more bytes of output are omitted]")
	says(t, tool, "f = open('big', 'wb')\nf.truncate(1 << 40)", "File too large")
}

// A cell that exceeds a limit ends its interpreter, with a message, and the next cell runs.
//
// SECURITY.md: memory: a cgroup where `systemd-run` makes one, else a count that ends the
// interpreter
func TestBombs(t *testing.T) {
	defer goleak.VerifyNone(t)
	tool := open(t, Options{Memory: 512 << 20})
	defer tool.Close()
	says(t, tool, "x = bytearray(4 << 30)", "MemoryError")
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

// The list of system calls has those that honest cells make.
func TestHonestCells(t *testing.T) {
	tool := open(t, Options{})
	for _, c := range []struct{ code, want string }{
		{"import subprocess\nsubprocess.run('echo a | tr a b; ls /usr | wc -l', shell=True, " +
			"capture_output=True, text=True).stdout[:2]", `'b\n'`},
		{"import multiprocessing as m\nwith m.Pool(3) as p: print(sum(p.map(abs, range(-9, 9))))", "81"},
		{"from multiprocessing import shared_memory as s\nb = s.SharedMemory(create=True, size=99)\n" +
			"b.buf[3] = 5; print(b.buf[3]); b.close(); b.unlink()", "5\n"},
		{"from concurrent.futures import ThreadPoolExecutor as T\nlist(T(4).map(abs, [-1, -2]))", "[1, 2]"},
		{"import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('echo', 'x', " +
			"stdout=-1)\n    return (await p.communicate())[0]\nasyncio.run(f())", `b'x\n'`},
		{"import sqlite3\nd = sqlite3.connect('d.db'); d.execute('create table t(a)'); " +
			"d.execute('insert into t values (7)'); d.commit(); d.execute('select a from t').fetchall()",
			"[(7,)]"},
		{"import socket, threading\na, b = socket.socketpair()\n" +
			"threading.Thread(target=lambda: a.sendall(b'hi')).start()\nb.recv(9)", "b'hi'"},
		{"m.get_context('forkserver').Pool(2).map(abs, [-1, -2])", "[1, 2]"}, // 3.14's default
		{"d = m.Manager().dict(); d[1] = 2; d.copy()", "{1: 2}"},
		{"import fcntl\nf = open('locked', 'w'); fcntl.lockf(f, fcntl.LOCK_EX); f.close()", ""},
		{"import os, shutil, tempfile, mmap, pathlib\nf = tempfile.NamedTemporaryFile()\n" +
			"f.write(b'y' * 5000); f.flush(); shutil.copy2(f.name, 'c'); os.mkfifo('p'); " +
			"os.symlink('c', 'l'); os.chmod('c', 0o600)\n" +
			"mmap.mmap(f.fileno(), 0)[:2], pathlib.Path('l').stat().st_size", "(b'yy', 5000)"},
		{"import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\n" +
			"signal.signal(signal.SIGALRM, lambda *_: print('rang'))\ntime.sleep(0.1)", "rang"},
		{"print('x', file=open('/dev/null', 'w')); open('/dev/urandom', 'rb').read(3)[3:]", "b''"},
	} {
		says(t, tool, c.code, c.want)
	}
	if got, err := run(t, tool, "import numpy; 0"); err == nil && strings.HasSuffix(got, "0\n") {
		says(t, tool, "a = numpy.random.default_rng(1).random((300, 300))\n"+
			"bool(numpy.allclose(a @ numpy.linalg.inv(a), numpy.eye(300), atol=1e-6))", "True")
	}
}

// A hundred calls leak no process, file or descriptor.
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
	pid, folder := tool.run.process.Process.Pid, tool.folder
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
	tool := open(t, Options{})
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

// TestSandboxesAreTried: one that is installed and does not work is refused when it is named, with
// its own words, and another one is looked for when it is not.
func TestSandboxesAreTried(t *testing.T) {
	install := func(scripts map[string]string) {
		folder := t.TempDir()
		for name, script := range scripts {
			if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script),
				0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", folder)
	}
	const broken = "echo 'Cannot connect to the daemon.' >&2\necho more\nexit 1\n"
	for _, c := range []struct {
		name    string
		scripts map[string]string
		want    string // of its name or of the error
	}{
		{"docker", map[string]string{"docker": broken}, "python cannot run in docker: Cannot " +
			"connect to the daemon."},
		{"podman", map[string]string{"podman": broken}, "Cannot connect to the daemon."},
		{"bwrap", map[string]string{"bwrap": broken, "python3": ""}, "Cannot connect"},
		{"bwrap", map[string]string{"bwrap": ""}, "no python3 is installed"},
		{"docker", nil, "python cannot run in docker: docker is not installed"},
		{"unsafe", nil, "python cannot run in unsafe: python3 is not installed"},
		{"docker", map[string]string{"docker": "exit 3"}, "exit status 3"},
		{"", map[string]string{"docker": broken, "podman": broken}, "run in podman: Cannot"},
		{"", map[string]string{"docker": "", "podman": broken}, "docker"},
	} {
		install(c.scripts)
		tool, err := New(Options{Sandbox: c.name})
		if err == nil && tool.Sandbox() != c.want || err != nil && (c.want == "docker" ||
			!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "more")) {
			t.Errorf("%s of %v: %v", c.name, c.scripts, err)
		}
	}
}

// TestNoDaemon: the real docker without its daemon.
func TestNoDaemon(t *testing.T) {
	hosttest.Program(t, "docker")
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none.sock"))
	if _, err := New(Options{Sandbox: "docker"}); err == nil || strings.Contains(err.Error(),
		"exit status") {
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
