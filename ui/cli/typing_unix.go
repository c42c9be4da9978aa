//go:build linux || darwin

// Keys typed while a model loads are for the chat that follows.
//
// Until the chat takes over, the terminal driver would echo them and turn Enter into a line feed,
// which the chat reads as Ctrl+J. So echo and that translation are turned off when loading begins.
// Ctrl-C still interrupts.

package cli

import (
	"io"
	"os"

	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"
)

// holdTyping returns a function that restores the terminal.
func holdTyping(in io.Reader) (restore func()) {
	f, ok := in.(*os.File)
	if !ok {
		return func() {}
	}
	state, err := term.GetState(f.Fd())
	if err != nil { // not a terminal
		return func() {}
	}
	quiet := *state
	quiet.Iflag &^= unix.ICRNL
	quiet.Lflag &^= unix.ECHO
	_ = term.SetState(f.Fd(), &quiet) // on failure keys are echoed
	return func() { _ = term.Restore(f.Fd(), state) }
}
