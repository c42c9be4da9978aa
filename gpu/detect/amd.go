package detect

// AMD: PCI, KFD's topology in sysfs, the right to open /dev/kfd, the runtime's answers; without
// answers rocm-smi's JSON and rocminfo. KFD's facts that are easy to get wrong:
// local_mem_size is always 0 (memory is in mem_banks with heap_type 1 or 2); units are
// simd_count/simd_per_cu (the array counts have slots that are fused off); name says "ip
// discovery"; partitions share unique_id.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldMEC: gfx942's compute firmware below this needs HSA_NO_SCRATCH_RECLAIM=1.
const oldMEC = 177

// smallIGPU: an integrated GPU with fewer units is left to the desktop; the CPU is faster.
const smallIGPU = 16

func (r *Result) amd(ctx context.Context, m Machine, cards []pciCard) {
	gpus, topology := kfdGPUs(m.Files)
	r.AMDDriver = strings.TrimSpace(readText(m.Files, "sys/module/amdgpu/version"))
	var onBus []pciCard
	for _, c := range cards {
		if !strings.HasPrefix(c.id, "1002:") {
			continue
		}
		onBus = append(onBus, c)
		for i := range gpus {
			if gpus[i].BDF == c.bdf {
				gpus[i].PCI, gpus[i].KernelDriver = cmp.Or(gpus[i].PCI, c.id), c.driver
			}
		}
	}
	answers, err := m.Ask(AMD)
	gpus = merge(gpus, answers, AMD)
	if err != nil {
		r.problem(AMD, "runtime-error", err.Error())
	}
	if len(gpus) == 0 {
		gpus = r.rocmTools(ctx, m)
	}
	r.kfdRights(ctx, m, len(gpus) > 0 || len(onBus) > 0 || topology)

	// KFD passed over a card that only the bus shows; the kernel's log says why.
	for _, c := range onBus {
		ok := slices.ContainsFunc(gpus, func(g GPU) bool { return g.BDF == c.bdf })
		chip := chipOf(c.id, 0, 0)
		if ok || len(gpus) > 0 && !topology || chip == nil || chip.Integrated {
			continue // an integrated GPU that only the bus shows drives the desktop
		}
		g := GPU{Vendor: AMD, PCI: c.id, BDF: c.bdf, KernelDriver: c.driver}
		if topology && r.blocking(AMD) == nil {
			r.problem(AMD, "kfd-skipped", lineWith(r.kernelLog(ctx, m), "skipped device "+c.id))
			g.Reason = "the kernel's compute driver passes it over"
		} else if c.driver != "amdgpu" && r.blocking(AMD) == nil {
			r.problem(AMD, "driver-not-loaded",
				"an AMD GPU is there, but the amdgpu module does not hold it")
		}
		gpus = append(gpus, g)
	}
	for i := range gpus {
		shareMemory(m.Files, &gpus[i])
		c := chipOf(gpus[i].PCI, gpus[i].Units, gpus[i].MemoryMiB)
		if c != nil && (c.ID == "amd-mi300x" || c.ID == "amd-mi325x") && gpus[i].MECFirmware > 0 &&
			gpus[i].MECFirmware < oldMEC {
			r.note(Problem{Vendor: AMD, Code: "old-mec-firmware",
				Text:   fmt.Sprintf("MEC firmware %d < %d", gpus[i].MECFirmware, oldMEC),
				Advice: true,
				Remedy: "our own process sets HSA_NO_SCRATCH_RECLAIM=1; export it for vLLM, or " +
					"update the firmware"})
		}
	}
	r.GPUs = append(r.GPUs, gpus...)
}

// kfdNodes is the folder in which KFD lists processors and GPUs.
const kfdNodes = "sys/class/kfd/kfd/topology/nodes"

