//go:build !linux

package grammar

import "time"

var begin = time.Now()

// threadTime and processTime are the time by the clock, where that of a thread or process is not to
// be had.
func threadTime() time.Duration { return time.Since(begin) }

func processTime() time.Duration { return time.Since(begin) }
