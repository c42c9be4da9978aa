//go:build !linux

package worker

import "errors"

// Serve is the worker, which needs Linux.
func Serve(Opener) error { return errors.New("GPU workers need Linux") }

// Handed is the demo's pack that a worker was given, which needs Linux.
func Handed() ([]byte, error) { return nil, errors.New("GPU workers need Linux") }
