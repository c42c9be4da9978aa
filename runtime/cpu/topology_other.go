//go:build !linux

package cpu

// machine knows nothing: cores are the system's, and memory is where the system puts it.
func machine() topology { return nil }

func interleave([]byte, []int) error { return nil }
