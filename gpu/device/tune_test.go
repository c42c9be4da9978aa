package device

import (
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The card decides: kernels whose times the fake's clock has been given, and what steps then use.

// tuneSmall lets tests time a model of few experts.
func tuneSmall(t *testing.T, rows ...int) {
	model, all := tunedModel, tunedRows
	tunedModel, tunedRows = func() models.Spec {
		s := modeltest.Tiny()
		s.MaxPosition = 300
		return s
	}, rows
	t.Cleanup(func() { tunedModel, tunedRows = model, all })
}

// TestTheCardDecides: by bucket, but for all steps of few rows alike; a variable overrides it, and
// what is wrong is neither timed nor used.
func TestTheCardDecides(t *testing.T) {
	tuneSmall(t, 1, 4, 16, 32)
	dev, f := open(t, driver.CUDA)
	cost := map[string]time.Duration{"decode_gate_up": 10, "decode_down": 10, "combine": 1,
		"stream_gate_up_8_2": 8, "stream_down_8_2": 8,
		"decode_qkv_bf16_1": 3, "decode_qkv_bf16_4": 12, "decode_qkv_bf16_8": 4,
		"prefill_gate_up_wgmma": 20, "prefill_down_wgmma": 20,
		"stream_gate_up_wgmma_16": 30, "stream_down_wgmma_16": 30,
		"stream_gate_up_wgmma_24": 30, "stream_down_wgmma_24": 30,
		"stream_gate_up_wgmma_32": 30, "stream_down_wgmma_32": 30,
		"stream_gate_up_16": 10, "stream_down_16": 10, // 16 rows of the tiny model
		"stream_gate_up_32": 32, "stream_down_32": 32} // 32 rows
	for kernel, n := range cost {
		f.Cost(kernel, n*time.Microsecond)
	}
	list, err := dev.Tune(t.Context())
	hosttest.Check(t, err)
	of := func(part string) (own []Timing) {
		for _, x := range list {
			if x.Part == part {
				own = append(own, x)
			}
		}
		return own
	}
	if dense := of("dense"); len(dense) != 10 || dense[0].Kernels != DecodeQKV || dense[0].Chosen ||
		dense[1].Kernels != QKVUnit || !dense[1].Chosen ||
		dense[4].Kernels != PrefillQKV || dense[5].Kernels != "half_pieces" ||
		dense[9].Kernels != "twice_pieces" {
		t.Errorf("%+v", dense)
	}
	experts := of("experts")
	for i, want := range []Timing{{"experts", 1, DecodeGateUp, 20, 0, false},
		{"experts", 1, StreamGateUp, 17, 0, true},
		{"experts", 4, DecodeGateUp, 20, 0, false}, {"experts", 4, StreamGateUp, 17, 0, true},
		{"experts", 16, "prefill_gate_up_wgmma", 41, 0, false},
		{"experts", 16, "stream_gate_up_bf16", 21, 0, true},
		{"experts", 16, "stream_gate_up_wgmma", 61, 0, false},
		{"experts", 32, "prefill_gate_up_wgmma", 41, 0, true},
		{"experts", 32, "stream_gate_up_bf16", 65, 0, false},
		{"experts", 32, "stream_gate_up_wgmma", 61, 0, false}} {
		if i >= len(experts) {
			t.Fatalf("%v", experts)
		}
		got := experts[i]
		if got.Rate <= 0 {
			t.Errorf("%+v", got)
		}
		if got.Rate = 0; got != want {
			t.Errorf("%+v, not %+v", got, want)
		}
	}
	uses := func(dev *Device, rows int, kernel string) {
		t.Helper()
		o := engine.Settings{Pages: 4, Compute: engine.Rounded}
		if got := shown(compiled(t, dev, o, rows), 0); !strings.Contains(got, kernel+":") {
			t.Errorf("%d rows: %s", rows, got)
		}
	}
	uses(dev, 1, "decode_gate_up")
	uses(dev, 4, "decode_qkv")
	dev.Choose(list)
	uses(dev, 4, "decode_qkv_unit")
	uses(dev, 4, "decode_linear_unit")
	for rows, kernel := range map[int]string{1: "stream_gate_up", 2: "stream_down",
		8: "decode_gate_up", 12: "stream_gate_up_bf16", 16: "stream_down_bf16",
		20: "prefill_gate_up_wgmma", 64: "prefill_gate_up_wgmma"} {
		uses(dev, rows, kernel)
	}
	dev.forced = []Variant{DecodeGateUp}
	uses(dev, 4, "decode_gate_up")
	dev.forced = nil
	dev.Disable(StreamGateUp)
	uses(dev, 4, "decode_gate_up")
	list, err = dev.Tune(t.Context())
	if experts := of("experts"); err != nil || len(experts) != 8 ||
		experts[0].Kernels != DecodeGateUp || !experts[0].Chosen {
		t.Errorf("%+v %v", list, err)
	}
}

// TestCutsOfK: the number of pieces of k is a way too, of steps of many rows and of no steady one.
func TestCutsOfK(t *testing.T) {
	dev, _ := openWith(t, driver.CUDA, Options{Arch: "sm_90"})
	o := engine.Settings{Pages: 4, Compute: engine.Rounded}
	for way, n := range cuts {
		dev.Choose([]Timing{{"dense", 8, DecodeQKV, 9, 0, true}, {"dense", 16, way, 9, 0, true},
			{"dense", 2048, PrefillQKV, 9, 0, true}})
		for rows, want := range map[int]int{8: 0, 16: n, 64: 0} {
			if got := compiled(t, dev, o, rows).target().Cut; got != want {
				t.Errorf("%s, %d rows: %d", way, rows, got)
			}
		}
		steady := o
		steady.Deterministic = true
		if got := compiled(t, dev, steady, 16).target().Cut; got != 0 {
			t.Errorf("%s, a steady step: %d", way, got)
		}
	}
}

// TestARowOfFewCounts: a way that is slower with one row must gain more than that with several.
func TestARowOfFewCounts(t *testing.T) {
	for _, several := range []float64{42, 140} {
		list := []Timing{{"dense", 1, DecodeQKV, 20, 0, false}, {"dense", 1, QKVUnit, 28, 0, false},
			{"dense", 8, DecodeQKV, several, 0, false}, {"dense", 8, QKVUnit, 28, 0, false}}
		choose(list)
		if unit := several > 100; list[0].Chosen == unit || list[2].Chosen == unit ||
			list[1].Chosen != unit || list[3].Chosen != unit {
			t.Errorf("%v: %+v", several, list)
		}
	}
}

// TestAWayNeedsAllBuckets: one that failed in a bucket of few rows serves none of them, since those
// steps have the same bits.
func TestAWayNeedsAllBuckets(t *testing.T) {
	list := []Timing{{"experts", 1, DecodeGateUp, 20, 0, false},
		{"experts", 1, StreamGateUp, 10, 0, false}, {"experts", 8, DecodeGateUp, 90, 0, false},
		{"experts", 16, StreamGateUp + "_bf16", 10, 0, false}, {"dense", 8, QKVUnit, 5, 0, false}}
	choose(list)
	for i, want := range []bool{true, false, true, true, true} {
		if list[i].Chosen != want {
			t.Errorf("%+v", list[i])
		}
	}
}
