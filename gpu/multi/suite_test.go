package multi_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/multi"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// What the tests of this folder share. Most of them split over CPU devices, which cuts and moves as
// cards do and costs no emulation.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testdata = "../../testdata/model/"

// planned is a plan with the layers cut at ends, and the experts of some layers with the host.
func planned(ends []int, hosted ...int) multi.Plan {
	var p multi.Plan
	from := 0
	for i, to := range ends {
		share := multi.Share{Card: i, From: from, To: to}
		for _, layer := range hosted {
			if layer >= from && layer < to {
				share.CPUExperts = append(share.CPUExperts, layer)
			}
		}
		p.Shares = append(p.Shares, share)
		from = to
	}
	return p
}

// host is a CPU device of one thread.
func host(t testing.TB) engine.Device {
	t.Helper()
	return hosttest.Must(cpu.New(1))(t)
}

// hosts is a split over CPU devices, as many as there are ends, and one more for the experts. The
// test closes it.
func hosts(t testing.TB, streams func(rows int) bool, ends []int, hosted ...int) *multi.Device {
	t.Helper()
	var cards []engine.Device
	for range ends {
		cards = append(cards, host(t))
	}
	dev := hosttest.Must(multi.New(planned(ends, hosted...), cards, host(t), streams))(t)
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// always streams, whatever the step.
func always(int) bool { return true }

// tiny is a checkpoint of 100 kB.
func tiny(t testing.TB) *checkpoint.Checkpoint {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 1).Write(dir))
	return opened(t, dir)
}

func opened(t testing.TB, dir string) *checkpoint.Checkpoint {
	t.Helper()
	ckpt := hosttest.Must(checkpoint.Open(dir))(t)
	t.Cleanup(func() { ckpt.Close() })
	return ckpt
}

// ways are all the placements of a model of so many layers on up to three cards: every cut, and
// every set of layers whose experts are the host's on one card and on two.
func ways(layers int) (list []way) {
	for a := 1; a <= layers; a++ {
		if a == layers {
			list = append(list, way{ends: []int{a}})
			break
		}
		list = append(list, way{ends: []int{a, layers}})
		for b := a + 1; b < layers; b++ {
			list = append(list, way{ends: []int{a, b, layers}})
		}
	}
	for set := 1; set < 1<<layers; set++ {
		var hosted []int
		for layer := range layers {
			if set>>layer&1 != 0 {
				hosted = append(hosted, layer)
			}
		}
		list = append(list, way{ends: []int{layers}, hosted: hosted},
			way{ends: []int{layers / 2, layers}, hosted: hosted})
	}
	return list
}

type way struct{ ends, hosted []int }

func (w way) String() string { return fmt.Sprintf("cut at %v, experts of %v", w.ends, w.hosted) }
