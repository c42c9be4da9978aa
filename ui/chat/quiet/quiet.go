// Package quiet keeps the terminal libraries from asking the terminal anything when the program
// starts.
//
// Bubble Tea asks for the background colour in an init function, so every verb would do it: on a
// terminal that does not answer it waits 5 s and leaves the question on the screen. The chat draws
// in the terminal's own sixteen colours and has no use for the answer. A terminal called "dumb" is
// not asked, so TERM says that until the libraries are ready.
//
// What must stay true: this package imports nothing but os, so that it is initialised before the
// libraries; package chat, which imports them, calls Restore in its own initialisation.
package quiet

import "os"

var term, set = os.LookupEnv("TERM")

func init() { _ = os.Setenv("TERM", "dumb") }

// Restore puts TERM back.
func Restore() {
	if set {
		_ = os.Setenv("TERM", term)
		return
	}
	_ = os.Unsetenv("TERM")
}
