//go:build linux

package worker

import "golang.org/x/sys/unix"

// crash ends the process as a driver does that follows a wrong pointer: by a signal that no Go code
// sees.
func crash() {
	unix.Kill(unix.Getpid(), unix.SIGSEGV)
	select {}
}
