package chat

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time that this thread has used.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
