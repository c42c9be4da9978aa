//go:build linux || darwin || freebsd

// Processor time: unlike the time by the clock it is little changed by what else the machine does,
// so a test can be held to it.

package hosttest

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is what this thread has computed so far; runtime.LockOSThread keeps it the same.
func ThreadTime() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// ProcessTime is what all threads of this process have computed so far.
func ProcessTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
