package kernels

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Every kernel runs by emulation against the reference of kerneltest, in both sizes of warp and in
// every layout of matrix fragments. The cases are written in C++; each becomes a subtest of its own
// here.
func TestEmulation(t *testing.T) {
	for _, layout := range []struct {
		name  string
		words []string // of the cases to run; none: all
		files string   // of the kernels; none: all
	}{{"nv", nil, ""}, {"cdna", nil, ""}, {"gfx11", []string{"matrix"},
		"matrix_rate.cu prefill.cu prefill_attend.cu prefill_q8.cu quantize.cu"},
		{"gfx12", []string{"matrix"},
			"matrix_rate.cu prefill.cu prefill_attend.cu prefill_q8.cu quantize.cu"}} {
		t.Run(layout.name, func(t *testing.T) {
			var errors bytes.Buffer
			command := exec.Command("kerneltest/run.sh", append([]string{layout.name},
				layout.words...)...)
			command.Stderr = &errors
			if layout.files != "" {
				command.Env = append(os.Environ(), "KERNELS="+layout.files)
			}
			out, err := command.Output()
			cases := 0
			for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
				verdict, rest, _ := strings.Cut(lines.Text(), " ")
				name, why, _ := strings.Cut(rest, " ")
				cases++
				t.Run(strings.TrimSuffix(name, ":"), func(t *testing.T) {
					if verdict != "ok" {
						t.Error(why)
					}
				})
			}
			if err != nil {
				t.Errorf("kerneltest: %v\n%s", err, errors.Bytes())
			}
			if cases == 0 {
				t.Error("no case ran")
			}
		})
	}
}
