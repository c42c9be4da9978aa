package driver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
)

// Opening a library, looking at devices, and what errors say.

func TestNoLibrary(t *testing.T) {
	for _, api := range []driver.API{driver.CUDA, driver.HIP} {
		_, err := driver.Open(api, "/nowhere/lib.so")
		if !errors.Is(err, driver.ErrNoLibrary) {
			t.Errorf("%s: %v", api, err)
		}
		contains(t, err, "/nowhere/lib.so")
	}
}

// TestWhyNoLibrary: the loader's words are those of this call, whatever other goroutines fail to
// open meanwhile and on whichever thread each runs.
func TestWhyNoLibrary(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range 32 {
		all.Go(func() {
			path := fmt.Sprintf("/nowhere/%d/lib.so", i)
			for range 200 {
				_, err := driver.Open(driver.CUDA, path)
				if err == nil || !strings.Contains(err.Error(), path) {
					t.Errorf("%v does not say %s", err, path)
					return
				}
			}
		})
	}
}

func TestNotADriver(t *testing.T) {
	path, err := drivertest.Build(driver.HIP)
	must(t, err)
	_, err = driver.Open(driver.CUDA, path)
	contains(t, err, "the NVIDIA driver library", "is too old: it has no cuInit")
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	must(t, os.WriteFile(text, []byte("not a library"), 0o644))
	if _, err := driver.Open(driver.CUDA, text); !errors.Is(err, driver.ErrNoLibrary) {
		t.Errorf("a text file: %v", err)
	}
}

func TestInitFails(t *testing.T) {
	path, err := drivertest.Build(driver.CUDA)
	must(t, err)
	f, err := drivertest.Open(driver.CUDA, drivertest.Machine{})
	must(t, err)
	defer f.Close()
	f.FailCall("cuInit", 1, 100)
	_, err = driver.Open(driver.CUDA, path)
	contains(t, err, "cuInit: no GPU is detected (ERROR_NO_DEVICE, 100)")
	if errors.Is(err, driver.ErrNoLibrary) {
		t.Error("a driver that is there counts as none")
	}
}

// TestGCNName: other text is not taken for a name.
func TestGCNName(t *testing.T) {
	for text, want := range map[string]string{"gfx942:sramecc+:xnack-\x00": "gfx942",
		"gfx1201\x00rest": "gfx1201", "gfx90a:xnack-\x00": "gfx90a",
		"gfx1201": "", "\x00": "", "": "", "gfx\x00": "", "gfx12\x00": "", "gfx12ox\x00": "",
		"sm_90\x00": "", "gfx12010101\x00": "", ":gfx942\x00": ""} {
		if got := driver.GCNName([]byte(text)); got != want {
			t.Errorf("%q is %q, not %q", text, got, want)
		}
	}
}

// TestArchOfProperties: a card that no kernel driver shows is named by the runtime.
func TestArchOfProperties(t *testing.T) {
	f, err := drivertest.Open(driver.HIP, drivertest.Machine{})
	must(t, err)
	defer f.Close()
	for _, x := range []struct {
		name, want string
		units      int
	}{{"", "", 20}, {"gfx1151", "gfx1151", 40}, {"gfx942:sramecc+:xnack-", "gfx942", 20}} {
		f.NameArch(x.name)
		g, err := f.Device(0)
		if err != nil || g.Arch != x.want {
			t.Fatalf("%q: %+v, %v", x.name, g, err)
		}
		// A Strix Halo's 40 compute units are 20 to the runtime, an MI300X's 304 are 304.
		if got := g.Units(20); got != x.units {
			t.Errorf("%q: 20 of the runtime's are %d units, not %d", x.name, got, x.units)
		}
	}
}

// TestOldHIP: a runtime that cannot read our code objects is refused before anything
// is asked of it.
func TestOldHIP(t *testing.T) {
	f, err := drivertest.Open(driver.HIP, drivertest.Machine{})
	must(t, err)
	defer f.Close()
	defer f.Restart() // the library stays loaded, and with its version no other test could open it
	for version, refused := range map[int]bool{50221153: true, 60032831: true, 60140091: false,
		70051831: false} {
		f.SetVersion(version)
		calls := f.Calls("hipInit")
		d, err := driver.Open(driver.HIP, f.Path)
		if refused != (err != nil) || refused != (f.Calls("hipInit") == calls) {
			t.Errorf("version %d: %v, initialised %d times", version, err, f.Calls("hipInit")-calls)
		}
		if err == nil {
			must(t, d.Close())
			continue
		}
		contains(t, err, "AMD's HIP runtime", ": 6.1 or newer is needed")
	}
}

// TestClosedLibraryStays: an initialised library is not unloaded, whether that worked or not.
func TestClosedLibraryStays(t *testing.T) {
	for _, api := range []driver.API{driver.CUDA, driver.HIP} {
		f, err := drivertest.Open(api, drivertest.Machine{Devices: 3, Name: "Kept", Major: 9,
			Memory: 1 << 30})
		must(t, err)
		must(t, f.Close())
		d, err := driver.Open(api, f.Path)
		must(t, err)
		if n, err := d.DeviceCount(); err != nil || n != 3 {
			t.Errorf("%s: a library that was opened again has %d devices, not those of before; %v",
				api, n, err)
		}
		must(t, errors.Join(d.Close(), d.Close()))
	}
}

func TestCandidatesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/gpu.md")
	must(t, err)
	for _, api := range []driver.API{driver.CUDA, driver.HIP} {
		for _, name := range driver.Candidates(api) {
			if !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/gpu.md does not name %s", name)
			}
		}
	}
}

func TestDevices(t *testing.T) {
	m := drivertest.Machine{Devices: 3, Name: "Fake Card", Major: 8, Minor: 6, Memory: 24 << 30}
	each(t, m, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		n, err := f.DeviceCount()
		if err != nil || n != 3 {
			t.Fatalf("%d devices, %v", n, err)
		}
		g, err := f.Device(2)
		must(t, err)
		if g.Name != "Fake Card" || g.Memory != 24<<30 || g.PCI != "0000:03:00.0" {
			t.Errorf("%+v", g)
		}
		if f.API() == driver.CUDA && g.Arch != "sm_86" {
			t.Errorf("architecture %q", g.Arch)
		}
		warp, err := g.Attribute(driver.WarpSize)
		if want := map[driver.API]int{driver.CUDA: 32, driver.HIP: 64}[f.API()]; err != nil ||
			warp != want {
			t.Errorf("warps of %d, %v", warp, err)
		}
		if _, err := f.Device(3); code(err) != 101 {
			t.Errorf("a fourth of three: %v", err)
		}
		if v, err := f.Version(); err != nil || v < 12000 {
			t.Errorf("version %d, %v", v, err)
		}
	})
}

func TestErrorWords(t *testing.T) {
	each(t, drivertest.Machine{Devices: 1, Name: "Small", Major: 9, Memory: 1 << 20},
		func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
			_, err := c.Alloc(1 << 30)
			if !errors.Is(err, driver.ErrOutOfMemory) || code(err) != 2 {
				t.Errorf("%v", err)
			}
			contains(t, err, "allocate 1073741824 bytes on Small", f.Trace()[len(f.Trace())-1]+
				": out of memory (ERROR_OUT_OF_MEMORY, 2)")
			f.FailCall("", 1, 12345)
			_, err = c.Alloc(1)
			contains(t, err, "12345")
		})
}

// TestEveryCallCanFail: each function, told to fail, gives its name and code, and the next call
// works again.
func TestEveryCallCanFail(t *testing.T) {
	each(t, drivertest.Machine{Devices: 2, Name: "Fake", Major: 9, Memory: 1 << 30},
		func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
			g := c.Device()
			b := newBench(t, c, 256)
			other := context(t, f, 1)
			m, _ := kernel(t, f, c, "copy_rows")
			e, err := c.NewEvent(true)
			must(t, err)
			for name, try := range map[string]func() error{
				"Version":     func() error { _, err := f.Version(); return err },
				"DeviceCount": func() error { _, err := f.DeviceCount(); return err },
				"Device":      func() error { _, err := f.Device(0); return err },
				"Attribute":   func() error { _, err := g.Attribute(driver.WarpSize); return err },
				"Memory":      func() error { _, _, err := c.Memory(); return err },
				"Alloc":       func() error { _, err := c.Alloc(1); return err },
				"AllocHost":   func() error { _, err := c.AllocHost(1); return err },
				"Load":        func() error { _, err := c.Load(f.Image()); return err },
				"Function":    func() error { _, err := m.Function("copy_rows"); return err },
				"NewStream":   func() error { _, err := c.NewStream(); return err },
				"NewEvent":    func() error { _, err := c.NewEvent(false); return err },
				"CopyIn":      func() error { return b.s.CopyIn(b.device, b.host, 0, 1) },
				"CopyOut":     func() error { return b.s.CopyOut(b.host, 0, b.device, 1) },
				"Copy":        func() error { return b.s.Copy(b.device, b.device+8, 1) },
				"CopyPeer":    func() error { return b.s.CopyPeer(b.device, other, b.device+8, 1) },
				"Fill":        func() error { return b.s.Fill(b.device, 1, 1) },
				"Wait":        func() error { return b.s.Wait(e) },
				"Record":      func() error { return e.Record(b.s) },
				"Synchronize": func() error { return b.s.Synchronize() },
				"Event":       func() error { return e.Synchronize() },
				"Capture": func() error {
					_,
						err := b.s.Capture(func() error { return nil })
					return err
				},
			} {
				f.FailCall("", 1, 700)
				if err := try(); code(err) != 700 {
					t.Errorf("%s: %v", name, err)
				}
				if f.Failing() {
					t.Errorf("%s calls nothing", name)
				}
			}
			must(t, errors.Join(e.Close(), m.Close()))
			b.close(t)
			must(t, other.Close())
		})
}
