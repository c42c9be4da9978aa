// Package detect says which GPUs are in this machine, what they can do, and in one sentence why one
// is not used.
//
// First the machine's own files are read: PCI, the NVIDIA module's /proc, AMD's KFD topology;
// nothing is loaded and nothing can hang. Then the driver is asked through the caller's Ask; if it
// cannot be asked, the vendor's own tools are (Run).
//
// What must stay true: no table made for people is ever parsed; a missing or odd file is not an
// error but an unknown; the most precise evidence wins (driver, then the module's files, then PCI
// with the catalogue); two cards of one kind are never expected to be equal.
package detect

import (
	"cmp"
	"context"
	"embed"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Vendors.
const (
	NVIDIA = "nvidia"
	AMD    = "amd"
)

// GPU is one device as programs can use it: a card, or a partition of one.
type GPU struct {
	Vendor string `json:"vendor"`
	Name   string `json:"name,omitempty"`
	PCI    string `json:"pci,omitempty"`  // "10de:2335"
	BDF    string `json:"bdf,omitempty"`  // "0000:1b:00.0"
	Arch   string `json:"arch,omitempty"` // "sm_90", "gfx942"
	// what the device has; 0: not known from here
	MemoryMiB    int    `json:"memory_mib,omitempty"`
	FreeMiB      int    `json:"free_mib,omitempty"`      // free at the time of detection
	Units        int    `json:"units,omitempty"`         // SMs or CUs
	Integrated   bool   `json:"integrated,omitempty"`    // shares the host's memory
	MIG          bool   `json:"mig,omitempty"`           // cut into instances
	KernelDriver string `json:"kernel_driver,omitempty"` // the module that holds the PCI device
	Node         int    `json:"kfd_node,omitempty"`      // KFD's node, 0: none
	RenderMinor  int    `json:"render_minor,omitempty"`
	Card         uint64 `json:"card,omitempty"` // equal on the partitions of one card; 0: not known
	Hive         uint64 `json:"hive,omitempty"` // equal on cards that are linked directly
	MECFirmware  int    `json:"mec_firmware,omitempty"`
	// of an integrated GPU: its own part of the memory,
	VRAMMiB int `json:"vram_mib,omitempty"`
	// and what it may use of the host's. Never add the two.
	GTTMiB int    `json:"gtt_mib,omitempty"`
	Usable bool   `json:"usable"`
	Reason string `json:"reason,omitempty"` // why it is not usable
	Chip   *Chip  `json:"-"`                // the catalogue's entry, nil when unknown

	*Figures // of the catalogue, nil when the chip is unknown
	// addresses of the cards it has a direct link to, where the kernel says so
	Linked []string `json:"linked,omitempty"`

	// its number (--gpu) in the drivers' order, NVIDIA's first; nil if they were not asked
	Number  *int     `json:"number,omitempty"`
	Sensors *Sensors `json:"sensors,omitempty"` // where ReadSensors found some
}

// Problem is what keeps GPUs from being used, or from being used well.
type Problem struct {
	Vendor string `json:"vendor"`
	Code   string `json:"code"`
	Text   string `json:"text"`   // the symptom, if possible in the machine's own words
	Remedy string `json:"remedy"` // what to do about it
	// Advice marks a problem that does not keep the GPU from being used.
	Advice bool `json:"advice,omitempty"`
}

// stamp is the time in front of a line of the kernel's log.
var stamp = regexp.MustCompile(`^\[ *[0-9.]+\] *`)

// Sentence is the problem for people: the symptom and the remedy.
func (p Problem) Sentence() string {
	return strings.TrimRight(stamp.ReplaceAllString(p.Text, ""), " .:") + ": " + p.Remedy
}

type Result struct {
	Platform      string    `json:"where"` // "linux", "wsl2", "container", "windows", "darwin"
	DriverVersion string    `json:"nvidia_driver,omitempty"`
	OpenModule    bool      `json:"nvidia_open_module,omitempty"`
	AMDDriver     string    `json:"amd_driver,omitempty"` // "" for the kernel's own
	GPUs          []GPU     `json:"devices"`
	Problems      []Problem `json:"problems,omitempty"`
}

// Answer is a driver's answer for one device.
type Answer struct {
	Name      string
	BDF       string // "" where the driver does not tell
	PCI       string
	Arch      string
	MemoryMiB int
	FreeMiB   int
	Units     int
	MIG       bool
	Place     int // in the driver's list, from 1; 0: the answer is not the driver's
}

type Output struct {
	Text string
	Exit int
}

// Machine is where detection looks. Every part may be missing.
type Machine struct {
	Files    fs.FS  // rooted at /: sys, proc, dev
	Platform string // "": found out from Files
	// Ask asks a vendor's driver; nil, nil: there is none. An error is the driver's own.
	Ask func(vendor string) ([]Answer, error)
	// Runs returns why no kernel runs on an architecture, or nil. Without it all run.
	Runs func(arch string) error
	// OpenKFD opens /dev/kfd for reading and writing and closes it again.
	OpenKFD func() error
	// Run runs a vendor's tool. Its error means that the tool could not be started.
	Run func(ctx context.Context, name string, args ...string) (Output, error)
}

// withDefaults replaces missing parts by empty ones.
func (m Machine) withDefaults() Machine {
	if m.Files == nil {
		m.Files = embed.FS{} // without files
	}
	if m.Ask == nil {
		m.Ask = func(string) ([]Answer, error) { return nil, nil }
	}
	if m.Runs == nil {
		m.Runs = func(string) error { return nil }
	}
	if m.Run == nil {
		m.Run = func(context.Context, string, ...string) (Output, error) {
			return Output{}, fs.ErrNotExist
		}
	}
	return m
}

func Detect(ctx context.Context, m Machine) Result {
	r := Result{Platform: m.Platform, GPUs: []GPU{}}
	if r.Platform == "" && m.Files != nil {
		r.Platform = platform(m.Files)
	}
	m = m.withDefaults()
	cards := pciCards(m.Files)
	r.nvidia(ctx, m, cards)
	r.amd(ctx, m, cards)
	r.number()
	for i := range r.GPUs {
		r.GPUs[i].fill()
		r.GPUs[i].hostMemory(m.Files)
	}
	r.judge(m.Runs)
	return r
}

// number counts AMD's GPUs after NVIDIA's.
func (r *Result) number() {
	next := 0
	for _, g := range r.GPUs {
		if g.Vendor == NVIDIA && g.Number != nil {
			next = max(next, *g.Number+1)
		}
	}
	for _, g := range r.GPUs {
		if g.Vendor == AMD && g.Number != nil {
			*g.Number += next
		}
	}
}

// Title is the device's name for people, or else its vendor and the known facts.
func (g GPU) Title() string {
	vendor := map[string]string{NVIDIA: "NVIDIA GPU", AMD: "AMD GPU"}[g.Vendor]
	return cmp.Or(g.Name, strings.TrimSpace(vendor+" "+g.PCI))
}

func (r Result) Usable() []GPU {
	return slices.DeleteFunc(slices.Clone(r.GPUs), func(g GPU) bool { return !g.Usable })
}

// Why is one sentence on why no GPU is used; "" if one can be used or the machine has none.
func (r Result) Why() string {
	if len(r.Usable()) > 0 {
		return ""
	}
	for _, p := range r.Problems {
		if !p.Advice {
			return p.Sentence()
		}
	}
	for _, g := range r.GPUs {
		if g.Reason != "" {
			return g.Title() + ": " + g.Reason
		}
	}
	return ""
}

// Environment is what our own process must set before it opens AMD's runtime.
func (r Result) Environment() map[string]string {
	for _, g := range r.GPUs {
		if g.Arch == "gfx942" && g.MECFirmware > 0 && g.MECFirmware < oldMEC {
			return map[string]string{"HSA_NO_SCRATCH_RECLAIM": "1"}
		}
	}
	return nil
}

func (r *Result) note(p Problem) {
	if !slices.ContainsFunc(r.Problems, func(have Problem) bool {
		return have.Code == p.Code && have.Vendor == p.Vendor
	}) {
		r.Problems = append(r.Problems, p)
	}
}

// fill adds the catalogue's facts to the detected ones.
func (g *GPU) fill() {
	if g.PCI != "" {
		g.Chip = chipOf(g.PCI, g.Units, g.MemoryMiB)
	}
	if g.Chip == nil && g.Name != "" {
		g.Chip = ChipNamed(g.Name, g.MemoryMiB)
	}
	c := g.Chip
	if c == nil {
		return
	}
	g.Arch = cmp.Or(g.Arch, c.Arch)
	if g.PCI == "" && len(c.PCI) > 0 {
		g.PCI = c.PCI[0]
	}
	g.Name = cmp.Or(g.Name, c.nameFor(g.PCI))
	g.Units = cmp.Or(g.Units, c.Units)
	g.Integrated = g.Integrated || c.Integrated
	g.Figures = c.figures(g.Units)
}

// platform tells WSL and containers from a plain Linux.
func platform(files fs.FS) string {
	if v := strings.ToLower(readText(files, "proc/version")); strings.Contains(v, "microsoft") ||
		exists(files, "dev/dxg") {
		return "wsl2"
	}
	if exists(files, ".dockerenv") || exists(files, "run/.containerenv") {
		return "container"
	}
	return "linux"
}

func exists(files fs.FS, name string) bool {
	_, err := fs.Stat(files, name)
	return err == nil
}

// readText is a small file's text without the space around it, "" when it cannot be read.
func readText(files fs.FS, name string) string {
	b, _ := fs.ReadFile(files, name)
	return strings.TrimSpace(string(b))
}

// namesIn are the entries of a folder, none if it cannot be read.
func namesIn(files fs.FS, dir string) (names []string) {
	entries, _ := fs.ReadDir(files, dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
