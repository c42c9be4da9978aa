package machine

import "syscall"

// kernelMemory asks the kernel itself, which needs no /proc. The kernel does not count cached files
// as free.
func kernelMemory() (total, free int64) {
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) != nil {
		return 0, 0
	}
	unit := int64(s.Unit)
	return int64(s.Totalram) * unit, (int64(s.Freeram) + int64(s.Bufferram)) * unit
}
