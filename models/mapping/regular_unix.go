//go:build unix

// How a file is opened on Unix so that a pipe does not make the opener wait.

package mapping

import "golang.org/x/sys/unix"

const nonBlocking = unix.O_NONBLOCK
