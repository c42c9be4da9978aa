package tools

import "time"

const MostKeptTools = maxIdleTools

// SetIdle sets how long tools are kept for the next response; back sets what it was before.
func SetIdle(idle time.Duration) (back func()) {
	before := toolIdle
	toolIdle = idle
	return func() { toolIdle = before }
}
