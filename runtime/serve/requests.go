// Host memory of this process besides a model: the program, connections, and the text of all
// requests, whether they run, wait or are being read.
//
// What must stay true: weights, conversations, working room, evicted pages and this together never
// exceed the plan. The port enforces it by refusing requests whose text would exceed it; the limit
// makes Go's collector work harder in time. Memory of ended requests is released soon after the
// last of them, and never while one runs.

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

// StandardBody is the default maximum size of a request body, bytes.
const StandardBody = 16 << 20

const (
	// programMemory is the executable, its tables (tokens, grammar) and an idle server's memory.
	programMemory = 256 << 20
	// requestMemory is a request without its text: connection, goroutines, stream, sampler.
	requestMemory = 128 << 10
	// textMemory is bytes for each byte of a request's body: parsed, compiled, encoded.
	textMemory = 8
	// textShare is the share of the machine's memory for the text of requests.
	textShare = 1.0 / 128
	// minTexts is how many of the largest bodies fit at once on any machine.
	minTexts = 4
)

// Requests is the plan for requests, in bytes.
type Requests struct {
	AtOnce  int   `json:"at_once"` // requests that run or wait
	Texts   int64 `json:"texts"`   // of their bodies
	Ceiling int64 `json:"ceiling"` // of program, connections and texts
	// of the programs that tools start, not in Ceiling: they are not this process's memory
	Tools int64 `json:"tools,omitempty"`
}

func PlanRequests(s engine.Settings, maxBody int64) (r Requests, err error) {
	total, _, err := HostMemory()
	r.AtOnce = s.MaxNumSeqs + s.MaxWaiting
	r.Texts = max(int64(float64(total)*textShare), minTexts*maxBody)
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

// WithRequests adds requests and evicted pages (swap below 0: the default).
func (p Plan) WithRequests(r Requests, b engine.Backend, swap int64) Plan {
	if p.discrete = onGPU(b); swap < 0 {
		swap = p.defaultSwap()
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

func (p Plan) defaultSwap() int64 { return min(p.Spare, maxSpareSwap) }

// Requests is the plan of a server; zero if Options.MaxBody is 0.
func (m *Models) Requests() Requests { return m.requests }

// SetToolMemory adds the memory of a server's tools to the plans of later loads.
func (m *Models) SetToolMemory(bytes int64) { m.requests.Tools = bytes }

// setMemoryLimit sets the limit of Go's memory with these models, unless the user has set one.
func (m *Models) setMemoryLimit(model *Model, loaded []loadedModel) {
	if m.requests.Ceiling == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := m.requests.Ceiling + m.shared.hostSpace()
	for _, o := range append(loaded, model) {
		if o := o.(*Model); !onGPU(o.backend) {
			limit += o.plan.logits
		}
	}
	debug.SetMemoryLimit(limit)
}

const (
	idleInterval = 2 * time.Second
	// idleChecks is how many idle checks in a row precede a release.
	idleChecks = 3
	// minAllocated is how much must have been allocated since the last release.
	minAllocated = 8 << 20
)

// ReleaseMemory returns memory of ended requests to the system after some idle time, until ctx
// ends. preparing is how many requests are read and have no turn yet.
func (m *Models) ReleaseMemory(ctx context.Context, preparing func() int64) {
	ticker := time.NewTicker(idleInterval)
	defer ticker.Stop()
	released, idle := uint64(0), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if idle++; preparing() > 0 || m.loaded.isBusy() {
			idle = 0
		}
		if idle < idleChecks || allocated() < released+minAllocated {
			continue
		}
		runtime.GC() // pools are emptied at the second collection
		debug.FreeOSMemory()
		released = allocated()
	}
}

// allocated is the total of Go's heap allocations so far, freed or not.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
