//go:build !linux

package chat

import "time"

var epoch = time.Now()

// cpuTime is the time on the wall, where the thread's own is not to be had.
func cpuTime() time.Duration { return time.Since(epoch) }
