package detect

// A card's sensors, for people who wonder why it is slow: from nvidia-smi's query or AMD's hwmon
// files, so no library is loaded. Missing or odd readings are left out.

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Sensors are the readings at one moment. 0: not known.
type Sensors struct {
	Celsius   int     `json:"celsius,omitempty"`
	Watts     float64 `json:"watts,omitempty"`
	ClockMHz  int     `json:"clock_mhz,omitempty"`        // of the units
	MemoryMHz int     `json:"memory_clock_mhz,omitempty"` // of the memory
}

const sensorQuery = "pci.bus_id,memory.free,temperature.gpu,power.draw," +
	"clocks.current.sm,clocks.current.memory"

// ReadSensors reads the GPUs' sensors, and their free memory if it is unknown.
func (r *Result) ReadSensors(ctx context.Context, m Machine) {
	m = m.withDefaults()
	r.sensorsNVIDIA(ctx, m)
	for i := range r.GPUs {
		if g := &r.GPUs[i]; g.Vendor == AMD && g.BDF != "" {
			g.sensorsAMD(m.Files)
		}
	}
}

func (r *Result) sensorsNVIDIA(ctx context.Context, m Machine) {
	if !slices.ContainsFunc(r.GPUs, func(g GPU) bool { return g.Vendor == NVIDIA && g.Usable }) {
		return
	}
	out, err := m.Run(ctx, "nvidia-smi", "--query-gpu="+sensorQuery, "--format=csv")
	if err != nil {
		return
	}
	for _, field := range smiRows(out.Text) {
		for i := range r.GPUs {
			g := &r.GPUs[i]
			if g.Vendor != NVIDIA || g.BDF == "" || g.BDF != normalBDF(field("pci.bus_id")) {
				continue
			}
			g.FreeMiB = cmp.Or(g.FreeMiB, mebibytes(field("memory.free")))
			g.keep(Sensors{Celsius: int(quantity(field("temperature.gpu"))),
				Watts:     quantity(field("power.draw")),
				ClockMHz:  int(quantity(field("clocks.current.sm"))),
				MemoryMHz: int(quantity(field("clocks.current.memory")))})
		}
	}
}

// sensorsAMD reads the amdgpu module's files, in millidegrees, microwatts, hertz, bytes.
func (g *GPU) sensorsAMD(files fs.FS) {
	device := path.Join("sys/bus/pci/devices", g.BDF)
	pool := "/mem_info_vram_"
	if g.SharesHost() {
		pool = "/mem_info_gtt_"
	}
	if total, used := quantity(readText(files, device+pool+"total")), readText(files, device+pool+
		"used"); g.FreeMiB == 0 && used != "" {
		g.FreeMiB = int((total - quantity(used)) / (1 << 20))
	}
	folders, _ := fs.Glob(files, device+"/hwmon/hwmon*")
	if len(folders) == 0 {
		return
	}
	number := func(name string) float64 {
		return quantity(readText(files, path.Join(folders[0], name)))
	}
	// newer cards have only the momentary power
	watts := cmp.Or(number("power1_average"), number("power1_input"))
	g.keep(Sensors{Celsius: int(number("temp1_input") / 1e3), Watts: watts / 1e6,
		ClockMHz: int(number("freq1_input") / 1e6), MemoryMHz: int(number("freq2_input") / 1e6)})
}

// keep notes the readings, if there are any.
func (g *GPU) keep(s Sensors) {
	if s != (Sensors{}) {
		g.Sensors = &s
	}
}

// quantity reads "68.12 W" or "45000"; anything else, or a negative number, is 0.
func quantity(s string) float64 {
	number, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v > 0 && v < 1e15) {
		return 0
	}
	return v
}
