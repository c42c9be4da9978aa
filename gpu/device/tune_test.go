package device

import (
	"slices"
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

// TestTheCardDecides: by bucket; a variable overrides it, and what is wrong is neither timed nor
// used.
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
	if dense := of("dense"); len(dense) != 10 || dense[0].Kernels != DecodeQKV ||
		!dense[0].Chosen || dense[1].Kernels != QKVUnit || dense[1].Chosen || dense[2].Chosen ||
		!dense[3].Chosen || dense[4].Kernels != PrefillQKV || dense[5].Kernels != "half_pieces" ||
		dense[9].Kernels != "twice_pieces" {
		t.Errorf("%+v", dense)
	}
	experts := of("experts")
	for i, want := range []Timing{{"experts", 1, DecodeGateUp, 20, 0, false},
		{"experts", 1, StreamExperts, 17, 0, true},
		{"experts", 4, DecodeGateUp, 20, 0, false}, {"experts", 4, StreamExperts, 17, 0, true},
		{"experts", 16, "prefill_gate_up_wgmma", 41, 0, false},
		{"experts", 16, "stream_experts_bf16", 21, 0, true},
		{"experts", 16, "stream_experts_wgmma", 61, 0, false},
		{"experts", 32, "prefill_gate_up_wgmma", 41, 0, true},
		{"experts", 32, "stream_experts_bf16", 65, 0, false},
		{"experts", 32, "stream_experts_wgmma", 61, 0, false}} {
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
	uses(dev, 1, "decode_qkv")
	uses(dev, 4, "decode_qkv_unit")
	uses(dev, 4, "decode_linear_unit")
	for rows, kernel := range map[int]string{1: "stream_experts", 2: "stream_experts",
		8: "decode_gate_up", 12: "stream_experts_bf16", 16: "stream_experts_bf16",
		20: "prefill_gate_up_wgmma", 64: "prefill_gate_up_wgmma"} {
		uses(dev, rows, kernel)
	}
	dev.forced = []Variant{DecodeGateUp}
	uses(dev, 4, "decode_gate_up")
	dev.forced = nil
	dev.Disable(StreamExperts)
	uses(dev, 4, "decode_gate_up")
	list, err = dev.Tune(t.Context())
	if experts := of("experts"); err != nil || len(experts) != 8 ||
		experts[0].Kernels != DecodeGateUp || !experts[0].Chosen {
		t.Errorf("%+v %v", list, err)
	}
}

// TestTheRouterByTimes: steps of many rows have the way that the card timed faster in their bucket;
// steady ones and those of few rows have decode_route, and so has a card without times.
func TestTheRouterByTimes(t *testing.T) {
	tuneSmall(t, 8, 16, 300)
	dev, f := openWith(t, driver.CUDA, Options{Arch: "sm_80"}) // norm is a launch of its own
	for kernel, n := range map[string]time.Duration{"decode_route": 5, "norm": 1,
		"prefill_linear_3": 1, "route_choose": 1, "route_group": 1} {
		f.Cost(kernel, n*time.Microsecond)
	}
	list, err := dev.Tune(t.Context())
	hosttest.Check(t, err)
	list = slices.DeleteFunc(list, func(x Timing) bool { return x.Part != "router" })
	if !slices.EqualFunc(list, []Timing{{"router", 8, DecodeRoute, 5, 0, true},
		{"router", 16, DecodeRoute, 5, 0, false}, {"router", 16, PrefillLinear, 4, 0, true},
		{"router", 300, PrefillLinear, 4, 0, true}}, func(got, want Timing) bool {
		want.Rate = got.Rate
		return got == want && got.Rate > 0
	}) {
		t.Errorf("%+v", list)
	}
	for _, x := range []struct {
		list   []Timing
		forced []Variant
		rows   int
		steady bool
		router Variant
	}{
		{nil, nil, 16, false, DecodeRoute}, {list, nil, 16, false, PrefillLinear},
		{list, nil, 8, false, DecodeRoute}, {list, nil, 16, true, DecodeRoute},
		{list, []Variant{DecodeRoute}, 16, false, DecodeRoute},
		{nil, []Variant{PrefillLinear}, 16, false, PrefillLinear},
		{list, nil, 300, false, PrefillLinear},
		{nil, []Variant{PrefillLinear}, 8, false, DecodeRoute},
	} {
		dev.Choose(x.list)
		dev.forced = x.forced
		got := shown(compiled(t, dev, engine.Settings{Pages: 4, Compute: engine.Rounded,
			MaxNumBatchedTokens: 300, Deterministic: x.steady}, x.rows), 0)
		if strings.Contains(got, string(DecodeRoute)+":") != (x.router == DecodeRoute) ||
			strings.Contains(got, string(PrefillLinear)+":") != (x.router == PrefillLinear) {
			t.Errorf("%d rows, steady %v: %s", x.rows, x.steady, got)
		}
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

// TestWaysOnTheH200: each bucket has its own by the H200's times of 2026-11-29; with drafts that of
// one row, by which the text without them was made, serves all few.
func TestWaysOnTheH200(t *testing.T) {
	var list []Timing
	for _, x := range []struct {
		rows                         int
		qkv, unit, experts, streamed float64
	}{{1, 19.49, 27.14, 48.11, 43.42}, {2, 28.9, 27.7, 70.96, 56.5},
		{4, 28.53, 27.78, 125.22, 81.22}, {8, 41.74, 28.26, 228.86, 103.5}} {
		list = append(list, Timing{"dense", x.rows, DecodeQKV, x.qkv, 0, false},
			Timing{"dense", x.rows, QKVUnit, x.unit, 0, false},
			Timing{"experts", x.rows, DecodeGateUp, x.experts, 0, false},
			Timing{"experts", x.rows, StreamExperts, x.streamed, 0, false})
	}
	choose(list)
	dev, _ := openWith(t, driver.CUDA, Options{Arch: "sm_90"})
	dev.Choose(list)
	for drafts, all := range [][]Variant{{DecodeQKV, QKVUnit, QKVUnit, QKVUnit},
		{DecodeQKV, DecodeQKV, DecodeQKV, DecodeQKV}} {
		for i, want := range all {
			o := engine.Settings{Pages: 4, Compute: engine.Rounded, Drafts: drafts}
			got := shown(compiled(t, dev, o, 1<<i), 0)
			if !strings.Contains(got, string(want)+":") ||
				!strings.Contains(got, string(StreamExperts)+":") {
				t.Errorf("%d rows, %d drafts: %s", 1<<i, drafts, got)
			}
		}
	}
}

// TestAWayNeedsAllBuckets: one that failed in a bucket of few rows serves none of them, since those
// steps have the same bits with drafts.
func TestAWayNeedsAllBuckets(t *testing.T) {
	list := []Timing{{"experts", 1, DecodeGateUp, 20, 0, false},
		{"experts", 1, StreamExperts, 10, 0, false}, {"experts", 8, DecodeGateUp, 90, 0, false},
		{"experts", 16, StreamExperts + "_bf16", 10, 0, false}, {"dense", 8, QKVUnit, 5, 0, false}}
	choose(list)
	for i, want := range []bool{true, false, true, true, true} {
		if list[i].Chosen != want {
			t.Errorf("%+v", list[i])
		}
	}
}
