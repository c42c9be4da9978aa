package gpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestMain(m *testing.M) {
	// kernels are proved in the tests of gpu/device
	ProofFolder = ""
	if len(os.Args) > 1 && os.Args[1] == WorkerVerb { // this binary is its own worker
		if err := RunWorker(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// machine makes cards of so much memory the only ones that are found.
func machine(t testing.TB, cards int, memory int64) *drivertest.Fake {
	t.Helper()
	return drivertest.Use(t, drivertest.Machine{Devices: cards, Name: "NVIDIA H200", Major: 9,
		Memory: memory})
}

// small is a model of 57 MB, nearly all of it experts.
func small() models.Spec {
	s := modeltest.Tiny()
	s.Layers, s.Experts, s.Hidden, s.Intermediate = 4, 8, 1024, 1024
	return s
}

// TestRoom: a model that fits on a card leaves the others alone; one that does not, or whose
// experts are wanted on the CPU, is placed over what there is, and said; where nothing has room
// that is an error, and the card is open as before.
func TestRoom(t *testing.T) {
	settings := engine.Settings{MaxNumBatchedTokens: 8, MaxNumSeqs: 4, MaxModelLen: 256,
		GPUMemoryUtilization: 1, Threads: 1}
	for what, x := range map[string]struct {
		cards   int
		memory  int64
		experts int
		change  func(*models.Spec)
		said    string // "": nothing
		fails   string
	}{
		"one card has room":   {2, 1 << 30, 0, nil, "", ""},
		"two cards have room": {2, 56 << 20, 0, nil, "layers 0-", ""},
		"experts on the CPU":  {1, 1 << 30, 2, nil, "experts of 2 of them on the CPU", ""},
		"nothing has room": {1, 1 << 30, 0, func(s *models.Spec) { s.Experts = 1 << 20 }, "",
			"has too little memory for tiny: "},
	} {
		t.Run(what, func(t *testing.T) {
			machine(t, x.cards, x.memory)
			var told []string
			b, err := Open(t.Context(), settings, func(line string) { told = append(told, line) })
			hosttest.Check(t, err)
			spec, s := small(), settings
			if s.CPUExperts = x.experts; x.change != nil {
				x.change(&spec)
			}
			for range 2 { // the second time it stays as it is
				room, err := b.Room(spec, s)
				if x.fails != "" {
					if err == nil || !strings.Contains(err.Error(), x.fails) {
						t.Errorf("%v", err)
					}
				} else if err != nil || room.Need.Weights < 50e6 || room.Free <= 0 ||
					room.Total < x.memory {
					t.Errorf("%+v, %v", room, err)
				}
				if several := room.MostPages > 0; several != (x.said != "") {
					t.Errorf("%+v", room)
				}
			}
			if text := strings.Join(told, "\n"); len(told) > 1 || !strings.Contains(text, x.said) ||
				x.said == "" && text != "" {
				t.Errorf("told: %q", told)
			}
			if x.said != "" { // another model goes back to one card
				if room, err := b.Room(modeltest.Tiny(), settings); err != nil ||
					room.MostPages > 0 {
					t.Errorf("%+v, %v", room, err)
				}
			}
			hosttest.Check(t, b.Close())
		})
	}
}

// TestIsolated: a model in a worker computes what one in this process does, has the same room, and
// the checks of the hardware run where the card is.
func TestIsolated(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("workers need Linux")
	}
	machine(t, 1, 1<<30)
	dir := filepath.Join(t.TempDir(), "tiny")
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 1).Write(dir))
	ckpt := hosttest.Must(checkpoint.Open(dir))(t)
	defer ckpt.Close()
	settings := engine.Settings{MaxNumBatchedTokens: 8, MaxNumSeqs: 4, Pages: 8}
	var first []float32
	for _, isolate := range []bool{false, true} {
		s := settings
		s.Isolate = isolate
		b, err := Open(t.Context(), s, func(line string) { t.Log(line) })
		hosttest.Check(t, err)
		if (b.Traffic() != nil) != isolate || b.Several() || b.Caps().Arch != "sm_90" {
			t.Errorf("traffic: %v, %+v", b.Traffic(), b.Caps())
		}
		room, err := b.Room(ckpt.Spec, s)
		if err != nil || room.Need.Weights == 0 || room.Total == 0 || room.Reserve == 0 {
			t.Errorf("%+v, %v", room, err)
		}
		eng := hosttest.Must(b.Load(t.Context(), ckpt, s, nil))(t)
		logits := make([]float32, ckpt.Spec.Vocab)
		batch := &engine.Batch{Tokens: []int32{5, 6}, LogitRows: []int32{1},
			Seqs: []engine.SeqRows{{Rows: 2, Full: []int32{1}, Window: []int32{2}}}}
		hosttest.Check(t, errors.Join(eng.Step(t.Context(), batch, logits), eng.Close()))
		if first == nil {
			first = logits
		} else if !slices.Equal(first, logits) {
			t.Error("the worker's logits are others")
		}
		if isolate { // gpu/device has them in this process
			checked(t, b)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checked runs checks of the hardware.
func checked(t *testing.T, b *Backend) {
	t.Helper()
	if rate, err := b.Bandwidth(t.Context()); err != nil || rate <= 0 {
		t.Errorf("%v byte/s, %v", rate, err)
	}
	n := 0
	err := b.Ops(t.Context(), enginetest.Small()[2:3], nil, func(r enginetest.OpResult) {
		if r.Failure != nil {
			t.Errorf("%s: %v", r.Op, r.Failure)
		}
		if r.Skipped == "" {
			n++
		}
	})
	if err != nil || n < 23 {
		t.Errorf("%d operations were checked, %v", n, err)
	}
	var speeds []device.Speed
	points := []device.Point{{Sequences: 1, Rows: 2}, {Sequences: 1, Rows: 1, Context: 1 << 20}}
	err = b.TimeModel(t.Context(), modeltest.Tiny(), points, 1,
		func(s device.Speed) { speeds = append(speeds, s) })
	if err != nil || len(speeds) != 2 || speeds[0].TokensPerSecond <= 0 ||
		speeds[1].Skipped == "" {
		t.Errorf("%+v, %v", speeds, err)
	}
}
