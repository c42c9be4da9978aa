// Which GPUs this machine has, for every verb that chooses a device or shows one.
//
// The machine's files are read first and alone; a driver is opened only where they show that it has something to drive, because opening AMD's
// runtime takes a fraction of a second and wants its environment set before.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
)

// seeGPUs detects, with the drivers' answers.
func seeGPUs(ctx context.Context) detect.Report {
	card.Settle()
	m := detect.Here(askDriver)
	m.Runs = func(arch string) error { _, err := device.Artefact(arch); return err }
	r := detect.Detect(ctx, m)
	r.Feel(ctx, m)
	askFree(&r)
	return r
}

// What shows on Linux that a kernel driver is there.
var (
	nvidiaSigns = []string{"/proc/driver/nvidia/version", "/dev/nvidiactl"}
	wslSigns    = []string{"/dev/dxg"} // of a GPU of any vendor
	amdSigns    = []string{"/dev/kfd"}
)

// libraryOf is how a vendor's cards are driven, and the library that was named by hand for it.
func libraryOf(vendor string) (api driver.API, path string) {
	api = driver.CUDA
	if vendor == detect.AMD {
		api = driver.HIP
	}
	for _, l := range card.Libraries {
		if l.API == api {
			path = os.Getenv(l.Variable)
		}
	}
	return api, path
}

// askDriver lists a vendor's devices; nil, nil where there is nothing to drive, and in a static executable, which cannot open a driver itself: the
// machine's files and the vendor's tool speak there.
func askDriver(vendor string) (_ []detect.Answer, err error) {
	api, path := libraryOf(vendor)
	signs := nvidiaSigns
	if vendor == detect.AMD {
		signs = amdSigns
	}
	installed := anyExists(signs)
	if maybe := installed || path != "" || runtime.GOOS != "linux" || vendor == detect.NVIDIA && anyExists(wslSigns); linkedStatically || !maybe {
		return nil, nil
	}
	d, err := driver.Open(api, path)
	if errors.Is(err, driver.ErrNoLibrary) && path == "" {
		switch {
		case !installed:
			return nil, nil
		case vendor == detect.AMD:
			return nil, errors.New("AMD's HIP runtime (libamdhip64) is not installed beside the kernel driver")
		}
		return nil, errors.New("NVIDIA's driver library (libcuda.so.1) is not installed beside the kernel module")
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
		g, err := d.Device(i)
		if err != nil {
			return nil, err
		}
		multiprocessors, err := g.Attribute(driver.Multiprocessors)
		if err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
		answers = append(answers, detect.Answer{Name: g.Name, BDF: strings.ToLower(g.PCI), Arch: g.Arch, MemoryMiB: int(g.Memory >> 20), Units: g.Units(multiprocessors), Place: i + 1})
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

// askFree asks the drivers for the free memory of the GPUs of which neither the kernel nor the vendor's tool has told it: a driver tells it to who opens
// the card. One that cannot be opened stays as it is; opening it for work says why.
func askFree(r *detect.Report) {
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
		d.Close() // of a library that stays loaded: nothing is lost with the error
	}
}

// freeOf is what is free on a driver's device, bytes.
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

// whyCPU is one sentence for a machine whose GPUs are not used.
func whyCPU(r detect.Report) string {
	if why := r.Why(); why != "" {
		return "no GPU is used: " + why
	}
	return "there is no GPU of NVIDIA or AMD in this machine"
}

// seeProblems stands where a problem is told already.
const seeProblems = "see problems"

// printGPUs writes a line for each GPU and for each problem, in doctor's two columns.
func printGPUs(w io.Writer, r detect.Report) {
	for i, g := range r.GPUs {
		name := ""
		if i == 0 {
			name = "gpus"
		}
		fmt.Fprintf(w, "%s\t%s: %s\n", name, g.Title(), strings.Join(factsOf(g, r), ", "))
	}
	for i, p := range r.Problems {
		name := ""
		if i == 0 {
			name = "problems"
		}
		fmt.Fprintf(w, "%s\t%s\n", name, p.Sentence())
	}
}

// factsOf is what is known of a GPU of a report, for people.
func factsOf(g detect.GPU, r detect.Report) (facts []string) {
	add := func(format string, v any, known bool) {
		if known {
			facts = append(facts, fmt.Sprintf(format, v))
		}
	}
	several := len(r.GPUs) > 1
	if g.Number != nil && several {
		add("--gpu %d", *g.Number, true)
	}
	add("%s", g.Arch, g.Arch != "")
	add("%d MiB", g.MemoryMiB, g.MemoryMiB > 0)
	add("%d MiB free", g.FreeMiB, g.FreeMiB > 0)
	add("%d units", g.Units, g.Units > 0)
	if f := g.Figures; f != nil {
		about := func(name, format string) string {
			if slices.Contains(f.About, name) {
				return "about " + format
			}
			return format
		}
		add(about("bandwidth_gbs", "%.0f GB/s"), f.Bandwidth, f.Bandwidth > 0)
		add(about("bf16_tflops", "%.0f bf16 TFLOP/s"), f.BF16, f.BF16 > 0)
		add("%s", f.PeerLink, several && f.PeerLink != "" && len(g.Linked) == 0)
	}
	add("xgmi to %d others", len(g.Linked), len(g.Linked) > 0)
	add("at %s", g.BDF, g.BDF != "")
	if x := g.Sensors; x != nil {
		add("%d °C", x.Celsius, x.Celsius > 0)
		add("%.0f W", x.Watts, x.Watts > 0)
		add("units at %d MHz", x.ClockMHz, x.ClockMHz > 0)
		add("memory at %d MHz", x.MemoryMHz, x.MemoryMHz > 0)
	}
	told := slices.ContainsFunc(r.Problems, func(p detect.Problem) bool { return p.Vendor == g.Vendor && p.Text == g.Reason })
	switch {
	case g.Usable:
	case told:
		add("not used, %s", seeProblems, true)
	default:
		add("not used: %s", g.Reason, true)
	}
	return facts
}
