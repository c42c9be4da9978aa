package grammar

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time that this thread has had: other programs on the machine change it little.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
