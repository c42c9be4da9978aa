//go:build !linux

package worker

import "errors"

func Serve(Opener) error { return errors.New("GPU workers need Linux") }
