//go:build !linux && !darwin

// Where a console has no such driver, nothing needs to be held; see typing_unix.go.

package cli

import "io"

func holdTyping(io.Reader) (restore func()) { return func() {} }
