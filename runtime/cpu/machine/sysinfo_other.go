//go:build !linux && !darwin && !windows

package machine

// kernelMemory is not known here.
func kernelMemory() (total, free int64) { return 0, 0 }
