//go:build !linux && !darwin

// Other consoles need no such change; see typing_unix.go.

package cli

import "io"

func holdTyping(io.Reader) (restore func()) { return func() {} }
