//go:build linux

package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
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
	"github.com/ossrun/ossrun/runtime/engine"
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
	if err := modeltest.New(spec, 1).Write(dir); err != nil {
		t.Fatal(err)
	}
	ckpt, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() })
	return ckpt
}

// rows is a step of one sequence's tokens from a position on, with the logits of the last one.
func rows(start int32, tokens ...int32) *engine.Batch {
	return &engine.Batch{Tokens: tokens, LogitRows: []int32{int32(len(tokens)) - 1},
		Seqs: []engine.SeqRows{{Start: start, Rows: int32(len(tokens)), Full: []int32{1}, Window: []int32{2}}}}
}

var small = engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}

// life is an engine's on a device: load, prefill, decode, close; the logits of the last step.
func life(ctx context.Context, dev engine.Device, ckpt *checkpoint.Checkpoint) (logits []float32, err error) {
	eng, err := engine.New(dev, ckpt, small)
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

// TestWeightsAreOpenedThere: nothing of a checkpoint in files passes through the shared memory, and what comes out is the same.
func TestWeightsAreOpenedThere(t *testing.T) {
	ckpt := tiny(t)
	want, err := life(t.Context(), opened(t, "cpu", Options{}), ckpt)
	if err != nil {
		t.Fatal(err)
	}
	dev := opened(t, "reader", Options{})
	got, err := life(t.Context(), dev, ckpt)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, the same logits: %v", err, slices.Equal(got, want))
	}
	if _, err := dev.Upload(make([]byte, 9)); err == nil {
		t.Error("memory of no file was uploaded without being written")
	}
}

// TestFileThatWentAway: weights whose file was replaced since they were mapped are taken from the memory that is mapped.
func TestFileThatWentAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	mapped := mapFile(t, path, []byte(strings.Repeat("weights!", 2000)))
	if part, ok := partOf(mapped[4099:8000]); !ok || part.Path != path || part.Offset != 4099 || part.Bytes != 3901 {
		t.Fatalf("%+v %v", part, ok)
	}
	dev := opened(t, "cpu", Options{})
	for _, replaced := range []func() error{
		func() error { return nil },
		func() error { return os.WriteFile(path+".new", make([]byte, 16000), 0o600) },
		func() error { return os.Rename(path+".new", path) },
		func() error { return os.Remove(path) },
	} {
		if err := replaced(); err != nil {
			t.Fatal(err)
		}
		r, err := dev.Upload(mapped[4099:8000])
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 3901)
		if err := r.Read(0, got); err != nil || !slices.Equal(got, mapped[4099:8000]) {
			t.Errorf("%v: %q", err, got[:16])
		}
		if err := r.Free(); err != nil {
			t.Error(err)
		}
	}
	if part, ok := partOf(mapped[:9]); ok {
		t.Errorf("a removed file is found: %+v", part)
	}
	if _, ok := partOf(make([]byte, 100)); ok {
		t.Error("memory of no file is found in one")
	}
}

// TestViewRefuses: what is not the file that was said is not mapped by the worker.
func TestViewRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	mapped := mapFile(t, path, make([]byte, 8192))
	part, ok := partOf(mapped)
	if !ok {
		t.Fatal("not found")
	}
	for name, change := range map[string]func(*filePart){
		"size": func(p *filePart) { p.Size++ }, "inode": func(p *filePart) { p.Inode++ }, "time": func(p *filePart) { p.Changed++ },
		"device": func(p *filePart) { p.Device++ }, "path": func(p *filePart) { p.Path += "x" }, "folder": func(p *filePart) { p.Path = filepath.Dir(path) },
		"offset": func(p *filePart) { p.Offset = -1 }, "end": func(p *filePart) { p.Bytes++ }, "overflow": func(p *filePart) { p.Bytes = math.MaxInt64 },
	} {
		lie := part
		change(&lie)
		if _, _, err := lie.view(); err == nil {
			t.Errorf("another %s: mapped", name)
		}
	}
}

// TestNoDevice: why there is no device comes through, typed.
func TestNoDevice(t *testing.T) {
	_, err := Start(Options{Program: program(t, "none"), Wanted: Wanted{GPUs: []int{3}}})
	var e *driver.Error
	if !errors.As(err, &e) || e.Code != 2 || !errors.Is(err, driver.ErrOutOfMemory) || !strings.HasPrefix(err.Error(), "no GPU among [3]: ") {
		t.Error(err)
	}
}

// TestOtherBuild: a worker of another build is refused, whichever way it differs.
func TestOtherBuild(t *testing.T) {
	for _, other := range []Identity{{Protocol: Protocol + 1}, {Protocol: Protocol, Commit: "elsewhere", Kernels: Here().Kernels}} {
		if _, err := Start(Options{Program: program(t, "cpu"), Identity: other}); err == nil || !strings.Contains(err.Error(), "of another") || strings.Contains(err.Error(), "\n") {
			t.Error(err) // nothing but that: it parts without a word
		}
	}
}

