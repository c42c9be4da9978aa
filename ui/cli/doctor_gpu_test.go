package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
)

// TestSelftestGPU: the self-test's every part on a tiny shape, through the fake driver. Its figures
// are those of an emulation.
func TestSelftestGPU(t *testing.T) {
	drivertest.Long(t)
	drivertest.Use(t, drivertest.Machine{Devices: 1, Name: "Fake H100", Major: 9, Memory: 64 << 20})
	dev, _, err := serve.Open(t.Context(), engine.Settings{Device: "gpu"}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	shape := enginetest.Small()[2:3]
	spec := modeltest.Tiny()
	spec.MaxPosition = 4096
	var r doctor.Report
	var out, lines bytes.Buffer
	screen, line, order := (&selftestScreen{out: &out}).show, selftestLines(&lines), []string{}
	err = r.SelftestGPU(t.Context(), dev.(*gpu.Backend), doctor.Extent{Shapes: shape, Timed: shape,
		WholeModel: spec, Rounds: 1, WidthRows: []int{1, 17}, Times: 2,
		Points: []device.Point{{Sequences: 1, Rows: 2}, {Sequences: 1, Rows: 1, Context: 5000}}},
		func(what any) {
			screen(what)
			line(what)
			order = append(order, fmt.Sprintf("%T", what))
			if row, is := what.(doctor.SelftestRow); is && len(r.Selftest) > 0 &&
				r.Selftest[len(r.Selftest)-1].Op != row.Op {
				t.Errorf("%s is shown when %d rows are known", row.Op, len(r.Selftest))
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(order); n < 5 || !slices.Equal(order[n-2:], []string{"device.Speed",
		"doctor.Verdict"}) {
		t.Errorf("%q", order)
	}
	n := 0
	for line := range strings.Lines(lines.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil || len(v) != 1 || v[""] != nil {
			t.Errorf("%s: %v", line, err)
		}
		n++
	}
	if n != len(order) {
		t.Errorf("%d lines of %d results", n, len(order))
	}
	if r.Passed == nil || !*r.Passed || !strings.HasSuffix(out.String(), "selftest: passed\n") {
		t.Errorf("%s", out.String())
	}
	if len(r.Selftest) < 23 || r.WholeModels == nil || len(r.WholeModels.Points) != 2 ||
		r.WholeModels.Bandwidth <= 0 {
		t.Errorf("%d operations, %+v", len(r.Selftest), r.WholeModels)
	}
	if len(r.Width) != 2 || len(r.Width[0].Proofs) < 5 || len(r.Width[1].Proofs) < 4 ||
		!strings.Contains(out.String(), "'s width, up to 17 rows, 2 times: ") ||
		!strings.Contains(out.String(), "\nmany rows, warpgroups: ") {
		t.Errorf("%+v\n%s", r.Width, out.String())
	}
	if len(r.Matrix) != 4 || strings.Count(out.String(), "%  bf16 by a warp, ") != 3 ||
		strings.Count(out.String(), "%  bf16 by a warpgroup, ") != 1 {
		t.Errorf("%v", r.Matrix)
	}
	if mx := 2; len(r.Kernels) != len(device.Variants())-mx ||
		!strings.Contains(out.String(), "prefill_down") {
		t.Errorf("%d kernels were proved: %s", len(r.Kernels), out.String())
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > reportWidth+1 {
			t.Errorf("wider than a terminal: %q", line)
		}
	}
	for _, p := range r.Kernels {
		want := strings.HasPrefix(string(p.Variant), "prefill_")
		if (p.Fragments == "exact") != want {
			t.Errorf("%+v", p)
		}
	}
	for i, p := range r.WholeModels.Points {
		if ran := i == 0; (p.TFLOPs > 0) != ran || (p.Skipped == "") != ran {
			t.Errorf("%+v", p)
		}
	}
	for _, row := range r.Selftest {
		if matrix := strings.HasPrefix(row.Op, "linear") ||
			strings.HasPrefix(row.Op, "down"); matrix && row.PercentOfMatrix <= 0 {
			t.Errorf("%+v", row)
		}
		if !row.OK || row.Skipped != "" || row.GBs <= 0 || row.Percent <= 0 || row.ISA != "sm_90" {
			t.Errorf("%+v", row)
		}
	}
}

// memoryOf is a device of which only the free memory is asked.
type memoryOf struct {
	engine.Device
	free int64
}

func (m memoryOf) Memory() (total, free int64) { return m.free, m.free }
func (m memoryOf) Caps() engine.Caps           { return engine.Caps{} }

// integratedOf is one whose memory is the host's.
type integratedOf struct{ memoryOf }

func (integratedOf) Caps() engine.Caps { return engine.Caps{Integrated: true} }

// TestSelftestExtent: the whole model has the layers that the card has room for, and the host while
// one is made. By hand: 2.317e9 bytes of embeddings, 0.477e9 a layer.
func TestSelftestExtent(t *testing.T) {
	card := func(mib int64) engine.Device {
		return memoryOf{free: device.Available(mib<<20,
			(mib-300)<<20)}
	}
	host := memoryOf{free: 64 << 30}
	for name, x := range map[string]struct {
		dev, host engine.Device
		layers    int
	}{
		"H200": {card(143771), host, 24}, "16 GB": {card(16376), host, 24}, "12 GB": {card(12288),
			host, 14}, "8 GB": {card(8188), host, 6}, "4 GB": {card(4096), host, 0},
		"H200 in a small host": {card(143771), memoryOf{free: 4 << 30}, 24},
		"no room in the host":  {card(143771), memoryOf{free: 3 << 30}, 0},
		"shared": {integratedOf{memoryOf{free: 20 << 30}}, memoryOf{free: 20 << 30},
			24},
	} {
		got := doctor.FullExtent(x.dev, x.host)
		if got.WholeModel.Layers != x.layers || len(got.Points) != 11 || len(got.Shapes) == 0 ||
			len(got.Timed) != 2 {
			t.Errorf("%s: %d layers, want %d; %d points", name, got.WholeModel.Layers, x.layers,
				len(got.Points))
		}
	}
}

// TestWrongKernelIsShown: a wrong kernel is in the table with its replacement, and the check fails.
func TestWrongKernelIsShown(t *testing.T) {
	var out bytes.Buffer
	proofs := doctor.Proofs{
		{Variant: device.Attend, Error: 1e-7, Bound: 2e-5, OK: true},
		{Variant: device.DecodeDown, Error: 0.5, Bound: 2e-5, Why: "x differs"},
		{Variant: device.PrefillDown, Error: 1e-6, Bound: 2e-5, OK: true, Fragments: "exact"},
	}
	(&selftestScreen{out: &out}).show(proofs)
	want := "decode_down             5.0e-01  2.0e-05  FAILED, the reference kernels take its " +
		"place: x differs\nprefill_down            1.0e-06  2.0e-05     exact\n"
	if proofs.OK() || !strings.HasSuffix(out.String(), want) ||
		strings.Count(out.String(), "FAILED") != 1 {
		t.Error(out.String())
	}
	data, err := json.Marshal(doctor.Report{Kernels: proofs})
	if err != nil || !bytes.Contains(data, []byte(`"kernels":[{"variant":"decode_attend"`)) {
		t.Errorf("%v: %s", err, data)
	}
}

// TestDoctorShowsTimings: the long report has each way's time and which is used.
func TestDoctorShowsTimings(t *testing.T) {
	r := recordedMachine()
	r.Device = doctor.Device{Name: "H200", Kernels: "machine code", Timings: []device.Timing{
		{Part: "experts", Rows: 1, Kernels: "decode_gate_up", Micros: 33.7, Rate: 1600},
		{Part: "experts", Rows: 8, Kernels: "stream_experts", Micros: 104.25, Rate: 2690, Chosen: true}}}
	var out strings.Builder
	if err := printReport(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  1 row: experts by decode_gate_up 34 µs a layer, 1600 GB/s\n",
		"  8 rows: experts by stream_experts 104 µs a layer, 2690 GB/s, used\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	data, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(data), `"timings":[{"part":"experts","rows":1,`) {
		t.Errorf("%s, %v", data, err)
	}
}
