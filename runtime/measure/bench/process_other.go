//go:build !unix

package bench

import "time"

// Not known here.
func processorTime() time.Duration { return 0 }
func residentBytes() int64         { return 0 }
func loadAverage() float64         { return 0 }
