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

	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"
)

// holdTyping returns a function that puts the terminal back as it was.
func holdTyping(in io.Reader) (restore func()) {
	f, ok := in.(*os.File)
	if !ok {
		return func() {}
	}
	before, err := term.GetState(f.Fd())
	if err != nil { // it is no terminal
		return func() {}
	}
	held := *before
	held.Iflag &^= unix.ICRNL
	held.Lflag &^= unix.ECHO
	_ = term.SetState(f.Fd(), &held) // where it cannot, keys are shown
	return func() { _ = term.Restore(f.Fd(), before) }
}
