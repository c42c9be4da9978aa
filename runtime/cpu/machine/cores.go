// Package machine knows the host that the CPU engine runs on: the cores, memory nodes and memory
// that this process may use. It has no C++, so that the tests of its arithmetic cost no compilation
// of the engine.
package machine

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// How many cores and how much memory this process may use. Affinity alone is not enough: in a
// container the kernel shows every core and then throttles; a thread more than the quota allows
// makes every barrier wait for the throttled one.

// Cores is the number of threads worth starting: the physical cores in the affinity mask, cut down
// to the cgroup quota.
func Cores() int {
	return coresOf(machine(), runtime.NumCPU(), cgroupCores("/proc/self/cgroup", "/sys/fs/cgroup"))
}

// coresOf counts the cores, or, if they are not known, the processors that the affinity mask
// allows, up to the quota; 0: no quota.
func coresOf(t topology, processors, quota int) int {
	n := processors
	if len(t) > 0 {
		n = len(t)
	}
	if quota > 0 {
		n = min(n, quota)
	}
	return max(n, 1)
}

// cgroupCores is the CPU quota in whole cores, rounded up; 0 without one. It reads the
// limits of the process's own group and of every group above it (version 2), or the cpu
// controller's (version 1).
func cgroupCores(self, root string) int {
	least := math.Inf(1)
	for _, dir := range cgroupDirs(self, root) {
		if f := strings.Fields(readLine(filepath.Join(dir, "cpu.max"))); len(f) == 2 {
			least = min(least, ratio(f[0], f[1]))
		}
		least = min(least, ratio(readLine(filepath.Join(dir, "cpu.cfs_quota_us")),
			readLine(filepath.Join(dir, "cpu.cfs_period_us"))))
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return int(math.Ceil(least))
}

// cgroupDirs are the folders whose limits bind this process.
func cgroupDirs(self, root string) []string {
	var dirs []string
	data, _ := os.ReadFile(self) // no file, no groups
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		base := root
		switch {
		case f[1] == "": // version 2
		case strings.Contains(","+f[1]+",", ",cpu,"):
			base = filepath.Join(root, "cpu")
		case strings.Contains(","+f[1]+",", ",memory,"):
			base = filepath.Join(root, "memory")
		default:
			continue
		}
		// the kernel's names have slashes, whatever the system that shows them
		for group := path.Clean("/" + f[2]); ; group = path.Dir(group) {
			dirs = append(dirs, filepath.Join(base, group))
			if group == "/" {
				break
			}
		}
	}
	return dirs
}

// ratio is quota/period, infinite without a limit.
func ratio(quota, period string) float64 {
	q, errQ := strconv.ParseFloat(quota, 64)
	p, errP := strconv.ParseFloat(period, 64)
	if errQ != nil || errP != nil || q <= 0 || p <= 0 {
		return math.Inf(1)
	}
	return q / p
}

func readLine(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// Memory is the machine's memory, or the cgroup's limit, and the free part of it, in bytes. Cached
// files count as free: the system reclaims them.
func Memory() (total, free int64) {
	return memory("/proc/meminfo", "/proc/self/cgroup", "/sys/fs/cgroup")
}

func memory(meminfo, self, root string) (total, free int64) {
	data, _ := os.ReadFile(meminfo)
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			continue
		}
		switch f[0] {
		case "MemTotal:":
			total = kib << 10
		case "MemAvailable:":
			free = kib << 10
		}
	}
	if total == 0 { // no /proc: an empty chroot
		total, free = kernelMemory()
	}
	for _, dir := range cgroupDirs(self, root) {
		limit, used := "memory.max", "memory.current"
		if readLine(filepath.Join(dir, limit)) == "" {
			limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
		}
		most, err := strconv.ParseInt(readLine(filepath.Join(dir, limit)), 10, 64)
		if err != nil || most <= 0 || most >= total {
			continue // "max", or none
		}
		total = most
		if now, err := strconv.ParseInt(readLine(filepath.Join(dir, used)), 10, 64); err == nil {
			free = min(free, max(0, most-now))
		}
	}
	return total, free
}
