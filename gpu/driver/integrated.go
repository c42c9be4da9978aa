package driver

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// NVIDIA's cards that share the host's memory (DGX Spark, Jetson). Their driver calls free only
// what Linux has not put anything into, also not the model's own file, whose pages Linux gives back
// when memory is asked for. NVIDIA says so itself ("Memory reporting differences with unified
// memory architecture").

// meminfo is where Linux tells about its memory.
var meminfo = "/proc/meminfo"

// shared corrects a driver's answer for a device that shares the host's memory, or replaces a
// refusal: what the host could give counts as free.
func (c *Context) shared(total, free int64, err error) (int64, int64, error) {
	if c.d.api != CUDA || errors.Is(err, ErrLost) {
		return total, free, err
	}
	if is, failed := c.device.Attribute(Integrated); failed != nil || is == 0 {
		return total, free, err
	}
	have, ok := available(meminfo)
	if !ok {
		return total, free, err
	}
	if err != nil {
		total, free = c.device.Memory, 0
	}
	return total, max(free, min(have, total)), nil
}

// available is what Linux could give without swapping, in bytes.
func available(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}
