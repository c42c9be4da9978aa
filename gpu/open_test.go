package gpu

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/fakedriver"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
)

func TestMain(m *testing.M) {
	Records = "" // kernels are proved in the tests of gpu/device
	goleak.VerifyTestMain(m)
}

// machine makes cards of so much memory the only ones that are found.
func machine(t *testing.T, cards int, memory int64) *fakedriver.Fake {
	t.Helper()
	f, err := fakedriver.Open(driver.CUDA, fakedriver.Machine{Devices: cards, Name: "NVIDIA H200", Major: 9, Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OSSRUN_LIBCUDA", f.Path)
	t.Setenv("OSSRUN_LIBAMDHIP64", "")
	t.Cleanup(func() {
		if left := f.Leaks(); left != "" {
			t.Errorf("not given back: %s", left)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// small is a model of 57 MB, nearly all of it experts.
func small() models.Spec {
	s := modeltest.Tiny()
	s.Layers, s.Experts, s.Hidden, s.Intermediate = 4, 8, 1024, 1024
	return s
}

// TestRoom: a model that fits on a card leaves the others alone; one that does not, or whose experts are wanted on the CPU, is
// placed over what there is, and said; where nothing has room that is an error, and the card is open as before.
func TestRoom(t *testing.T) {
	settings := engine.Settings{MaxNumBatchedTokens: 8, MaxNumSeqs: 4, MaxModelLen: 256, GPUMemoryUtilization: 1, Threads: 1}
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
		"nothing has room":    {1, 1 << 30, 0, func(s *models.Spec) { s.Experts = 1 << 20 }, "", "has no room for tiny: "},
	} {
		t.Run(what, func(t *testing.T) {
			machine(t, x.cards, x.memory)
			var told []string
			b, err := Open(t.Context(), settings, func(line string) { told = append(told, line) })
			if err != nil {
				t.Fatal(err)
			}
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
				} else if err != nil || room.Need.Weights < 50e6 || room.Free <= 0 || room.Total < x.memory {
					t.Errorf("%+v, %v", room, err)
				}
				if several := room.MostPages > 0; several != (x.said != "") {
					t.Errorf("%+v", room)
				}
			}
			if text := strings.Join(told, "\n"); len(told) > 1 || !strings.Contains(text, x.said) || x.said == "" && text != "" {
				t.Errorf("told: %q", told)
			}
			if x.said != "" { // another model goes back to one card
				if room, err := b.Room(modeltest.Tiny(), settings); err != nil || room.MostPages > 0 {
					t.Errorf("%+v, %v", room, err)
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
