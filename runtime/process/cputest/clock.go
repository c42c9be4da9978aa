//go:build linux || darwin || freebsd

// Where the system tells processor time.

package cputest

import (
	"time"

	"golang.org/x/sys/unix"
)

// Thread is the processor time of this thread; runtime.LockOSThread keeps it the same.
func Thread() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// Process is the processor time of all threads of this process.
func Process() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
