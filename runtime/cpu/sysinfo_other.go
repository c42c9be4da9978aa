//go:build !linux

package cpu

// kernelMemory is known on Linux only.
func kernelMemory() (total, free int64) { return 0, 0 }
