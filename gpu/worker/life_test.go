//go:build linux

package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// How workers begin, fail and end.

// tiny is a checkpoint in files.
func tiny(t testing.TB) *checkpoint.Checkpoint { return tinyOf(t, modeltest.Tiny().Layers) }

// tinyOf is one of so many layers.
func tinyOf(t testing.TB, layers int) *checkpoint.Checkpoint {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	spec := modeltest.Tiny()
	spec.Layers = layers
	hosttest.Check(t, modeltest.New(spec, 1).Write(dir))
	ckpt := hosttest.Must(checkpoint.Open(dir))(t)
	t.Cleanup(func() { ckpt.Close() })
	return ckpt
}

// rows is a step of one sequence's tokens from a position on, with the logits of the last one.
func rows(start int32, tokens ...int32) *engine.Batch {
	return &engine.Batch{Tokens: tokens, LogitRows: []int32{int32(len(tokens)) - 1},
		Seqs: []engine.SeqRows{{Start: start, Rows: int32(len(tokens)), Full: []int32{1},
			Window: []int32{2}}}}
}

var small = engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}

// loadedOn is a model on a backend; the test closes it.
func loadedOn(t testing.TB, b engine.Backend, ckpt *checkpoint.Checkpoint,
	s engine.Settings) engine.Engine {
	t.Helper()
	eng := hosttest.Must(b.Load(t.Context(), ckpt, s, nil))(t)
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// life is a model's: load, prefill, decode, close; the logits of the last step.
func life(ctx context.Context, b engine.Backend, ckpt *checkpoint.Checkpoint) (logits []float32,
	err error) {
	eng, err := b.Load(ctx, ckpt, small, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	logits = make([]float32, ckpt.Spec.Vocab)
	if err := eng.Step(ctx, rows(0, 15, 16), logits); err != nil {
		return nil, err
	}
	return logits, eng.Step(ctx, rows(2, 17), logits)
}

// TestLoad: the worker opens the checkpoint itself, tells how far it is, and computes what this
// process does; the end of a context ends the load, and another one goes well.
func TestLoad(t *testing.T) {
	ckpt := tiny(t)
	dev := hosttest.Must(cpu.New(1))(t)
	want, err := life(t.Context(), engine.On(dev), ckpt)
	if err = errors.Join(err, dev.Close()); err != nil {
		t.Fatal(err)
	}
	b := opened(t, "cpu", Options{})
	ctx, cancel := context.WithCancel(t.Context())
	calls, last := 0, int64(0)
	if _, err := b.Load(ctx, ckpt, small, func(done, total int64) {
		if calls++; done <= last || done > total {
			t.Errorf("%d of %d bytes after %d", done, total, last)
		}
		if last = done; calls == 5 {
			cancel()
		}
	}); !errors.Is(err, context.Canceled) || calls != 5 {
		t.Errorf("after %d tensors: %v", calls, err)
	}
	got, err := life(t.Context(), b, ckpt)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, the same logits: %v", err, slices.Equal(got, want))
	}
	eng := loadedOn(t, b, ckpt, small)
	if _, err := b.Load(t.Context(), ckpt, small, nil); err == nil {
		t.Error("two models are loaded")
	}
	times, err := eng.Measure(t.Context(), rows(0, 15, 16), make([]float32, ckpt.Spec.Vocab))
	if err != nil || len(times) < 20 || times[0].Bytes == 0 {
		t.Errorf("%d operations were timed, %v", len(times), err)
	}
}

// TestFileThatWentAway: a checkpoint whose files were replaced since it was opened is not loaded,
// and one without a file cannot be.
func TestFileThatWentAway(t *testing.T) {
	ckpt, b := tiny(t), opened(t, "cpu", Options{})
	path := filepath.Join(ckpt.Path, "model.safetensors")
	data := hosttest.Must(os.ReadFile(path))(t)
	hosttest.Check(t, errors.Join(os.WriteFile(path+".new", data, 0o600),
		os.Rename(path+".new", path)))
	if _, err := b.Load(t.Context(), ckpt, small, nil); err == nil ||
		!strings.Contains(err.Error(), "have changed since they were opened") {
		t.Error(err)
	}
	hosttest.Check(t, os.Remove(path))
	if _, err := b.Load(t.Context(), ckpt, small, nil); err == nil || errors.Is(err, ErrLost) {
		t.Error(err)
	}
	made := hosttest.Must(checkpoint.Synthetic(modeltest.Tiny(), 1))(t)
	defer made.Close()
	if _, err := b.Load(t.Context(), made, small, nil); err == nil ||
		!strings.Contains(err.Error(), "is not a file") {
		t.Error(err)
	}
}

// TestDemo: the embedded demo is in the worker's program as well.
func TestDemo(t *testing.T) {
	demo := hosttest.Must(checkpoint.OpenDemo())(t)
	defer demo.Close()
	eng := loadedOn(t, opened(t, "cpu", Options{}), demo, small)
	hosttest.Check(t, eng.Step(t.Context(), rows(0, 15, 16), make([]float32, demo.Spec.Vocab)))
}

// TestNoDevice: why there is no device comes through, typed.
func TestNoDevice(t *testing.T) {
	_, err := Start(Options{Program: program(t, "none"), Settings: engine.Settings{GPUs: []int{3}}})
	var e *driver.Error
	if !errors.As(err, &e) || e.Code != 2 || !errors.Is(err, driver.ErrOutOfMemory) ||
		!strings.HasPrefix(err.Error(), "no GPU among [3]: ") {
		t.Error(err)
	}
}

// TestOtherBuild: a worker of another build is refused, whichever way it differs.
func TestOtherBuild(t *testing.T) {
	for _, other := range []Identity{{Protocol: Protocol + 1},
		{Protocol: Protocol, Commit: "elsewhere", Kernels: ThisBuild().Kernels}} {
		if _, err := Start(Options{Program: program(t, "cpu"), Identity: other}); err == nil ||
			!strings.Contains(err.Error(), "of another") || strings.Contains(err.Error(), "\n") {
			t.Error(err) // nothing but that: it parts without a word
		}
	}
}

// TestCannotBeKilled: whoever waits for the end of a worker that does not even die of SIGKILL is
// told, and goes on.
func TestCannotBeKilled(t *testing.T) {
	sleeper := exec.Command("/bin/sleep", "100")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	// its end is not announced
	p := &process{os: sleeper.Process, done: make(chan struct{}), ending: time.Millisecond}
	p.kill("it did not answer")
	want := fmt.Sprintf("the GPU worker ended: it did not answer; its process %d does not end",
		sleeper.Process.Pid)
	if text := p.lost().Error(); !strings.HasPrefix(text, want) {
		t.Error(text)
	}
	told := p.lost().Error()
	if p.kill("again"); p.lost().Error() != told {
		t.Error(p.lost())
	}
	if err := sleeper.Wait(); err == nil {
		t.Error("it was not ended")
	}
}

// TestNotAWorker: programs that are none, and one that is not there.
func TestNotAWorker(t *testing.T) {
	for _, argv := range [][]string{{"/bin/true"}, {"/bin/echo", "hello"},
		{"/bin/sh", "-c", "echo no such library >&2; exit 127"}} {
		_, err := Start(Options{Program: argv})
		if !errors.Is(err, ErrLost) {
			t.Errorf("%v: %v", argv, err)
		}
		if len(argv) > 2 && !strings.Contains(err.Error(),
			"exit status 127; it said: no such library") {
			t.Error(err)
		}
	}
	if _, err := Start(Options{Program: []string{"/nowhere"}}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestFaultsOfSteps: whatever ends the worker in a step, the step fails with its reason, and so
// does everything after it.
func TestFaultsOfSteps(t *testing.T) {
	ckpt := tiny(t)
	for token, want := range map[int32]string{
		1: "exit status 3",
		2: "exit status 2; it said: SIGSEGV: segmentation violation",
		3: "it did not answer a step for 300ms and was ended",
		4: "exit status 2; it said: panic: the engine has lost count",
	} {
		dev := opened(t, "faulty", Options{Deadlines: Deadlines{Step: 300 * time.Millisecond}})
		if token != 3 { // else a loaded machine is late
			dev.c.deadlines.Step = time.Minute
		}
		eng, err := dev.Load(t.Context(), ckpt, small, nil)
		hosttest.Check(t, err)
		logits := make([]float32, ckpt.Spec.Vocab)
		err = eng.Step(t.Context(), rows(0, token), logits)
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", token, err)
		}
		select {
		case <-dev.c.p.done:
		default:
			t.Errorf("%d: the worker's end is not known", token)
		}
		if again := eng.Step(t.Context(), rows(0, 9), logits); !errors.Is(again, ErrLost) {
			t.Errorf("%d: the step after it: %v", token, again)
		}
		if _, free := dev.Memory(); free != 0 {
			t.Errorf("%d: a lost device has %d bytes free", token, free)
		}
		if err := errors.Join(dev.Close(), dev.Close()); err != nil {
			t.Errorf("%d: %v", token, err)
		}
		if again := eng.Step(t.Context(), rows(0, 9), logits); !errors.Is(again, ErrLost) {
			t.Errorf("%d: a step on a closed device: %v", token, again)
		}
		if err := eng.Close(); err != nil {
			t.Errorf("%d: %v", token, err)
		}
	}
}

// TestErrorOfAStep: an error of the driver is typed here, and the worker goes on.
func TestErrorOfAStep(t *testing.T) {
	ckpt := tiny(t)
	dev := opened(t, "faulty", Options{})
	eng, err := dev.Load(t.Context(), ckpt, small, nil)
	hosttest.Check(t, err)
	logits := make([]float32, ckpt.Spec.Vocab)
	err = eng.Step(t.Context(), rows(0, 5), logits)
	var e *driver.Error
	if !errors.As(err, &e) || e.Code != 700 ||
		err.Error() != "run the step: cuGraphLaunch: an illegal memory access "+
			"(CUDA_ERROR_ILLEGAL_ADDRESS, 700)" || errors.Is(err, ErrLost) {
		t.Error(err)
	}
	hosttest.Check(t, errors.Join(eng.Step(t.Context(), rows(0, 9), logits), eng.Close()))
}

// TestKilled: kill -9, while nothing runs, is seen at once.
func TestKilled(t *testing.T) {
	dev := opened(t, "cpu", Options{})
	hosttest.Check(t, syscall.Kill(dev.c.p.os.Pid, syscall.SIGKILL))
	<-dev.c.p.done
	if _, err := dev.Room(modeltest.Tiny(), small); err == nil ||
		err.Error() != "the GPU worker ended: signal: killed" {
		t.Error(err)
	}
}

// TestSignalsForTheParent: Ctrl-C and a service manager's SIGTERM are the parent's to answer.
func TestSignalsForTheParent(t *testing.T) {
	dev := opened(t, "cpu", Options{})
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		hosttest.Check(t, syscall.Kill(dev.c.p.os.Pid, s))
	}
	if _, free := dev.Memory(); free == 0 {
		t.Error("the worker is gone")
	}
	if group, err := syscall.Getpgid(dev.c.p.os.Pid); err != nil || group == syscall.Getpgrp() {
		t.Errorf("the worker is in this process's group: %v", err)
	}
}

// TestClosedInUse: a backend is not closed under its model, and a model is closed once.
func TestClosedInUse(t *testing.T) {
	b := opened(t, "cpu", Options{})
	eng := hosttest.Must(b.Load(t.Context(), tiny(t), small, nil))(t)
	if b.Close() == nil {
		t.Error("closed with a model in use")
	}
	pool := eng.Cache()
	if err := errors.Join(eng.Close(), eng.Close()); err != nil {
		t.Error(err)
	}
	if pool.Write(0, []byte{1}) == nil || pool.Read(0, make([]byte, 1)) == nil {
		t.Error("the pool of a closed model is used")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Load(t.Context(), tiny(t), small, nil); !errors.Is(err, engine.ErrClosed) {
		t.Error(err)
	}
}

// TestParentDies: a worker ends with its parent, though it is busy and hears nothing.
func TestParentDies(t *testing.T) {
	self := hosttest.Must(os.Executable())(t)
	parent := exec.Command(self, asParent, "mute")
	out := hosttest.Must(parent.StdoutPipe())(t)
	hosttest.Check(t, parent.Start())
	lines := bufio.NewScanner(out)
	pid := 0
	for pid == 0 && lines.Scan() {
		fmt.Sscanf(lines.Text(), "worker %d", &pid)
	}
	if pid == 0 {
		t.Fatal("no worker was started")
	}
	hosttest.Check(t, parent.Process.Kill())
	_ = parent.Wait() // killed
	hosttest.Until(t, "the worker ends", func() bool {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// or its status was not read
		return err != nil || strings.Contains(string(data), ") Z ")
	})
}

// beParent starts a worker and waits to be killed.
func beParent(kind string) {
	self, _ := os.Executable()
	_, err := Start(Options{Program: []string{self, asWorker, kind},
		Log: func(line string) { fmt.Println(line) }})
	fmt.Println(err)
	os.Exit(1)
}
