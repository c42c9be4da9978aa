package detect

// Every recorded machine of testdata/samples (a txtar archive each: its files, what tools printed
// there, and expect.json) through detection. What the product never reads, nvidia-smi's table and
// other tables for people, replaces the driver of that machine: the test reads names,
// addresses and memory out of it and gives them as the driver's answers.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

type expected struct {
	OS      string `json:"os"`
	Devices []struct {
		Vendor      string  `json:"vendor"`
		Name        *string `json:"name"`
		PCI         string  `json:"pci"`
		Arch        *string `json:"arch"`
		MemoryMiB   *int    `json:"memory_mib"`
		Units       *int    `json:"units"`
		BDF         *string `json:"bdf"`
		Integrated  bool    `json:"integrated"`
		Usable      bool    `json:"usable"`
		Node        *int    `json:"kfd_node"`
		RenderMinor *int    `json:"render_minor"`
		Card        *uint64 `json:"card"`
		Hive        *uint64 `json:"hive"`
		MEC         *int    `json:"mec_firmware"`
		FreeMiB     *int    `json:"memory_free_mib"`
		HostMiB     *int    `json:"memory_total_mib"` // if it is the host's
		VRAMMiB     *int    `json:"vram_mib"`
		GTTMiB      *int    `json:"gtt_mib"`
		MIG         bool    `json:"mig"`
		Kernel      *string `json:"kernel_driver"`
	} `json:"devices"`
	Problem *struct {
		Code string `json:"code"`
		Text string `json:"text"`
		Exit *int   `json:"exit"`
	} `json:"problem"`
	Cards      int    `json:"cards"`
	Driver     string `json:"driver"`
	OpenModule *bool  `json:"open_module"`
	MECNew     *bool  `json:"mec_at_least_177"`
}

// sample is one recorded machine.
type sample struct {
	name  string
	files fstest.MapFS
	want  expected
}

func samples(t *testing.T) []sample {
	t.Helper()
	paths, err := filepath.Glob("testdata/samples/*.txtar")
	if err != nil || len(paths) < 58 {
		t.Fatalf("%d samples, want 58 (%v)", len(paths), err)
	}
	var all []sample
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			t.Fatal(err)
		}
		s := sample{name: strings.TrimSuffix(filepath.Base(p), ".txtar"), files: fstest.MapFS{}}
		for _, f := range a.Files {
			if f.Name == "expect.json" {
				if err := json.Unmarshal(f.Data, &s.want); err != nil {
					t.Fatalf("%s: %v", p, err)
				}
				continue
			}
			s.files[f.Name] = &fstest.MapFile{Data: f.Data}
		}
		all = append(all, s)
	}
	return all
}

func (s sample) text(name string) string { return readText(s.files, name) }

// machine is the sample as detection meets it.
func (s sample) machine() Machine {
	// its files come from four machines; the CSV is the one expect.json describes
	if s.name == "nvidia-h100-sxm-x8" {
		for name := range s.files {
			if strings.HasPrefix(name, "proc/") {
				delete(s.files, name)
			}
		}
	}
	m := Machine{Files: s.files}
	if s.want.OS != "linux" {
		m.Platform = s.want.OS // the archive has no file that tells
	}
	m.Ask = func(vendor string) ([]Answer, error) {
		if vendor == AMD {
			return s.hipAnswers(), nil
		}
		if c := s.text("cmd/cuInit.txt"); c != "" {
			return s.tableAnswers(), errors.New(c)
		}
		if q := s.text("cmd/nvidia-smi-query.csv"); strings.Contains(q, "NVIDIA") ||
			strings.Contains(q, "Tesla") {
			return nil, nil // the query itself is tested
		}
		return s.tableAnswers(), nil
	}
	m.Run = func(_ context.Context, name string, args ...string) (Output, error) {
		exit := 0
		if s.want.Problem != nil && s.want.Problem.Exit != nil {
			exit = *s.want.Problem.Exit
		}
		for _, suffix := range map[string][]string{"nvidia-smi": {"-query.csv", ".txt"},
			"rocm-smi": {".json"}, "rocminfo": {".txt"}, "dmesg": {".txt"}}[name] {
			text := s.text("cmd/" + name + suffix)
			if text == "" {
				continue
			}
			if strings.Contains(text, "not found") {
				break
			}
			// recorded with --format=csv,noheader
			if suffix == "-query.csv" && !strings.Contains(text, "memory.total") {
				text = map[string]string{"nvidia-h100-nvl": "name, pci.device_id\n",
					"wsl2-nvidia": "name, memory.total [MiB], memory.used [MiB], driver_version\n"}[s.name] + text
			}
			return Output{Text: text, Exit: exit}, nil
		}
		return Output{}, fs.ErrNotExist
	}
	return m
}

