// What is known of the machine and of this build without loading a model.

package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"

	"github.com/ossrun/ossrun/assets"
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

// CPUKernelHash is the first 12 digits of the SHA-256 over names and contents of the CPU engine's
// sources: two builds that compute the same way have the same.
func CPUKernelHash() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(cpu.Sources, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(cpu.Sources, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", path, len(text))
		sum.Write(text)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))[:12], err
}

// HostReadRate measures how fast the host's memory is read, in bytes a second.
func HostReadRate(host engine.Backend) float64 { return gpu.HostRate(HostDevice(host)) }

// Static tells an executable without a dynamic loader, which has GPU drivers only through a worker.
const Static = gpu.Static

// WorkerVerb is how this program is told to be the worker.
const WorkerVerb = gpu.WorkerVerb

// RunWorker serves the program that started it, until that ends or says goodbye.
func RunWorker() error { return gpu.RunWorker() }

// GPUNote is what a static executable without a worker says of the GPU.
func GPUNote() string {
	if Static && len(assets.GPUWorker) == 0 {
		return "; " + gpu.NoWorker
	}
	return ""
}
