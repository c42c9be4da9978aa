package device

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestBandwidth: on a small card, since the copy grows with the card.
func TestBandwidth(t *testing.T) {
	f, err := drivertest.Open(driver.CUDA, drivertest.Machine{Devices: 1, Name: "Fake", Major: 9,
		Memory: 32 << 20})
	hosttest.Check(t, err)
	dev := hosttest.Must(Open(f.Driver, Options{}))(t)
	defer closeAll(t, dev, f)
	rate, err := dev.Bandwidth()
	if err != nil || rate <= 0 {
		t.Errorf("%v, %v", rate, err)
	}
	f.FailCall("cuMemcpyDtoDAsync_v2", 3, 46)
	if _, err := dev.Bandwidth(); err == nil ||
		!strings.Contains(err.Error(), "measure the bandwidth: cuMemcpyDtoDAsync_v2") {
		t.Errorf("%v", err)
	}
}

// TestWhole: every point is run or says why not, on a card with room for some of them.
func TestWhole(t *testing.T) {
	f, err := drivertest.Open(driver.CUDA, drivertest.Machine{Devices: 1, Name: "Fake", Major: 9,
		Memory: 8 << 20})
	hosttest.Check(t, err)
	dev := hosttest.Must(Open(f.Driver, Options{}))(t)
	defer closeAll(t, dev, f)
	spec := modeltest.Tiny()
	spec.MaxPosition = 4096
	ckpt := hosttest.Must(checkpoint.Synthetic(spec, 1))(t)
	defer ckpt.Close()
	points := []Point{{1, 2, 0}, {1, 1, 100}, {2, 1, 0}, {16, 1, 3500}, {1, 1, 5000}}
	var got []Speed
	hosttest.Check(t, MeasureModel(t.Context(), dev, ckpt, engine.Settings{}, points, 1,
		func(s Speed) { got = append(got, s) }))
	for i, s := range got {
		ran := i < 3
		if s.Point != points[i] || (s.TokensPerSecond > 0) != ran || (s.GBs > 0) != ran ||
			(s.Skipped == "") != ran {
			t.Errorf("%+v", s)
		}
	}
	if len(got) != len(points) || got[3].Skipped != "its KV cache does not fit" {
		t.Errorf("%+v", got)
	}
	if points := Points(); len(points) != 11 {
		t.Errorf("%d points", len(points))
	}
	// By hand: 32,769 positions take 1,025 pages of the full layers, and those from 32,641 on, of
	// which 32 fill a page, six of the window layers.
	if n := (Point{64, 1, 32 << 10}).pages(models.Spec20B(), "bf16"); n != 64*(1025+5) {
		t.Errorf("%d pages", n)
	}
}

// TestMatrixRates: every unit and every product of a card is timed, and a call that fails is
// reported.
func TestMatrixRates(t *testing.T) {
	units := map[string]string{"bf16, three terms": "bf16 by a warp", "bf16": "bf16 by a warp",
		"8-bit weights":               "bf16 by a warp",
		"bf16 by warpgroups":          "bf16 by a warpgroup",
		"MXFP4 by two terms of MXFP4": "MXFP4 by MXFP4"}
	for arch, want := range map[string]int{"sm_80": 3, "sm_90": 4, "sm_120": 4} {
		t.Run(arch, func(t *testing.T) {
			dev, f, err := openCard(t, arch, nil)
			hosttest.Check(t, err)
			rates, err := dev.MatrixRates()
			if err != nil || len(rates) != want {
				t.Fatalf("%v, %v", rates, err)
			}
			for _, r := range rates {
				if r.Side < 128 || r.TFLOPs <= 0 || r.UnitTFLOPs <= 0 ||
					r.Percent != 100*r.TFLOPs/r.UnitTFLOPs || r.Unit != units[r.Product] {
					t.Errorf("%+v", r)
				}
			}
			f.FailCall("cuLaunchKernel", 1, 46)
			if _, err := dev.MatrixRates(); err == nil ||
				!strings.Contains(err.Error(),
					"measure the unit for bf16 by a warp: kernel matrix_rate") {
				t.Errorf("%v", err)
			}
		})
	}
}