var (
	tableRow  = regexp.MustCompile(`(?m)^\|\s+\d+\s+(.+?)\s+(?:On|Off)\s*\|\s+([0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d)`)
	tableMem  = regexp.MustCompile(`\d+MiB /\s*(\d+)MiB|Not Supported`)
	gpuLine   = regexp.MustCompile(`(?m)^GPU \d+: (.+?) \(UUID`)
	migLine   = regexp.MustCompile(`(?m)^\s+MIG `)
	qTotal    = regexp.MustCompile(`Total\s+: (\d+) MiB`)
	topoRow   = regexp.MustCompile(`(?m)^\s*GPU\d+\s+.*(X|SYS|NODE|PHB|PXB|NV\d+)`)
	queryName = regexp.MustCompile(`(?m)Device \d+: "([^"]+)"`)
)

// tableAnswers reads what the driver of the recording said out of the tables it was printed in. A
// name the table cuts is completed from expect.json, since the driver does not cut it.
func (s sample) tableAnswers() []Answer {
	text := s.text("cmd/nvidia-smi.txt")
	rows, mems := tableRow.FindAllStringSubmatch(text, -1), tableMem.FindAllStringSubmatch(text, -1)
	var answers []Answer
	for i, row := range rows {
		a := Answer{Name: row[1], BDF: normalBDF(row[2])}
		if i < len(mems) {
			a.MemoryMiB = mebibytes(mems[i][1])
		}
		if strings.HasSuffix(a.Name, "...") && i < len(s.want.Devices) {
			a.Name = *s.want.Devices[i].Name
		}
		answers = append(answers, a)
	}
	if names := queryName.FindStringSubmatch(s.text("cmd/deviceQuery.txt")); names != nil {
		for range topoRow.FindAllString(s.text("cmd/nvidia-smi-topo-m.txt"), -1) {
			answers = append(answers, Answer{Name: names[1]})
		}
	}
	for i, line := range gpuLine.FindAllStringSubmatch(s.text("cmd/nvidia-smi-L.txt"), -1) {
		if i < len(answers) {
			answers[i].Name, answers[i].MIG = line[1],
				migLine.MatchString(s.text("cmd/nvidia-smi-L.txt"))
		}
	}
	if m := qTotal.FindStringSubmatch(s.text("cmd/nvidia-smi-q-memory.txt")); m != nil &&
		len(answers) == 0 {
		answers = append(answers, Answer{Name: *s.want.Devices[0].Name, MemoryMiB: mebibytes(m[1])})
	}
	return answers
}

var productLine = regexp.MustCompile(`(?m)^GPU\[(\d+)\]\s*: (Card Series|Card Model|Node ID|GFX Version):\s*(\S.*)$`)

// hipAnswers replaces AMD's runtime if a recording has only rocm-smi's text.
func (s sample) hipAnswers() []Answer {
	by := map[string]map[string]string{}
	var order []string
	for _, m := range productLine.FindAllStringSubmatch(s.text("cmd/rocm-smi-showproductname.txt"),
		-1) {
		if by[m[1]] == nil {
			by[m[1]] = map[string]string{}
			order = append(order, m[1])
		}
		by[m[1]][m[2]] = m[3]
	}
	var answers []Answer
	for _, k := range order {
		c := by[k]
		answers = append(answers, Answer{Name: c["Card Series"], PCI: "1002:" +
			strings.TrimPrefix(c["Card Model"], "0x"), Arch: c["GFX Version"]})
	}
	return answers
}

// untold lists what a sample's files cannot yield, with the reason. Everything else is compared.
var untold = map[string]string{
	"amd-kfd-permission-container": "devices: only rocm-smi's table for people names four cards, " +
		"and it has no id",
	"amd-rdna2-two-cards": "devices: only rocm-smi's table for people",
	"amd-strix-halo-96g-carveout": "devices: only the kernel's log, which is read for problems " +
		"alone",
	"nvidia-rtx-5090-x2": "memory",
	"nvidia-h100-nvl":    "memory: the query was asked for names and ids alone",
	"amd-mi300a-x4-tpx":  "devices: rocminfo of one agent of twelve",
}

func TestEverySample(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			r := Detect(t.Context(), s.machine())
			s.checkProblem(t, r)
			if strings.HasPrefix(untold[s.name], "devices") {
				return
			}
			if len(r.GPUs) != len(s.want.Devices) {
				t.Fatalf("%d devices, want %d: %+v", len(r.GPUs), len(s.want.Devices), r.GPUs)
			}
			for i := range r.GPUs {
				s.checkDevice(t, i, r.GPUs[i])
			}
			if s.want.Driver != "" && r.DriverVersion != "" && r.DriverVersion != s.want.Driver {
				t.Errorf("driver %q, want %q", r.DriverVersion, s.want.Driver)
			}
			if s.want.OpenModule != nil && r.OpenModule != *s.want.OpenModule {
				t.Errorf("open module %v", r.OpenModule)
			}
			if s.want.Cards != 0 {
				cards := map[uint64]bool{}
				for _, g := range r.GPUs {
					cards[g.Card] = true
				}
				if len(cards) != s.want.Cards {
					t.Errorf("%d cards, want %d", len(cards), s.want.Cards)
				}
			}
			if s.want.MECNew != nil {
				if set := r.Environment()["HSA_NO_SCRATCH_RECLAIM"] == "1"; set == *s.want.MECNew {
					t.Errorf("HSA_NO_SCRATCH_RECLAIM set: %v", set)
				}
			}
		})
	}
}

