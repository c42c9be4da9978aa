//go:build !linux && !darwin && !freebsd

// The time by the clock, where the system does not tell processor time.

package hosttest

import "time"

var began = time.Now()

func ThreadTime() time.Duration { return time.Since(began) }

func ProcessTime() time.Duration { return time.Since(began) }
