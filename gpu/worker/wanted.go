package worker

import "encoding/json"

// Wanted is what a worker is to open.
type Wanted struct {
	GPUs []int // which of the drivers' devices; none: the first that works
	// Place says how a model is to be placed over several devices; nil: on one. What it says is between the two programs and nothing to this package.
	Place json.RawMessage `json:",omitempty"`
}
