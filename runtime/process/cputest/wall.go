//go:build !linux && !darwin && !freebsd

// Where the system does not tell processor time.

package cputest

import "time"

var began = time.Now()

// Thread and Process are the time by the clock, where processor time is not to be had.
func Thread() time.Duration { return time.Since(began) }

func Process() time.Duration { return time.Since(began) }
