//go:build !unix

package load

import "time"

var began = time.Now()

func processorSeconds() float64 { return time.Since(began).Seconds() }
