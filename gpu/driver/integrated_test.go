package driver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
)

// TestSharedMemory: of a device that shares the host's memory what the host could give is free,
// never more than there is; others keep to their driver.
func TestSharedMemory(t *testing.T) {
	const device = 1 << 30
	each(t, drivertest.Machine{Devices: 1, Name: "Fake", Major: 12, Minor: 1, Memory: device},
		func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
			const taken = 600 << 20 // by the file of a model, as its driver sees it
			p, err := c.Alloc(taken)
			must(t, err)
			path := filepath.Join(t.TempDir(), "meminfo")
			driver.SetMeminfo(t, path)
			for _, x := range []struct {
				integrated, refuses bool
				text                string
				want                int64
			}{
				{false, false, "MemAvailable: 900000 kB\n", device - taken},
				{true, false, "MemTotal: 1048576 kB\nMemAvailable: 900000 kB\n", 900000 << 10},
				{true, false, "MemAvailable: 2000000 kB\n", device},
				{true, false, "MemAvailable: 1000 kB\n", device - taken},
				{true, false, "MemFree: 1000 kB\nMemAvailable: many kB\n", device - taken},
				{true, true, "MemAvailable: 900000 kB\n", 900000 << 10},
			} {
				must(t, os.WriteFile(path, []byte(x.text), 0o644))
				if x.integrated {
					f.Integrate()
				}
				if f.API() == driver.HIP {
					x.want, x.refuses = device-taken, false
				}
				if x.refuses {
					f.FailCall("cuMemGetInfo_v2", 1, 801)
				}
				if total, free, err := c.Memory(); err != nil || total != device || free != x.want {
					t.Errorf("%+v: %d of %d are free, %v", x, free, total, err)
				}
			}
			f.FailCall("", 1, 700)
			if _, _, err := c.Memory(); code(err) != 700 {
				t.Errorf("a lost card has memory: %v", err)
			}
			must(t, c.Free(p))
		})
}
