// What is known of the CPU and its memory without loading a model, for whoever shows the machine.

package serve

import (
	"io/fs"

	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Cores is how many cores this process may use.
func Cores() int { return cpu.Cores() }

// ISAs are the instruction sets that the CPU engine has kernels for here, the best one last.
func ISAs() []string { return cpu.ISAs() }

// FreeMemory is what is free of the host's memory, in bytes.
func FreeMemory() (free int64, err error) {
	dev, err := cpu.New(1)
	if err != nil {
		return 0, err
	}
	_, free = dev.Memory()
	return free, dev.Close()
}

// CPUSources are the sources of the CPU engine, as they are in this program.
func CPUSources() fs.FS { return cpu.Sources }

// HostReadRate measures how fast the host's memory is read, in bytes a second.
func HostReadRate(host engine.Backend) float64 { return gpu.HostRate(HostDevice(host)) }
