package device

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
)

const scratch = "HSA_NO_SCRATCH_RECLAIM"

// instinct is the files of a machine with one MI300X and firmware of this version.
func instinct(firmware string) fs.FS {
	node := "sys/class/kfd/kfd/topology/nodes/1/properties"
	return fstest.MapFS{node: {Data: []byte("simd_count 1216\nsimd_per_cu 4\ngfx_target_version " +
		"90402\ndevice_id 29857\nlocation_id 1280\nfw_version " + firmware + "\n")}}
}

// TestEnvironment: old firmware gets its variable, whatever way its card is opened, before AMD's
// library is; new firmware does not, and the user's own word stays.
func TestEnvironment(t *testing.T) {
	for name, x := range map[string]struct {
		files      fs.FS
		have, want string
	}{
		"old firmware":                  {instinct("166"), "", "1"},
		"old firmware, set by the user": {instinct("166"), "0", "0"},
		"new firmware":                  {instinct("177"), "", ""}, "no files": {nil, "", ""},
		"no card": {fstest.MapFS{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(scratch, x.have) // puts it back afterwards
			if x.have == "" {
				os.Unsetenv(scratch)
			}
			setVariables(x.files)
			if got := os.Getenv(scratch); got != x.want {
				t.Errorf("%s is %q, not %q", scratch, got, x.want)
			}
		})
	}
}

// TestEnvironmentOfACard: every way to a card goes through it, and only for AMD.
func TestEnvironmentOfACard(t *testing.T) {
	files := machineFiles
	t.Cleanup(func() { machineFiles = files })
	machineFiles = instinct("166")
	for _, api := range []driver.API{driver.CUDA, driver.HIP} {
		f, err := drivertest.Open(api, drivertest.Machine{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range Libraries {
			path := "/nowhere/lib.so"
			if l.API == api {
				path = f.Path
			}
			t.Setenv(l.Variable, path)
		}
		t.Setenv(scratch, "")
		os.Unsetenv(scratch)
		if n := Count(); n != 1 {
			t.Fatalf("%s: %d cards", api, n)
		}
		// The other vendor's library is asked for as well, and is not there.
		if got := os.Getenv(scratch); got != "1" {
			t.Errorf("%s: %s is %q", api, scratch, got)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
