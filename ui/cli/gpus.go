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
	"strings"

	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/driver"
)

// seeGPUs detects, with the drivers' answers.
func seeGPUs(ctx context.Context) detect.Report {
	card.Settle()
	return detect.Detect(ctx, detect.Here(askDriver))
}

// What shows on Linux that a kernel driver is there.
var (
	nvidiaSigns = []string{"/proc/driver/nvidia/version", "/dev/dxg", "/dev/nvidiactl"}
	amdSigns    = []string{"/dev/kfd"}
)

// askDriver lists a vendor's devices; nil, nil where there is nothing to drive, and in a static executable, which cannot open a driver itself: the
// machine's files and the vendor's tool speak there.
func askDriver(vendor string) (_ []detect.Answer, err error) {
	api, signs := driver.CUDA, nvidiaSigns
	if vendor == detect.AMD {
		api, signs = driver.HIP, amdSigns
	}
	if linkedStatically || runtime.GOOS == "linux" && !anyExists(signs) {
		return nil, nil
	}
	d, err := driver.Open(api, "")
	if errors.Is(err, driver.ErrNoLibrary) && runtime.GOOS != "linux" {
		return nil, nil
	}
	if errors.Is(err, driver.ErrNoLibrary) && vendor == detect.AMD {
		return nil, errors.New("AMD's HIP runtime (libamdhip64) is not installed beside the kernel driver")
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
		units, err := g.Attribute(driver.Multiprocessors)
		if err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
		answers = append(answers, detect.Answer{Name: g.Name, BDF: strings.ToLower(g.PCI), Arch: g.Arch, MemoryMiB: int(g.Memory >> 20), Units: units, Place: i + 1})
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

// whyCPU is one sentence for a machine whose GPUs are not used.
func whyCPU(r detect.Report) string {
	if why := r.Why(); why != "" {
		return "no GPU is used: " + why
	}
	return "there is no GPU of NVIDIA or AMD in this machine"
}

// printGPUs writes a line for each GPU and for each problem, in doctor's two columns.
func printGPUs(w io.Writer, r detect.Report) {
	for i, g := range r.GPUs {
		name := ""
		if i == 0 {
			name = "gpus"
		}
		var facts []string
		add := func(format string, v any, known bool) {
			if known {
				facts = append(facts, fmt.Sprintf(format, v))
			}
		}
		if g.Number != nil && len(r.GPUs) > 1 {
			add("--gpu %d", *g.Number, true)
		}
		add("%s", g.Arch, g.Arch != "")
		add("%d MiB", g.MemoryMiB, g.MemoryMiB > 0)
		add("%d MiB free", g.FreeMiB, g.FreeMiB > 0)
		add("%d units", g.Units, g.Units > 0)
		if c := g.Chip; c != nil {
			add("%.0f GB/s", c.Bandwidth, c.Bandwidth > 0)
			add("%.0f bf16 TFLOP/s", c.BF16, c.BF16 > 0)
		}
		add("at %s", g.BDF, g.BDF != "")
		if x := g.Sensors; x != nil {
			add("%d °C", x.Celsius, x.Celsius > 0)
			add("%.0f W", x.Watts, x.Watts > 0)
			add("units at %d MHz", x.ClockMHz, x.ClockMHz > 0)
			add("memory at %d MHz", x.MemoryMHz, x.MemoryMHz > 0)
		}
		add("not used: %s", g.Reason, !g.Usable)
		fmt.Fprintf(w, "%s\t%s: %s\n", name, g.Name, strings.Join(facts, ", "))
	}
	for i, p := range r.Problems {
		name := ""
		if i == 0 {
			name = "problems"
		}
		fmt.Fprintf(w, "%s\t%s: %s\n", name, p.Text, p.Remedy)
	}
}
