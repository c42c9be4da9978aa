package machine

import (
	"sync"

	"golang.org/x/sys/unix"
)

// machine is the performance cores. macOS pins no thread to a core, but runs the pool's threads on
// these, since their class of service is that of work that somebody waits for. Efficiency cores are
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
