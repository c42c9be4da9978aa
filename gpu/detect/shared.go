package detect

import (
	"io/fs"
	"strconv"
	"strings"
)

// NVIDIA's chips that share the host's memory (DGX Spark): neither their driver's tool nor NVML has a figure for it. What they have is what the host has.

// hostMemory takes the host's memory for a chip that shares it and of which nobody has said how much.
func (g *GPU) hostMemory(files fs.FS) {
	if g.Vendor != NVIDIA || !g.Integrated || g.MemoryMiB > 0 {
		return
	}
	text := readText(files, "proc/meminfo")
	g.MemoryMiB, g.FreeMiB = meminfo(text, "MemTotal"), meminfo(text, "MemAvailable")
}

// meminfo is a line of Linux's list, in MiB; 0 where there is none.
func meminfo(text, name string) int {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name+":" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil || n < 0 {
				return 0
			}
			return int(n >> 10)
		}
	}
	return 0
}