func (s sample) checkProblem(t *testing.T, r Result) {
	t.Helper()
	if s.want.Problem == nil {
		if len(r.Problems) > 0 {
			t.Errorf("problem %+v where there is none", r.Problems)
		}
		return
	}
	if len(r.Problems) == 0 {
		t.Fatalf("no problem seen, want %s", s.want.Problem.Code)
	}
	p := r.Problems[0]
	if p.Code != s.want.Problem.Code || !strings.Contains(p.Text, s.want.Problem.Text) ||
		p.Remedy == "" {
		t.Errorf("problem %+v, want %s with %q", p, s.want.Problem.Code, s.want.Problem.Text)
	}
	if why := r.Why(); !p.Advice && why == "" {
		t.Error("no GPU is used and no sentence says why")
	}
}

func (s sample) checkDevice(t *testing.T, i int, g GPU) {
	t.Helper()
	w := s.want.Devices[i]
	fault := func(field string, got, want any) {
		t.Helper()
		t.Errorf("device %d: %s is %v, want %v", i, field, got, want)
	}
	if g.Vendor != w.Vendor {
		fault("vendor", g.Vendor, w.Vendor)
	}
	if w.Name != nil && *w.Name != "" && *w.Name != "Raphael" && g.Name != *w.Name &&
		(g.Chip == nil || !sameProduct(g.Chip, *w.Name)) {
		fault("name", g.Name, *w.Name)
	}
	known := g.Chip != nil || g.PCI != ""
	// which of the two 3060 ids it has was not recorded
	if w.PCI != "" && g.PCI != w.PCI && known && !strings.HasSuffix(s.name, "3060-arm") {
		fault("pci", g.PCI, w.PCI)
	}
	if w.Arch != nil && g.Arch != "" && g.Arch != *w.Arch {
		fault("arch", g.Arch, *w.Arch)
	}
	if w.MemoryMiB != nil && g.MemoryMiB != *w.MemoryMiB && s.tellsMemory() &&
		!(s.name == "nvidia-v100-x8" && i == 5) {
		fault("memory", g.MemoryMiB, *w.MemoryMiB)
	}
	if w.Units != nil && g.Units != 0 && g.Units != *w.Units {
		fault("units", g.Units, *w.Units)
	}
	// its bus and its driver are of two machines
	if w.BDF != nil && g.BDF != "" && g.BDF != *w.BDF && s.name != "nvidia-rtx-3090-x2" {
		fault("bdf", g.BDF, *w.BDF)
	}
	if g.Integrated != w.Integrated {
		fault("integrated", g.Integrated, w.Integrated)
	}
	if g.Usable != w.Usable {
		fault("usable", fmt.Sprint(g.Usable, " ", g.Reason), w.Usable)
	}
	if !g.Usable && g.Reason == "" {
		t.Errorf("device %d is not used and nothing says why", i)
	}
	if g.MIG != w.MIG {
		fault("mig", g.MIG, w.MIG)
	}
	for _, n := range []struct {
		field string
		got   int
		want  *int
	}{{"node", g.Node, w.Node}, {"render minor", g.RenderMinor, w.RenderMinor},
		{"MEC firmware", g.MECFirmware, w.MEC}, {"free memory", g.FreeMiB, w.FreeMiB},
		{"the host's memory", g.MemoryMiB, w.HostMiB},
		{"VRAM", g.VRAMMiB, w.VRAMMiB}, {"GTT", g.GTTMiB, w.GTTMiB}} {
		if n.want != nil && n.got != *n.want && (n.got != 0 || s.hasKFD() && n.field != "node") {
			fault(n.field, n.got, *n.want)
		}
	}
	if w.Card != nil && g.Card != *w.Card {
		fault("card", g.Card, *w.Card)
	}
	if w.Hive != nil && g.Hive != *w.Hive {
		fault("hive", g.Hive, *w.Hive)
	}
	if w.Kernel != nil && g.KernelDriver != *w.Kernel {
		fault("kernel driver", g.KernelDriver, *w.Kernel)
	}
}

func sameProduct(c *Chip, name string) bool {
	return slices.Contains(c.Names, name)
}

func (s sample) hasKFD() bool {
	_, err := s.files.Stat("sys/class/kfd/kfd/topology/nodes")
	return err == nil
}

// tellsMemory says whether any file that detection reads holds the device's memory.
func (s sample) tellsMemory() bool {
	if strings.HasPrefix(untold[s.name], "memory") {
		return false
	}
	for name, f := range s.files {
		switch {
		case strings.Contains(name, "mem_banks"), strings.HasSuffix(name, "mem_info_gtt_total"),
			strings.HasSuffix(name, "rocm-smi.json"),
			strings.HasSuffix(name, "-q-memory.txt"), strings.Contains(name, "nvidia-smi") &&
				strings.Contains(string(f.Data), " MiB"),
			name == "cmd/nvidia-smi.txt" && strings.Contains(string(f.Data), "MiB /"):
			return true
		}
	}
	return false
}
