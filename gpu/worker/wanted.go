package worker

import "encoding/json"

// What a parent asks of a worker beside its engine; apart from the rest since it has meaning on systems that have no worker, too.

// Wanted is what a worker is to open.
type Wanted struct {
	GPUs []int // which of the drivers' devices; none: the first that works
	// Place says how a model is to be placed over several devices; nil: on one. What it says is between the two programs and nothing to this package.
	Place json.RawMessage `json:",omitempty"`
}
