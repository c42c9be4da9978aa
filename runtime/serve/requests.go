// What this process may take of the host's memory beside a model: the program, connections, and
// the text of the requests that are here at once, whether they run, wait or are being read.
//
// What must stay true: weights, conversations, working room, what is pushed out of it and this are
// never exceeded together. The port holds it by refusing what would hold more text than planned;
// the collector of Go's memory is told where it must work harder. What ended requests have left is
// given back to the system soon after the last of them, and never while one runs.

package serve

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
)

// StandardBody is the largest body of a request where nobody says otherwise, bytes.
const StandardBody = 16 << 20

const (
	// programMemory is the executable, its tables (tokens, grammar) and what serving costs at rest.
	programMemory = 256 << 20
	// requestMemory is a request without its text: connection, goroutines, stream, sampler.
	requestMemory = 128 << 10
	// textMemory is bytes for each byte of a request's body: parsed, compiled, encoded.
	textMemory = 8
	// textShare of the machine's memory may be the text of requests.
	textShare = 1.0 / 128
	// leastTexts is how many of the largest bodies are held at once on any machine.
	leastTexts = 4
)

// Requests is the plan for them, in bytes.
type Requests struct {
	AtOnce  int   `json:"at_once"` // requests that run or wait
	Texts   int64 `json:"texts"`   // of their bodies
	Ceiling int64 `json:"ceiling"` // of all that this file's head names
	// of the programs that tools start, beside Ceiling: they are no memory of this process
	Tools int64 `json:"tools,omitempty"`
}

// PlanRequests is the plan of a server on this machine.
func PlanRequests(s engine.Settings, maxBody int64) (r Requests, err error) {
	total, _, err := HostMemory()
	r.AtOnce = s.MaxNumSeqs + s.MaxWaiting
	r.Texts = max(int64(float64(total)*textShare), leastTexts*maxBody)
	r.Ceiling = programMemory + int64(r.AtOnce)*requestMemory + textMemory*r.Texts
	return r, err
}

func (r Requests) String() string {
	line := fmt.Sprintf("at most %s for %d requests at a time, with %s of text",
		gb(r.Ceiling), r.AtOnce, gb(r.Texts))
	if r.Tools > 0 {
		line += fmt.Sprintf("; at most %s for python", gb(r.Tools))
	}
	return line
}

// Beside adds requests and pushed-out pages (below 0: as many as where nobody says otherwise).
func (p Plan) Beside(r Requests, b engine.Backend, swap int64) Plan {
	if p.discrete = onGPU(b); swap < 0 {
		swap = p.spareSwap()
		if p.discrete {
			swap = 0
		}
	}
	p.Swap, p.Requests, p.Tools, p.Ceiling = swap, r.Ceiling, r.Tools, swap+r.Ceiling+r.Tools
	if !p.discrete {
		p.Ceiling += p.Total
	}
	return p
}

// spareSwap is the host memory for pages where nothing was asked for.
func (p Plan) spareSwap() int64 { return min(p.Spare, mostSpareSwap) }

// Requests is the plan of a server; nothing where Options.MaxBody is 0.
func (m *Models) Requests() Requests { return m.requests }

// CountTools adds what the tools of a server may use to the plans of models that are loaded later.
func (m *Models) CountTools(bytes int64) { m.requests.Tools = bytes }

// limit tells the collector what Go's memory may be with these models, where the user has not.
func (m *Models) limit(model *Model, others []loadedModel) {
	if m.requests.Ceiling == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	most := m.requests.Ceiling + m.kept.hostSpace()
	for _, o := range append(others, model) {
		if o := o.(*Model); !onGPU(o.backend) {
			most += o.plan.logits
		}
	}
	debug.SetMemoryLimit(most)
}

const (
	lookEvery = 2 * time.Second
	// restLooks is how many looks in a row see nothing run before memory is given back.
	restLooks = 3
	// worthIt is how much must have been allocated since the last time.
	worthIt = 8 << 20
)

// GiveBack returns the memory that requests have left behind to the system whenever nothing has
// run for a while. It ends with ctx. preparing is how many requests are read and have no turn yet.
func (m *Models) GiveBack(ctx context.Context, preparing func() int64) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	given, quiet := uint64(0), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if quiet++; preparing() > 0 || m.loaded.busy() {
			quiet = 0
		}
		if quiet < restLooks || allocated() < given+worthIt {
			continue
		}
		runtime.GC() // pools let go what they hold at the second collection
		debug.FreeOSMemory()
		given = allocated()
	}
}

// allocated is how much Go's memory was ever allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
