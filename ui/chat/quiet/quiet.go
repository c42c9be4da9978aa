// Package quiet keeps terminal libraries from querying the terminal when the program starts.
//
// Bubble Tea queries the background colour in an init function, so every verb would do it: on a
// terminal that does not answer it waits 5 s and leaves the query on the screen. The chat uses the
// terminal's own sixteen colours and does not need the answer. A terminal called "dumb" is not
// queried, so TERM is "dumb" until the libraries are initialised.
//
// What must stay true: this package imports only os, so that it is initialised before the
// libraries; package chat, which imports them, calls Restore in its own initialisation.
package quiet

import "os"

var term, set = os.LookupEnv("TERM")

func init() { _ = os.Setenv("TERM", "dumb") }

func Restore() {
	if set {
		_ = os.Setenv("TERM", term)
		return
	}
	_ = os.Unsetenv("TERM")
}
