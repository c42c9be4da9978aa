package serve

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu"
)

// TestIsolateNothing: without a GPU one line says that --isolate has no effect.
func TestIsolateNothing(t *testing.T) {
	t.Setenv("OSSRUN_LIBCUDA", "")
	t.Setenv("OSSRUN_LIBAMDHIP64", "")
	if len(gpu.Detect(t.Context()).GPUs) > 0 {
		t.Skip("this machine has a driver")
	}
	for _, args := range [][]string{{"--isolate"}, {"--isolate", "--device", "cpu"}} {
		name, said, err := opened(t, args...)
		if err != nil || !strings.HasPrefix(name, "cpu") ||
			said != "--isolate has no effect: it is for GPUs, and the CPU computes here, in this "+
				"process\n" {
			t.Errorf("%v: %q, said %q, %v", args, name, said, err)
		}
	}
	if _, _, err := opened(t, "--isolate", "--device", "gpu"); err == nil ||
		!strings.HasPrefix(err.Error(), "no GPU driver is installed. ") {
		t.Error(err)
	}
}
