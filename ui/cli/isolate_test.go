//go:build linux

package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models/modeltest"
)

// --isolate, with the fake driver in the worker: what a person sees, and a server whose worker is
// killed.

// TestWorkerVerb: a person who runs the verb learns that it is not for people.
func TestWorkerVerb(t *testing.T) {
	var out, said bytes.Buffer
	program := filepath.Join(t.TempDir(), "ossrun")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, gpu.WorkerVerb)
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); c.ProcessState.ExitCode() != exitFailure || !strings.Contains(said.String(),
		"only ossrun can start it") {
		t.Errorf("%v: %s%s", err, &out, &said)
	}
}

// isolatedServer is ossrun serve with a GPU of the fake driver's in a worker.
type isolatedServer struct {
	cmd   *exec.Cmd
	url   string
	ended chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

func (s *isolatedServer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *isolatedServer) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// startIsolated serves with this test as the program, which --isolate makes its own worker.
func startIsolated(t *testing.T, flags ...string) *isolatedServer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// TestMain is the program of that name; a link would lead the worker back to the other name
	program := filepath.Join(t.TempDir(), "ossrun")
	data, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(program, data, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return startServer(t, program, append(flags, "--isolate")...)
}

// startServer lets a program serve a checkpoint of a tiny shape with the whole vocabulary, on the
// fake driver's GPU.
func startServer(t *testing.T, program string, flags ...string) *isolatedServer {
	t.Helper()
	library, err := drivertest.Build(driver.CUDA)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	spec := modeltest.Tiny()
	spec.Vocab, spec.EOS = token.VocabSize, []int32{200002}
	weights := filepath.Join(home, "tiny")
	if err := modeltest.New(spec, 1).Write(weights); err != nil {
		t.Fatal(err)
	}
	s := &isolatedServer{ended: make(chan struct{}),
		cmd: exec.Command(program, append([]string{"serve", "--model", weights, "--device", "gpu",
			"--port", "0",
			"--max-model-len", "512", "--max-num-seqs", "2", "--max-num-batched-tokens", "8"},
			flags...)...)}
	s.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home,
		"XDG_CACHE_HOME="+home, "XDG_RUNTIME_DIR="+home, "OSSRUN_LIBCUDA="+library,
		"OSSRUN_UNPROVED=1")
	s.cmd.Stdout, s.cmd.Stderr = s, s
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(os.Interrupt)
		<-s.ended
		if !s.cmd.ProcessState.Success() {
			t.Errorf("the server: %v\n%s", s.cmd.ProcessState, s.said())
		}
	})
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait() // ProcessState has it
	}()
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	s.until(t, "an address", func() bool {
		s.url = address.FindString(s.said())
		return s.url != ""
	})
	s.until(t, "ready", func() bool {
		r, err := http.Get(s.url + "/health")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return s
}

func (s *isolatedServer) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		select {
		case <-s.ended:
			t.Fatalf("the server ended before: %s\n%s", what, s.said())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("not in five minutes: %s\n%s", what, s.said())
}

// worker is the number of the server's worker process: this program with the worker's verb, or one
// that was started from memory.
func (s *isolatedServer) worker(t *testing.T) int {
	t.Helper()
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
	for _, path := range list {
		data, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(data)) {
			pid, err := strconv.Atoi(word)
			line, _ := os.ReadFile("/proc/" + word + "/cmdline")
			program, _ := os.Readlink("/proc/" + word + "/exe")
			if err == nil && (strings.Contains(string(line), gpu.WorkerVerb) ||
				strings.Contains(program, "memfd:ossrun-gpu-worker")) {
				return pid
			}
		}
	}
	t.Fatalf("the server has no worker\n%s", s.said())
	return 0
}

func (s *isolatedServer) complete(t *testing.T, tokens int, stream bool) *http.Response {
	t.Helper()
	body := fmt.Sprintf(`{"model":"tiny","prompt":"a","max_tokens":%d,"ignore_eos":true,"seed":1,"stream":%v}`, tokens, stream)
	r, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.said())
	}
	return r
}

// TestIsolatedPlan: with --cpu-experts a server's worker holds GPU and CPU; the plan is reported,
// and again after the worker was killed.
func TestIsolatedPlan(t *testing.T) {
	drivertest.Long(t)
	s := startIsolated(t, "--cpu-experts", "1")
	if said := s.said(); !strings.Contains(said, "layers 0-1 on GPU 0") ||
		!strings.Contains(said, "experts of 1 of them on the CPU") {
		t.Errorf("the plan is not told:\n%s", said)
	}
	killTheWorker(t, s)
	if n := strings.Count(s.said(), "experts of 1 of them on the CPU"); n != 2 {
		t.Errorf("%d plans are told, not 2:\n%s", n, s.said())
	}
}

// killTheWorker is the check for a server whose worker is one of its children: kill -9 of the
// worker ends the running request with an error that says so; a new worker answers the next one
// with what the first would have been.
func killTheWorker(t *testing.T, s *isolatedServer) {
	read := func(r *http.Response) string {
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := regexp.MustCompile(`"text":"[^"]*"`)
	before := read(s.complete(t, 3, false))
	if text.FindString(before) == "" {
		t.Fatal(before)
	}
	first := s.worker(t)
	running := s.complete(t, 400, true)
	lines := bufio.NewReader(running.Body)
	var err error
	// a loaded machine makes the server keep the line alive before
	for line := ""; !strings.HasPrefix(line, "data: "); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%q %v", line, err)
		}
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	running.Body.Close()
	if err != nil || !strings.Contains(string(rest), `"error"`) ||
		strings.Contains(string(rest), `"finish_reason":"length"`) {
		t.Errorf("%v: %s", err, rest[max(0, len(rest)-2000):])
	}
	if after := read(s.complete(t, 3, false)); text.FindString(after) != text.FindString(before) {
		t.Errorf("%s\nbefore: %s", after, before)
	}
	if second := s.worker(t); second == first {
		t.Error("the same worker")
	}
	if !strings.Contains(s.said(), "the GPU worker ended: signal: killed") {
		t.Errorf("the log does not say what happened:\n%s", s.said())
	}
}