// TestCannotBeKilled: whoever waits for the end of a worker that does not even die of SIGKILL is told, and goes on.
func TestCannotBeKilled(t *testing.T) {
	sleeper := exec.Command("/bin/sleep", "100")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{os: sleeper.Process, ended: make(chan struct{}), ending: time.Millisecond} // nobody says that it has ended
	p.kill("it did not answer")
	want := fmt.Sprintf("the GPU worker ended: it did not answer; its process %d does not end", sleeper.Process.Pid)
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
	for _, argv := range [][]string{{"/bin/true"}, {"/bin/echo", "hello"}, {"/bin/sh", "-c", "echo no such library >&2; exit 127"}} {
		_, err := Start(Options{Program: argv})
		if !errors.Is(err, ErrLost) {
			t.Errorf("%v: %v", argv, err)
		}
		if len(argv) > 2 && !strings.Contains(err.Error(), "exit status 127; it said: no such library") {
			t.Error(err)
		}
	}
	if _, err := Start(Options{Program: []string{"/nowhere"}}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestFaultsOfSteps: whatever ends the worker in a step, the step fails with its reason, and so does everything after it.
func TestFaultsOfSteps(t *testing.T) {
	ckpt := tiny(t)
	for token, want := range map[int32]string{
		1: "exit status 3",
		2: "exit status 2; it said: SIGSEGV: segmentation violation",
		3: "it did not answer a step for 300ms and was ended",
		4: "exit status 2; it said: panic: the engine has lost count",
	} {
		dev := opened(t, "faulty", Options{Deadlines: Deadlines{Step: 300 * time.Millisecond}})
		if token != 3 { // else a loaded machine is late where it should not be
			dev.c.deadlines.Step = time.Minute
		}
		eng, err := engine.New(dev, ckpt, small)
		if err != nil {
			t.Fatal(err)
		}
		logits := make([]float32, ckpt.Spec.Vocab)
		err = eng.Step(t.Context(), rows(0, token), logits)
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", token, err)
		}
		select {
		case <-dev.Lost():
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
	eng, err := engine.New(dev, ckpt, small)
	if err != nil {
		t.Fatal(err)
	}
	logits := make([]float32, ckpt.Spec.Vocab)
	err = eng.Step(t.Context(), rows(0, 5), logits)
	var e *driver.Error
	if !errors.As(err, &e) || e.Code != 700 || err.Error() != "run the step: cuGraphLaunch: an illegal memory access (CUDA_ERROR_ILLEGAL_ADDRESS, 700)" || errors.Is(err, ErrLost) {
		t.Error(err)
	}
	if err := errors.Join(eng.Step(t.Context(), rows(0, 9), logits), eng.Close()); err != nil {
		t.Error(err)
	}
}

// TestKilled: kill -9, while nothing runs, is seen at once.
func TestKilled(t *testing.T) {
	dev := opened(t, "cpu", Options{})
	if err := syscall.Kill(dev.Process(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-dev.Lost()
	if _, err := dev.Alloc(10); err == nil || err.Error() != "the GPU worker ended: signal: killed" {
		t.Error(err)
	}
}

// TestSignalsForTheParent: Ctrl-C and a service manager's SIGTERM are the parent's to answer.
func TestSignalsForTheParent(t *testing.T) {
	dev := opened(t, "cpu", Options{})
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(dev.Process(), s); err != nil {
			t.Fatal(err)
		}
	}
	if _, free := dev.Memory(); free == 0 {
		t.Error("the worker is gone")
	}
	if group, err := syscall.Getpgid(dev.Process()); err != nil || group == syscall.Getpgrp() {
		t.Errorf("the worker is in this process's group: %v", err)
	}
}

// TestClosedInUse: a device is not closed under its regions, and a region is freed once.
func TestClosedInUse(t *testing.T) {
	dev := opened(t, "cpu", Options{})
	r, err := dev.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	if dev.Close() == nil {
		t.Error("closed with a region in use")
	}
	if err := errors.Join(r.Free(), r.Free()); err != nil {
		t.Error(err)
	}
	if r.Write(0, []byte{1}) == nil || r.Read(0, make([]byte, 1)) == nil {
		t.Error("a freed region is used")
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if _, err := dev.Alloc(64); !errors.Is(err, engine.ErrClosed) {
		t.Error(err)
	}
}

// TestParentDies: a worker ends with its parent, though it is busy and hears nothing.
func TestParentDies(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, asParent, "mute")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	pid := 0
	for pid == 0 && lines.Scan() {
		fmt.Sscanf(lines.Text(), "worker %d", &pid)
	}
	if pid == 0 {
		t.Fatal("no worker was started")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	eventually(t, "the worker ends", func() bool {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(data), ") Z ") // or nobody has asked for its status
	})
}

// beParent starts a worker and waits to be killed.
func beParent(kind string) {
	self, _ := os.Executable()
	_, err := Start(Options{Program: []string{self, asWorker, kind}, Log: func(line string) { fmt.Println(line) }})
	fmt.Println(err)
	os.Exit(1)
}