// kfdGPUs reads the topology. The second result says whether there is one.
func kfdGPUs(files fs.FS) ([]GPU, bool) {
	var gpus []GPU
	for _, name := range namesIn(files, kfdNodes) {
		node, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		dir := path.Join(kfdNodes, name)
		p := properties(readText(files, dir+"/properties"))
		if p["simd_count"] == 0 || p["gfx_target_version"] == 0 {
			continue // a processor
		}
		g := GPU{Vendor: AMD, Node: node, Arch: gfxName(int(p["gfx_target_version"])),
			RenderMinor: int(p["drm_render_minor"]), Card: p["unique_id"],
			Hive: p["hive_id"], BDF: kfdBDF(p["domain"], p["location_id"])}
		if id := p["device_id"]; id != 0 {
			g.PCI = fmt.Sprintf("1002:%04x", id)
		}
		if per := p["simd_per_cu"]; per > 0 {
			g.Units = int(p["simd_count"] / per)
		}
		if strings.HasPrefix(g.Arch, "gfx9") {
			g.MECFirmware = int(p["fw_version"])
		}
		g.Integrated = p["cpu_cores_count"] > 0 || slices.Contains(integratedArchs, g.Arch)
		g.MemoryMiB = kfdMemory(files, dir+"/mem_banks")
		gpus = append(gpus, g)
	}
	slices.SortFunc(gpus, func(a, b GPU) int { return a.Node - b.Node })
	kfdLinks(files, gpus)
	return gpus, exists(files, kfdNodes)
}

// Cards may be linked directly: KFD lists each node's links, most of which are PCIe. NVIDIA's are
// in no file: the catalogue says what a chip can have (Figures.PeerLink).

// kfdXGMI is the type of a direct link between AMD's cards (HSA_IOLINKTYPE_XGMI).
const kfdXGMI = 11

// kfdLinks notes for each GPU the addresses of the GPUs that it is linked to.
func kfdLinks(files fs.FS, gpus []GPU) {
	addresses := map[int]string{}
	for _, g := range gpus {
		addresses[g.Node] = g.BDF
	}
	for i := range gpus {
		dir := path.Join(kfdNodes, fmt.Sprint(gpus[i].Node), "io_links")
		for _, link := range namesIn(files, dir) {
			p := properties(readText(files, path.Join(dir, link, "properties")))
			if bdf := addresses[int(p["node_to"])]; p["type"] == kfdXGMI && bdf != "" &&
				bdf != gpus[i].BDF {
				gpus[i].Linked = append(gpus[i].Linked, bdf)
			}
		}
		slices.Sort(gpus[i].Linked)
	}
}

// KFDArch is KFD's architecture for a PCI address, or "". If no node has the address's function, it
// is ignored: kernels count partitions of a card there, and some runtimes report 0.
func KFDArch(files fs.FS, pci string) (arch string) {
	pci = strings.ToLower(pci)
	card, _, _ := strings.Cut(pci, ".")
	for _, name := range namesIn(files, kfdNodes) {
		p := properties(readText(files, path.Join(kfdNodes, name, "properties")))
		nodeAddress := kfdBDF(p["domain"], p["location_id"])
		address, _, _ := strings.Cut(nodeAddress, ".")
		if p["gfx_target_version"] == 0 || address != card {
			continue
		}
		if arch = gfxName(int(p["gfx_target_version"])); nodeAddress == pci {
			return arch
		}
	}
	return arch
}

// properties reads lines of "name number".
func properties(text string) map[string]uint64 {
	p := map[string]uint64{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 {
			if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				p[f[0]] = n
			}
		}
	}
	return p
}

// kfdMemory sums a card's video memory, in MiB: heap 1, which the host sees, and heap 2.
func kfdMemory(files fs.FS, dir string) int {
	var total uint64
	for _, bank := range namesIn(files, dir) {
		p := properties(readText(files, path.Join(dir, bank, "properties")))
		if h := p["heap_type"]; h == 1 || h == 2 {
			total += p["size_in_bytes"]
		}
	}
	return int(total >> 20)
}

// gfxName turns KFD's number into the compiler's name: 90402 is gfx942, 90010 gfx90a.
func gfxName(v int) string { return fmt.Sprintf("gfx%d%x%x", v/10000, v/100%100, v%100) }

