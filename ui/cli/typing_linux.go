// The requests that read and set a terminal's state on Linux; see typing_unix.go.

package cli

import "golang.org/x/sys/unix"

const getTermios, setTermios = unix.TCGETS, unix.TCSETS
