package detect

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// GPUs inside processors, which share the host's memory. What must stay true: no byte is counted
// twice, as the part that the firmware has set aside and as the host's.

// SharesHost tells whether the GPU's memory is the host's: an integrated GPU's is, unless the
// firmware has set aside more for it than it may use of the host's.
func (g GPU) SharesHost() bool { return g.Integrated && g.VRAMMiB <= g.GTTMiB }

// shareMemory finds what an integrated GPU may use: its carve-out or the host's memory through GTT,
// whichever is larger, never both.
func shareMemory(files fs.FS, g *GPU) {
	if !g.Integrated {
		return
	}
	cards, _ := fs.Glob(files, "sys/class/drm/card*/device/mem_info_gtt_total")
	for _, gtt := range cards {
		dir := path.Dir(gtt)
		if id := readText(files, dir+"/vendor") + ":" +
			readText(files, dir+"/device"); g.PCI != "" &&
			strings.ReplaceAll(id, "0x", "") != g.PCI {
			continue
		}
		g.GTTMiB, g.VRAMMiB = bytesMiB(readText(files, gtt)),
			bytesMiB(readText(files, dir+"/mem_info_vram_total"))
		g.MemoryMiB = max(g.GTTMiB, g.VRAMMiB)
	}
}

func bytesMiB(s string) int {
	n, _ := strconv.ParseInt(s, 10, 64)
	return int(n >> 20)
}

// hostMemory gives an NVIDIA chip that shares the host's memory (DGX Spark) all of it: neither
// nvidia-smi nor NVML has another figure.
func (g *GPU) hostMemory(files fs.FS) {
	if g.Vendor != NVIDIA || !g.Integrated || g.MemoryMiB > 0 {
		return
	}
	text := readText(files, "proc/meminfo")
	g.MemoryMiB, g.FreeMiB = int(Meminfo(text, "MemTotal")>>20),
		int(Meminfo(text, "MemAvailable")>>20)
}

// Meminfo is a line of Linux's list of its memory, in bytes; 0 if it is missing.
func Meminfo(text, name string) int64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name+":" && f[2] == "kB" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return max(kib, 0) << 10
		}
	}
	return 0
}
