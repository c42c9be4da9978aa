//go:build !linux

package worker

import "errors"

// Serve is the worker, which needs Linux.
func Serve(Opener) error { return errors.New("GPU workers need Linux") }
