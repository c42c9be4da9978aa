//go:build unix

package token

import (
	"syscall"
	"time"
)

// cpuTime is what this process has computed so far. It says what the code costs on a machine that
// has other work too.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
