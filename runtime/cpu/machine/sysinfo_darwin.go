package machine

import "golang.org/x/sys/unix"

// kernelMemory asks macOS. Free are the pages that nobody uses and those that only cache a file,
// which the system reclaims when needed.
func kernelMemory() (total, free int64) {
	size, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0, 0
	}
	unused, _ := unix.SysctlUint32("vm.page_free_count")
	copies, _ := unix.SysctlUint32("vm.page_pageable_external_count")
	return int64(size), (int64(unused) + int64(copies)) * int64(unix.Getpagesize())
}