// kfdBDF turns KFD's address (bus << 8 | device << 3 | function) into sysfs's.
func kfdBDF(domain, location uint64) string {
	if domain == 0 && location == 0 {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%d", domain, location>>8&0xff, location>>3&0x1f, location&7)
}

// kfdRights finds out whether this user may compute.
func (r *Result) kfdRights(ctx context.Context, m Machine, amdHere bool) {
	var text string
	if m.OpenKFD != nil {
		err := m.OpenKFD()
		switch {
		case err == nil || !amdHere:
			return
		case errors.Is(err, fs.ErrNotExist):
			text = "No such file or directory"
		case errors.Is(err, fs.ErrPermission):
			text = "Permission denied"
		default:
			text = err.Error()
		}
		text = "Unable to open /dev/kfd read-write: " + text
	}
	if out, err := m.Run(ctx, "rocminfo"); err == nil &&
		(text == "" || strings.Contains(out.Text, "is not member of")) {
		text = out.Text
	}
	if r.explain(AMD, text) != "" {
		return
	}
	switch {
	case r.Platform == "wsl2" && len(r.GPUs) == 0 && len(r.Problems) == 0 &&
		!exists(m.Files, "dev/kfd"):
		r.problem(AMD, "wsl-amd", "no /dev/kfd and no /dev/dri in WSL2")
	case strings.Contains(text, "Unable to open /dev/kfd"):
		const unsupported = "not supported in kfd"
		if line := lineWith(r.kernelLog(ctx, m), unsupported); line != unsupported {
			r.problem(AMD, "too-old", line)
			return
		}
		r.problem(AMD, "kfd-error", lineWith(text, "Unable to open /dev/kfd"))
	}
}

// kernelLog is dmesg, if this user may read it.
func (r *Result) kernelLog(ctx context.Context, m Machine) string {
	out, _ := m.Run(ctx, "dmesg")
	return out.Text
}

// rocmTools asks rocm-smi for JSON, and MI300's firmware, then rocminfo.
func (r *Result) rocmTools(ctx context.Context, m Machine) []GPU {
	if out, err := m.Run(ctx, "rocm-smi", "--showproductname", "--showmeminfo", "vram",
		"--json"); err == nil {
		if gpus := smiCards(out.Text); len(gpus) > 0 {
			if gpus[0].Arch == "gfx942" {
				out, _ := m.Run(ctx, "rocm-smi", "--showfw") // without an answer: unknown
				for i := range gpus {
					gpus[i].MECFirmware = smiFirmware(out.Text)
				}
			}
			return gpus
		}
	}
	if out, err := m.Run(ctx, "rocminfo"); err == nil {
		return agents(out.Text)
	}
	return nil
}

// smiCards reads rocm-smi's JSON: an object a card, all values text.
func smiCards(text string) []GPU {
	var cards map[string]map[string]string
	if json.Unmarshal([]byte(text), &cards) != nil {
		return nil
	}
	var gpus []GPU
	for _, c := range cards {
		node, _ := strconv.Atoi(c["Node ID"])
		g := GPU{Vendor: AMD, Name: c["Card Series"], Node: node, Arch: c["GFX Version"],
			MemoryMiB: bytesMiB(c["VRAM Total Memory (B)"])}
		if id, ok := strings.CutPrefix(c["Card Model"], "0x"); ok {
			g.PCI = "1002:" + strings.ToLower(id)
		}
		g.Integrated = slices.Contains(integratedArchs, g.Arch)
		gpus = append(gpus, g)
	}
	slices.SortFunc(gpus, func(a, b GPU) int { return a.Node - b.Node })
	return gpus
}

var mecLine = regexp.MustCompile(`\bMEC firmware version:\s*(\d+)`)

// smiFirmware is the cards' MEC firmware, as in "GPU[0] : MEC firmware version: 138".
func smiFirmware(text string) int {
	m := mecLine.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

var agentNumber = regexp.MustCompile(`^\d+`)

// agents reads rocminfo's list of agents: "Key:   value" lines, an agent from each "Name:".
func agents(text string) []GPU {
	var gpus []GPU
	var g GPU
	var device string
	end := func() {
		if strings.HasPrefix(g.Arch, "gfx") && (device == "GPU" || device == "") {
			gpus = append(gpus, g)
		}
		g, device = GPU{Vendor: AMD}, ""
	}
	end()
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		n, _ := strconv.Atoi(agentNumber.FindString(value))
		switch key {
		case "Name":
			if strings.HasPrefix(value, "amdgcn-") {
				continue // the instruction set of the agent above
			}
			end()
			g.Arch = value
		case "Marketing Name":
			g.Name = value
		case "Device Type":
			device = value
		case "Node":
			g.Node = n
		case "Chip ID":
			g.PCI = fmt.Sprintf("1002:%04x", n)
		case "BDFID":
			g.BDF = kfdBDF(0, uint64(n))
		case "Compute Unit":
			g.Units = n
		}
		g.Integrated = slices.Contains(integratedArchs, g.Arch)
	}
	end()
	return gpus
}
