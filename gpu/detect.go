package gpu

// Finds this machine's GPUs, for code that opens or shows one.
//
// The machine's files are read first. A driver is opened only where the files show a device for it,
// because opening AMD's runtime takes a fraction of a second and needs its environment set before.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/gpu/multi"
	"github.com/ossrun/ossrun/gpu/worker"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Detect detects this machine's GPUs, with the drivers' answers.
func Detect(ctx context.Context) detect.Result {
	device.SetEnvironment()
	m := detect.ThisMachine(askDriver)
	m.Runs = func(arch string) error { _, err := kernels.ArchFor(arch); return err }
	r := detect.Detect(ctx, m)
	r.ReadSensors(ctx, m)
	askFree(&r)
	return r
}

// Files that show on Linux that a kernel driver is there.
var (
	nvidiaSigns = []string{"/proc/driver/nvidia/version", "/dev/nvidiactl"}
	wslSigns    = []string{"/dev/dxg"} // of a GPU of any vendor
	amdSigns    = []string{"/dev/kfd"}
)

// libraryOf gives the API of a vendor's cards and the driver library that was named by hand for it.
func libraryOf(vendor string) (api driver.API, path string) {
	api = driver.CUDA
	if vendor == detect.AMD {
		api = driver.HIP
	}
	for _, l := range device.Libraries {
		if l.API == api {
			path = os.Getenv(l.Variable)
		}
	}
	return api, path
}

// askDriver lists a vendor's devices. It returns nil, nil on a machine without such devices and in
// a static executable, which cannot open a driver: files and the vendor's tool answer instead.
func askDriver(vendor string) (_ []detect.Answer, err error) {
	api, path := libraryOf(vendor)
	signs := nvidiaSigns
	if vendor == detect.AMD {
		signs = amdSigns
	}
	installed := anyExists(signs)
	if maybe := installed || path != "" || runtime.GOOS != "linux" || vendor == detect.NVIDIA &&
		anyExists(wslSigns); Static || !maybe {
		return nil, nil
	}
	d, err := driver.Open(api, path)
	if errors.Is(err, driver.ErrNoLibrary) && path == "" {
		switch {
		case !installed:
			return nil, nil
		case vendor == detect.AMD:
			return nil, errors.New("AMD's HIP runtime (libamdhip64) is not installed beside the " +
				"kernel driver")
		}
		return nil, errors.New("NVIDIA's driver library (libcuda.so.1) is not installed beside " +
			"the kernel module")
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	n, err := d.DeviceCount()
	if err != nil {
		return nil, err
	}
	var answers []detect.Answer
	for i := range n {
		g, err := device.Describe(d, i)
		if err != nil {
			return nil, err
		}
		multiprocessors, err := g.Attribute(driver.Multiprocessors)
		if err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
		answers = append(answers, detect.Answer{Name: g.Name, BDF: strings.ToLower(g.PCI),
			Arch: g.Arch, MemoryMiB: int(g.Memory >> 20), Units: g.Units(multiprocessors),
			Place: i + 1})
	}
	return answers, nil
}

func anyExists(paths []string) bool {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			return true
		}
	}
	return false
}

// askFree asks the drivers for the free memory of those GPUs for which neither the kernel nor the
// vendor's tool gave it: a driver tells it only of an opened card. A GPU that cannot be opened
// stays as it is; opening it for work says why.
func askFree(r *detect.Result) {
	for _, vendor := range []string{detect.NVIDIA, detect.AMD} {
		var unknown []*detect.GPU
		first := -1 // the number of the driver's first device
		for i := range r.GPUs {
			g := &r.GPUs[i]
			if g.Vendor != vendor || g.Number == nil {
				continue
			}
			if first < 0 || *g.Number < first {
				first = *g.Number
			}
			if g.Usable && g.FreeMiB == 0 {
				unknown = append(unknown, g)
			}
		}
		if len(unknown) == 0 {
			continue
		}
		d, err := driver.Open(libraryOf(vendor))
		if err != nil {
			continue
		}
		for _, g := range unknown {
			if free, err := freeOf(d, *g.Number-first); err == nil {
				g.FreeMiB = int(free >> 20)
			}
		}
		d.Close() // the library stays loaded, so the error does not matter
	}
}

func freeOf(d *driver.Driver, index int) (free int64, err error) {
	g, err := d.Device(index)
	if err != nil {
		return 0, err
	}
	opened, err := g.Open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	_, free, err = opened.Memory()
	return free, err
}

// HostRate is what the host's memory delivers to the CPU, byte/s; 0: not known.
func HostRate(host engine.Device) float64 { return multi.ReadRate(host) }

// driverIsLikely tells whether the machine has signs of a driver, so that a machine without a GPU
// starts no process to find out.
func driverIsLikely() bool {
	return device.ByHand() || anyExists(nvidiaSigns) || anyExists(amdSigns)
}

// Traffic is what steps have cost in messages to a worker and back.
type Traffic = worker.Traffic
