// What can be wrong with sampled tokens. A fault is counted and never stops the reading; the counts
// are a metric of the port, since a model or a sampler that goes wrong shows there first.

package harmony

// Fault is a kind of place where tokens are not legal Harmony.
type Fault uint8

const (
	FaultStart Fault = iota // a message begins without <|start|>
	FaultRole               // a header has no role, or an unknown one
	// a channel mark without a channel, an unknown channel, or two of them
	FaultChannel
	FaultHeader  // words that a header has no place for
	FaultMessage // a header ends without <|message|>
	FaultEnd     // a message goes over into the next one without an end
	FaultStray   // a special token where it has no meaning
	FaultToken   // an id outside the vocabulary
	faultKinds
)

// String is the fault's name in the metrics.
func (f Fault) String() string {
	return [...]string{"start", "role", "channel", "header", "message", "end", "stray", "token"}[f]
}

// Faults counts faults by kind.
type Faults [faultKinds]int

// Total is the faults of all kinds.
func (f Faults) Total() int {
	n := 0
	for _, k := range f {
		n += k
	}
	return n
}

// Plus is the sum of both.
func (f Faults) Plus(g Faults) Faults {
	for k := range f {
		f[k] += g[k]
	}
	return f
}
