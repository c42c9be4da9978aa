package cpu

import (
	"sync"

	"golang.org/x/sys/unix"
)

// machine is the performance cores: macOS keeps threads on no core, and gives these to the pool's
// threads, whose class of service is that of work that somebody waits for. Efficiency cores are a
// third as fast and stay for everything else.
var machine = sync.OnceValue(func() topology {
	n, err := unix.SysctlUint32("hw.perflevel0.physicalcpu")
	if err != nil { // before macOS 12, or one kind of core
		if n, err = unix.SysctlUint32("hw.physicalcpu"); err != nil {
			return nil
		}
	}
	return make(topology, n)
})
