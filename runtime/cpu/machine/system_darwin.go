package machine

import (
	"sync"

	"golang.org/x/sys/unix"
)

// macOS's memory and cores.

// kernelMemory asks macOS. Free are the unused pages and those that only cache a file, which the
// system reclaims when needed.
func kernelMemory() (total, free int64) {
	size, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0, 0
	}
	unused, _ := unix.SysctlUint32("vm.page_free_count")
	copies, _ := unix.SysctlUint32("vm.page_pageable_external_count")
	return int64(size), (int64(unused) + int64(copies)) * int64(unix.Getpagesize())
}

// machine is the performance cores. macOS pins no thread to a core, but runs the pool's threads on
// these, since their class of service is that of work a user waits for. Efficiency cores are
// a third as fast and are left for everything else.
var machine = sync.OnceValue(func() topology {
	n, err := unix.SysctlUint32("hw.perflevel0.physicalcpu")
	if err != nil { // before macOS 12, or one kind of core
		if n, err = unix.SysctlUint32("hw.physicalcpu"); err != nil {
			return nil
		}
	}
	return make(topology, n)
})
