package detect

// NVIDIA: PCI, /proc, the driver's answers, or else nvidia-smi's queries (never its table).

import (
	"cmp"
	"context"
	"encoding/csv"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// smiQuery is what nvidia-smi is asked; the names are those of its help text.
const smiQuery = "index,name,pci.bus_id,pci.device_id,memory.total,memory.free," +
	"driver_version,compute_cap,mig.mode.current"

func (r *Result) nvidia(ctx context.Context, m Machine, cards []pciCard) {
	var gpus []GPU
	for _, c := range cards {
		if strings.HasPrefix(c.id, "10de:") {
			gpus = append(gpus, GPU{Vendor: NVIDIA, PCI: c.id, BDF: c.bdf, KernelDriver: c.driver})
		}
	}
	r.DriverVersion, r.OpenModule = moduleVersion(readText(m.Files, "proc/driver/nvidia/version"))
	gpus = moduleGPUs(m.Files, gpus)

	answers, err := m.Ask(NVIDIA)
	if err != nil {
		r.nvidiaText(err.Error(), 0)
	}
	if len(answers) == 0 {
		answers = r.nvidiaTools(ctx, m)
	}
	if err != nil && r.blocking(NVIDIA) == nil {
		r.problem(NVIDIA, "driver-error", firstLine(err.Error()))
	}
	loaded := len(answers) > 0 || r.DriverVersion != "" ||
		exists(m.Files, "proc/driver/nvidia/gpus")
	gpus = merge(gpus, answers, NVIDIA)
	if len(gpus) > 0 && !loaded && r.blocking(NVIDIA) == nil {
		if slices.ContainsFunc(gpus, func(g GPU) bool { return g.KernelDriver == "nouveau" }) {
			r.problem(NVIDIA, "no-driver", "nouveau is in use and cannot run CUDA")
		} else {
			r.problem(NVIDIA, "driver-not-loaded",
				"an NVIDIA GPU is there, but NVIDIA's kernel module is not loaded")
		}
	}
	for _, g := range gpus {
		if g.MIG {
			r.problem(NVIDIA, "mig", "MIG mode is Enabled on "+cmp.Or(g.Name, g.BDF))
		}
	}
	r.GPUs = append(r.GPUs, gpus...)
}

// notShown: a container was given some of the machine's cards, or a variable chooses.
const notShown = "the driver does not show it to this process (see CUDA_VISIBLE_DEVICES, " +
	"ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES, and what a container was given)"

// merge assigns a driver's answers to the cards that PCI showed: by address, else in order among
// the cards of the same kind. An answer that fits no card is a card that PCI does not show (WSL,
// some containers). If there are answers, a card without one is not available to this process.
func merge(gpus []GPU, answers []Answer, vendor string) []GPU {
	place, used := make([]int, len(answers)), make([]bool, len(gpus))
	for i := range answers {
		place[i], answers[i].BDF = -1, normalBDF(answers[i].BDF)
	}
	// addresses first, so that an exact match is never taken by a likely one
	for _, same := range []func(Answer, GPU) bool{sameAddress, sameKind} {
		for i, a := range answers {
			for j, g := range gpus {
				if place[i] < 0 && !used[j] && same(a, g) {
					place[i], used[j] = j, true
				}
			}
		}
	}
	for i, a := range answers {
		index := place[i]
		if index < 0 {
			index, used = len(gpus), append(used, true)
			gpus = append(gpus, GPU{Vendor: vendor})
		}
		g := &gpus[index]
		g.Name, g.PCI, g.BDF = cmp.Or(a.Name, g.Name), cmp.Or(a.PCI, g.PCI), cmp.Or(a.BDF, g.BDF)
		g.Arch, g.Units = cmp.Or(a.Arch, g.Arch), cmp.Or(a.Units, g.Units)
		g.MIG = g.MIG || a.MIG
		g.MemoryMiB, g.FreeMiB = cmp.Or(a.MemoryMiB, g.MemoryMiB), a.FreeMiB
		if a.Place > 0 {
			g.Number = new(a.Place - 1)
		}
	}
	for i := range gpus {
		if len(answers) > 0 && !used[i] && !gpus[i].Integrated && gpus[i].Reason == "" {
			gpus[i].Reason = notShown
		}
	}
	return gpus
}

func sameAddress(a Answer, g GPU) bool { return a.BDF != "" && g.BDF == a.BDF }

// sameKind also takes an answer whose address matched no card: a likely match.
func sameKind(a Answer, g GPU) bool {
	c := ChipNamed(a.Name, a.MemoryMiB)
	return a.PCI != "" && a.PCI == g.PCI || c != nil && c == chipOf(g.PCI, a.Units, a.MemoryMiB)
}

var versionField = regexp.MustCompile(`\b\d{3,}\.\d+(\.\d+)?\b`)

// moduleVersion reads what the closed, the open and Tegra's module write.
func moduleVersion(text string) (version string, open bool) {
	line, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(line, "NVRM version:") {
		return "", false
	}
	return versionField.FindString(line), strings.Contains(line, "Open Kernel Module")
}

// moduleGPUs adds the cards in /proc/driver/nvidia/gpus and their names.
func moduleGPUs(files fs.FS, gpus []GPU) []GPU {
	const root = "proc/driver/nvidia/gpus"
	for _, name := range namesIn(files, root) {
		bdf := strings.ToLower(name)
		index := slices.IndexFunc(gpus, func(g GPU) bool { return g.BDF == bdf })
		if index < 0 {
			index, gpus = len(gpus), append(gpus, GPU{Vendor: NVIDIA, BDF: bdf})
		}
		for line := range strings.Lines(readText(files, path.Join(root, name, "information"))) {
			key, value, _ := strings.Cut(line, ":")
			if strings.TrimSpace(key) == "Model" {
				gpus[index].Name = strings.TrimSpace(value)
			}
		}
	}
	return gpus
}

// nvidiaTools asks nvidia-smi, and notes any other answer than a list as a problem.
func (r *Result) nvidiaTools(ctx context.Context, m Machine) []Answer {
	out, err := m.Run(ctx, "nvidia-smi", "--query-gpu="+smiQuery, "--format=csv")
	if err != nil {
		return nil
	}
	answers := smiAnswers(out.Text)
	if len(answers) == 0 {
		r.nvidiaText(out.Text, out.Exit)
	} else if r.DriverVersion == "" {
		r.DriverVersion = smiRows(out.Text)[0]("driver_version")
	}
	return answers
}

// smiRows reads the CSV of an nvidia-smi query: for each device a look-up of fields by name; "" for
// "[N/A]", "Not Supported" and missing columns.
func smiRows(text string) []func(name string) string {
	rd := csv.NewReader(strings.NewReader(text))
	rd.FieldsPerRecord = -1
	rd.TrimLeadingSpace = true
	rd.LazyQuotes = true
	rows, err := rd.ReadAll()
	if err != nil || len(rows) < 2 {
		return nil
	}
	column := map[string]int{}
	for i, h := range rows[0] {
		name, _, _ := strings.Cut(strings.TrimSpace(h), " [")
		column[name] = i
	}
	_, named := column["name"]
	if _, placed := column["pci.bus_id"]; !named && !placed {
		return nil
	}
	var fields []func(string) string
	for _, row := range rows[1:] {
		fields = append(fields, func(name string) string {
			i, ok := column[name]
			if !ok || i >= len(row) {
				return ""
			}
			v := strings.TrimSpace(row[i])
			if strings.HasPrefix(v, "[") || v == "Not Supported" || v == "N/A" {
				return ""
			}
			return v
		})
	}
	return fields
}

func smiAnswers(text string) []Answer {
	var answers []Answer
	for _, field := range smiRows(text) {
		a := Answer{Name: field("name"), BDF: normalBDF(field("pci.bus_id")),
			MemoryMiB: mebibytes(field("memory.total")),
			FreeMiB:   mebibytes(field("memory.free")), MIG: field("mig.mode.current") == "Enabled"}
		// device, then vendor
		if id := strings.ToLower(field("pci.device_id")); len(id) == len("0x232110de") {
			a.PCI = id[6:] + ":" + id[2:6]
		}
		if cc := field("compute_cap"); cc != "" {
			a.Arch = "sm_" + strings.ReplaceAll(cc, ".", "")
		}
		if used := field("memory.used"); a.FreeMiB == 0 && used != "" && a.MemoryMiB > 0 {
			a.FreeMiB = a.MemoryMiB - mebibytes(used)
		}
		answers = append(answers, a)
	}
	return answers
}

// mebibytes reads "81559 MiB".
func mebibytes(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(s, "MiB")))
	return n
}

var busID = regexp.MustCompile(`GPU ?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9])`)

// nvidiaText finds the meaning of a tool's or the driver's words.
func (r *Result) nvidiaText(text string, exit int) {
	code := r.explain(NVIDIA, text)
	if m := busID.FindStringSubmatch(text); m != nil && code == "gpu-lost" {
		r.GPUs = append(r.GPUs, GPU{Vendor: NVIDIA, BDF: normalBDF(m[1]),
			Reason: "it fell off the bus"})
	}
	if exit != 0 && code == "" {
		r.problem(NVIDIA, "unknown", "nvidia-smi fails: "+firstLine(text))
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
