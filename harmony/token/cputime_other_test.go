//go:build !unix

package token

import "time"

var started = time.Now()

// cpuTime is the time on the clock where the system has no better.
func cpuTime() time.Duration { return time.Since(started) }
