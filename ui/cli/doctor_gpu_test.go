package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver/fakedriver"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// TestSelftestGPU: the self-test's every part on a tiny shape, through the fake driver. Its figures are those of an emulation.
func TestSelftestGPU(t *testing.T) {
	fakeGPU(t, fakedriver.Machine{Devices: 1, Name: "Fake H100", Major: 9, Memory: 64 << 20})
	dev, err := openGPU(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	gpu := dev.(*gpuDevice)
	shape := enginetest.Small()[2:3]
	spec := modeltest.Tiny()
	spec.MaxPosition = 4096
	var r doctorReport
	var out bytes.Buffer
	err = r.selftestGPU(t.Context(), &out, gpu, gpuSelftest{shape, shape, spec, []device.Point{{Sequences: 1, Rows: 2}, {Sequences: 1, Rows: 1, Context: 5000}}, 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Passed == nil || !*r.Passed || !strings.HasSuffix(out.String(), "selftest: passed\n") {
		t.Errorf("%s", out.String())
	}
	if len(r.Selftest) < 19 || r.Whole == nil || len(r.Whole.Points) != 2 || r.Whole.Bandwidth <= 0 {
		t.Errorf("%d operations, %+v", len(r.Selftest), r.Whole)
	}
	for _, row := range r.Selftest {
		if !row.OK || row.GBs <= 0 || row.Percent <= 0 || row.ISA != "sm_90" {
			t.Errorf("%+v", row)
		}
	}
}
