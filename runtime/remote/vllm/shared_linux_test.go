package vllm

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// workers is a program as vLLM is: Python with shared memory and a semaphore, the process that
// cleans up after it, and a worker of its group that has them open.
const workers = `import multiprocessing as m, os, signal, sys, time
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory

def work(name, ready):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    block = SharedMemory(name)
    ready.release()
    time.sleep(60)

if __name__ == "__main__":
    block, ready = SharedMemory(create=True, size=4096), m.get_context("spawn").Semaphore(0)
    m.get_context("spawn").Process(target=work, args=(block.name, ready), daemon=True).start()
    ready.acquire()
    resource_tracker.unregister(block._name, "shared_memory") # as vLLM's own block is none of its
    own = m.get_context("spawn").Semaphore(0)
    print(block.name, "sem." + own._semlock.name[1:], flush=True)
    print("Application startup complete.\nready", flush=True)
    while not os.path.exists(os.environ["LOOKED"]): time.sleep(.01)
    end = os.environ["END"]
    if end == "leader": os.kill(os.getpid(), signal.SIGKILL)
    if end == "all": os.killpg(0, signal.SIGKILL)
    time.sleep(60)
`

// No file remains in /dev/shm, however vLLM ends; other programs' files are kept.
func TestRunLeavesNoSharedMemory(t *testing.T) {
	program := filepath.Join(t.TempDir(), "workers.py")
	if err := os.WriteFile(program, []byte(workers), 0o600); err != nil {
		t.Fatal(err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	out, err := exec.Command(python, "-c", "import sys; print(sys.executable)").Output()
	if err == nil {
		python = strings.TrimSpace(string(out)) // not a shim's
	}
	fake(t, "vllm", "exec "+python+" "+program+"\n")
	p, err := Make(Request{Hardware: "B200", Model: "120b", Launch: "local"})
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("END") == "front" { // the process that is killed below
		_ = Run(t.Context(), p, t.TempDir(), Watcher{Log: os.Stdout})
		return
	}
	others := filepath.Join(sharedFolder, fmt.Sprint("psm_others", os.Getpid()))
	if err := os.WriteFile(others, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(others)
	for _, end := range []string{"stop", "leader", "all", "front"} {
		looked := filepath.Join(t.TempDir(), "looked")
		t.Setenv("END", end)
		t.Setenv("LOOKED", looked)
		if end == "front" {
			killedFront(t)
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		log := when{"ready", func() { // the line after the one at which it looks
			if end == "stop" {
				cancel()
			}
			if err := os.WriteFile(looked, nil, 0o600); err != nil {
				t.Error(err)
			}
		}, &strings.Builder{}}
		err := Run(ctx, p, t.TempDir(), Watcher{Log: log})
		cancel()
		if (err == nil) != (end == "stop") {
			t.Errorf("%s: %v", end, err)
		}
		line, _, _ := strings.Cut(log.String(), "\n")
		if left := left(t, line); left != nil {
			t.Errorf("%s: %s are left", end, left)
		}
	}
	if _, err := os.Stat(others); err != nil {
		t.Error(err)
	}
}

// left are the files of a line of workers that are there.
func left(t *testing.T, line string) (names []string) {
	t.Helper()
	files := strings.Fields(line)
	if len(files) != 2 || !strings.HasPrefix(line, "psm_") {
		t.Fatalf("workers wrote %q", line)
	}
	for _, name := range files {
		if _, err := os.Stat(sharedFolder + name); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// killedFront kills a process that has started vLLM.
func killedFront(t *testing.T) {
	front := exec.Command(os.Args[0], "-test.run=^TestRunLeavesNoSharedMemory$")
	out, err := front.StdoutPipe()
	if err == nil {
		err = front.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, _ := lines.ReadString('\n')
	for line := first; !strings.Contains(line, "ready"); { // it has looked
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if len(left(t, first)) != 2 {
		t.Error("there is nothing to be removed")
	}
	if err := front.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = front.Wait() // it was killed
	hosttest.Until(t, "a front that was killed leaves nothing", func() bool {
		return len(left(t, first)) == 0
	})
}
