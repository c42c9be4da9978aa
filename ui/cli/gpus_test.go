package cli

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
)

// TestPrintedGPUs: of several GPUs each line has the number that --gpu wants; of one there is
// nothing to choose.
func TestPrintedGPUs(t *testing.T) {
	zero, one := 0, 1
	list := []detect.GPU{{Name: "RTX 4090", BDF: "0000:1b:00.0", Usable: true, Number: &one},
		{Name: "H200", BDF: "0000:3b:00.0", Usable: true, Number: &zero}}
	var text strings.Builder
	printGPUs(&report{Writer: &text}, detect.Result{GPUs: list})
	if want := "gpus\tRTX 4090: --gpu 1, at 0000:1b:00.0\n\tH200: --gpu 0, at 0000:3b:00.0\n"; text.String() != want {
		t.Errorf("%q, not %q", text.String(), want)
	}
	text.Reset()
	printGPUs(&report{Writer: &text}, detect.Result{GPUs: list[1:]})
	if want := "gpus\tH200: at 0000:3b:00.0\n"; text.String() != want {
		t.Errorf("%q, not %q", text.String(), want)
	}
}

// TestPrintedFacts: figures without a source are "about", a link is printed if there are several
// cards, a reason that is a problem is printed once, and a GPU without a name gets one.
func TestPrintedFacts(t *testing.T) {
	problem := detect.Problem{Vendor: detect.AMD, Code: "x", Text: "It is off.",
		Remedy: "turn it on"}
	r := detect.Result{Problems: []detect.Problem{problem}, GPUs: []detect.GPU{
		{Vendor: detect.AMD, Name: "R9700", Usable: true, Figures: &detect.Figures{Bandwidth: 640,
			BF16: 191, PeerLink: "nvlink", About: []string{"bandwidth_gbs"}}},
		{Vendor: detect.AMD, PCI: "1002:74a2", Linked: []string{"a", "b"},
			Figures: &detect.Figures{PeerLink: "xgmi"}, Reason: problem.Text},
		{Vendor: detect.NVIDIA, Name: "T4", Reason: "too old"},
	}}
	var text strings.Builder
	printGPUs(&report{Writer: &text}, r)
	want := "gpus\tR9700: about 640 GB/s, 191 bf16 TFLOP/s, nvlink\n\tAMD GPU 1002:74a2: xgmi to " +
		"2 others, not used, see problems\n\tT4: not used: too old\nproblems\tIt is off: turn it " +
		"on\n"
	if text.String() != want {
		t.Errorf("%q, not %q", text.String(), want)
	}
	if got := shortWhy("no GPU is used: It is off: turn it on (x)",
		r.Problems); got != "no GPU is used, see problems (x)" {
		t.Errorf("%q", got)
	}
	if got := shortWhy("asked for", r.Problems); got != "asked for" {
		t.Errorf("%q", got)
	}
}

// TestDoctorSeesANamedLibrary: the cards of an explicitly named driver library are in the report
// with their free memory, and so are the models' plans on the named ones.
func TestDoctorSeesANamedLibrary(t *testing.T) {
	drivertest.Use(t, drivertest.Machine{Devices: 2, Name: "Fake H100", Major: 9, Memory: 90 << 30})
	r := doctorJSON(t, exitOK)
	if len(r.GPUs.GPUs) != 2 || len(r.GPUs.Problems) > 0 {
		t.Fatalf("%+v", r.GPUs)
	}
	for i, g := range r.GPUs.GPUs {
		if g.Name != "Fake H100" || g.MemoryMiB != 90<<10 || g.FreeMiB <= 0 ||
			g.FreeMiB > g.MemoryMiB || !g.Usable || g.Number == nil || *g.Number != i {
			t.Errorf("%+v", g)
		}
	}
	for _, m := range r.Models {
		if !strings.Contains(m.GPUs, "on GPU 0 (") {
			t.Errorf("%s: %q", m.Name, m.GPUs)
		}
	}
	r = doctorJSON(t, exitOK, "--gpu", "1")
	for _, m := range r.Models {
		if !strings.Contains(m.GPUs, "on GPU 1 (") || strings.Contains(m.GPUs, "on GPU 0 (") {
			t.Errorf("--gpu 1, %s: %q", m.Name, m.GPUs)
		}
	}
}
