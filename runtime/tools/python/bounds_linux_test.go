package python

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// interpreters are this program's sandboxes.
func interpreters(t *testing.T) (n int) {
	t.Helper()
	for _, pid := range children(os.Getpid()) {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(name) == "bwrap\n" {
			n++
		}
	}
	return n
}

// With more conversations than interpreters all cells run, in turns, and conversations that lost
// their variables are told.
func TestInterpretersAreBounded(t *testing.T) {
	defer goleak.VerifyNone(t)
	var tools []*Tool
	for range MaxInterpreters + 4 {
		tools = append(tools, open(t, Options{}))
	}
	var all sync.WaitGroup
	for _, tool := range tools {
		all.Go(func() { says(t, tool, "x = 7; x", "7\n") })
	}
	all.Wait()
	if n := interpreters(t); n != MaxInterpreters {
		t.Errorf("%d interpreters, not %d", n, MaxInterpreters)
	}
	told := 0
	for _, tool := range tools {
		got, err := run(t, tool, "x")
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(got, "make room for other conversations: its variables are gone") {
			told++
		} else if got != "7\n" {
			t.Errorf("it says %q", got)
		}
	}
	if told < 4 {
		t.Errorf("%d lost their variables", told)
	}
	for _, tool := range tools {
		if err := tool.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := interpreters(t); n != 0 || len(sharedPool.tools) != 0 {
		t.Errorf("%d interpreters, %d counted", n, len(sharedPool.tools))
	}
}

// One that uses most is ended where all of them together use too much.
func TestTogetherTheyAreBounded(t *testing.T) {
	p := &pool{uses: map[*interpreter]int64{}}
	small, large := &interpreter{}, &interpreter{}
	if err := p.recordUse(small, TotalMemory/2); err != nil {
		t.Error(err)
	}
	if err := p.recordUse(large, TotalMemory/2+1); err == nil {
		t.Error("the larger one goes on")
	}
	if err := p.recordUse(small, TotalMemory/2); err != nil {
		t.Error(err)
	}
}

// isStopped looks whether each thread of the driver is stopped.
func isStopped(r *interpreter) bool {
	return strings.Trim(r.states(r.driverPID), "T") == ""
}

// Threads of a cell run while a cell runs, and the process is stopped in between.
func TestThreadsStopBetweenCells(t *testing.T) {
	tool := open(t, Options{})
	says(t, tool, `
import threading, time
seen = []
def tick():
    while True:
        seen.append(1)
        time.sleep(0.005)
threading.Thread(target=tick, daemon=True).start()`, "")
	for range 2 {
		if !isStopped(tool.run) {
			t.Error("a thread runs after its cell")
		}
		says(t, tool, "n = len(seen)\nwhile len(seen) < n + 5: time.sleep(0.005)", "")
	}
}

// Names and attributes of files are memory too.
func TestEmptyFilesAreCounted(t *testing.T) {
	tool := open(t, Options{Memory: 128 << 20})
	_, err := run(t, tool, "for n in range(400000): open(f'/tmp/{n}', 'w').close()")
	if err == nil || !strings.Contains(err.Error(), "0.1 GB of memory") {
		t.Error(err)
	}
}

// killed is a program that has a tool and is killed.
func killed(t *testing.T) {
	tool := open(t, Options{})
	says(t, tool, "open('/mnt/data/a', 'w').write('secret')", "6")
	fmt.Println("folder", tool.folder)
	select {}
}

// What a killed run leaves is removed by the next one; the folder of one that runs is not, nor
// what only has such a name.
func TestRemains(t *testing.T) {
	if os.Getenv("TEST_KILLED") != "" {
		killed(t)
	}
	hosttest.Program(t, "bwrap")
	t.Setenv("TMPDIR", t.TempDir())
	c := exec.Command(os.Args[0], "-test.run", "^TestRemains$")
	c.Env = append(os.Environ(), "TEST_KILLED=1")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	left := ""
	for s := bufio.NewScanner(out); left == "" && s.Scan(); {
		left, _ = strings.CutPrefix(s.Text(), "folder ")
	}
	link := filepath.Join(os.TempDir(), folderPrefix+"link")
	other := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for _, err := range []error{os.Symlink(other, link), os.Chtimes(left, old, old)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	removeLeftovers()
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the folder of one that runs: %v", err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // killed
	err = filepath.WalkDir(left, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			t.Errorf("a file of a cell is left: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	tool := open(t, Options{})
	says(t, tool, "1", "1")
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", left, err)
	}
	for _, path := range []string{link, other, tool.folder} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// A picture is no more than a file of its cell, however large and many.
//
// SECURITY.md: pictures: copied out as regular files only, at most 256 MiB a conversation
func TestPicturesAreBounded(t *testing.T) {
	tool := open(t, Options{})
	r, err := tool.Run(t.Context(), session.Call{Arguments: `
import types, sys
m = types.ModuleType("matplotlib.pyplot")
def save(name):
    with open(name, "wb") as f: f.truncate(200 << 20)
m.get_fignums, m.close = lambda: [1, 2], lambda *_: None
m.figure = lambda n: types.SimpleNamespace(savefig=save)
sys.modules["matplotlib.pyplot"] = m`}, func(string) {})
	if err != nil || len(r.Files) != 1 || !strings.Contains(r.Text,
		"figure-2.png is not saved: this conversation's have more than") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A service's LimitNOFILE, or a container's, may be lower than what a cell may have.
func TestCellsRunWithFewDescriptors(t *testing.T) {
	if os.Getenv("OSSRUN_TEST_FEW") != "" {
		says(t, open(t, Options{}), "import resource\nresource.getrlimit(resource.RLIMIT_NOFILE)",
			"(100, 100)")
		return
	}
	hosttest.Program(t, "bwrap")
	c := exec.CommandContext(t.Context(), "sh", "-c",
		`ulimit -n 100 && exec "$0" -test.run=^TestCellsRunWithFewDescriptors$`, os.Args[0])
	c.Env = append(os.Environ(), "OSSRUN_TEST_FEW=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
