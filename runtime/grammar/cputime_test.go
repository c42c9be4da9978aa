//go:build !linux

package grammar

import "time"

var begin = time.Now()

// threadTime is the time by the clock, where that of a thread is not to be had.
func threadTime() time.Duration { return time.Since(begin) }
