package cli

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/detect"
)

// TestPrintedGPUs: of several GPUs each line has the number that --gpu wants; of one there is nothing to choose.
func TestPrintedGPUs(t *testing.T) {
	zero, one := 0, 1
	list := []detect.GPU{{Name: "RTX 4090", BDF: "0000:1b:00.0", Usable: true, Number: &one}, {Name: "H200", BDF: "0000:3b:00.0", Usable: true, Number: &zero}}
	var text strings.Builder
	printGPUs(&text, detect.Report{GPUs: list})
	if want := "gpus\tRTX 4090: --gpu 1, at 0000:1b:00.0\n\tH200: --gpu 0, at 0000:3b:00.0\n"; text.String() != want {
		t.Errorf("%q, not %q", text.String(), want)
	}
	text.Reset()
	printGPUs(&text, detect.Report{GPUs: list[1:]})
	if want := "gpus\tH200: at 0000:3b:00.0\n"; text.String() != want {
		t.Errorf("%q, not %q", text.String(), want)
	}
}
