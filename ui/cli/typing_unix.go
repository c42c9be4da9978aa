//go:build linux || darwin

// Keys typed while a model loads belong to the chat that comes.
//
// Until the chat takes the terminal, the terminal's driver would echo them and turn Enter into a
// line feed, which the chat reads as Ctrl+J. So echo and that translation are switched off from the
// moment loading begins. Ctrl-C still interrupts.

package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// holdTyping returns a function that puts the terminal back as it was.
func holdTyping(in io.Reader) (restore func()) {
	f, ok := in.(*os.File)
	if !ok || !isTerminal(in) {
		return func() {}
	}
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return func() {}
	}
	held := *before
	held.Iflag &^= unix.ICRNL
	held.Lflag &^= unix.ECHO
	if unix.IoctlSetTermios(fd, setTermios, &held) != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }
}
