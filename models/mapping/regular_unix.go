//go:build unix

// The open flag on Unix with which a pipe does not block the opener.

package mapping

import "golang.org/x/sys/unix"

const nonBlocking = unix.O_NONBLOCK
