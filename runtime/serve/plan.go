// The memory plan of one loaded model: how long the context may be and how many KV pages the pool
// gets.
//
// What must stay true: weights + pool + scratch never exceed the usable memory, and the pool always
// holds at least one sequence of the stated context length, so an admitted request can always end.

package serve

import (
	"cmp"
	"fmt"
	"sort"

	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
)

// Plan is how a loaded model's memory is divided.
type Plan struct {
	Context     int   `json:"context"`     // longest sequence, prompt and answer together
	MaxPosition int   `json:"max_context"` // that the checkpoint was trained for
	Weights     int64 `json:"weights"`
	KV          int64 `json:"kv"` // bytes of the pool
	Scratch     int64 `json:"scratch"`
	Free        int64 `json:"free"`              // before loading
	Remaining   int64 `json:"left"`              // of Free, not planned
	OnDisk      int64 `json:"on_disk,omitempty"` // of Weights, without room in memory
	// the value of Free for a context of MaxPosition
	FullContext int64 `json:"free_for_max_context"`

	// in addition: evicted pages, the program and its requests, and the sum
	Swap     int64 `json:"swap,omitempty"`
	Requests int64 `json:"requests,omitempty"`
	Tools    int64 `json:"tools,omitempty"` // programs that tools start
	Ceiling  int64 `json:"ceiling,omitempty"`

	Pages     int   `json:"-"`
	PageBytes int64 `json:"-"`
	Total     int64 `json:"-"` // weights + KV + scratch
	Spare     int64 `json:"-"` // of Remaining, beyond the machine's reserve
	Sequences int   `json:"-"` // of the full context that Pages hold
	Bounded   bool  `json:"-"` // Context was asked for: more memory would not extend it
	discrete  bool  // the device has its own memory
	logits    int64 // of Scratch, the scheduler's in Go's memory
}

// reserve is memory for the rest of the machine: a tenth of free, from 256 MiB to 4 GiB.
func reserve(free int64) int64 {
	return min(max(free/10, 256<<20), 4<<30)
}

// usable is how much a plan may take; share is the user's, 0: all except a reserve.
func usable(r engine.Room, share float64) int64 {
	if share > 0 {
		// As in vLLM: a share of the full card, of which other programs may have taken some.
		return min(r.Free, int64(float64(cmp.Or(r.Total, r.Free))*min(share, 1)))
	}
	return r.Free - cmp.Or(r.Reserve, reserve(r.Free))
}

// freeFor is the least free memory with so many usable bytes; on a card, of an empty one.
func freeFor(bytes int64, r engine.Room, share float64) int64 {
	return int64(sort.Search(1<<24, func(mib int) bool { // 16 TiB
		r.Free = int64(mib) << 20
		if r.Total > 0 {
			r.Total = r.Free
		}
		return usable(r, share) >= bytes
	})) << 20
}

// MemoryNeeded says how much of the host's memory must be free for a model, and what to do if less
// is: in doctor, the first run and refusals.
func MemoryNeeded(needs, free, total int64) string {
	return memoryNeeded(needs, freeFor(needs, engine.Room{}, 0), free, total)
}

// memoryNeeded is for a device that must have all free; a total of 0 is unknown.
func memoryNeeded(needs, all, free, total int64) string {
	text := fmt.Sprintf("needs %s free (%s for the model, %s kept for the system)", gb(all),
		gb(needs), gb(all-needs))
	switch {
	case total > 0 && all > total:
		return text + "; there are " + gb(total) + " in all"
	case all > free:
		return text + "; close programs that use " + gb(all-free)
	}
	return text
}

// pagesFor is how many pages a sequence of n tokens can hold at once.
func pagesFor(n int, spec models.Spec, s engine.Settings) int {
	return kv.PagesOf(n, s.MaxNumBatchedTokens, spec.Window, engine.WindowPages(s.KVCacheDtype))
}

// LeastContext is the shortest context, in tokens, that a model is loaded with.
const LeastContext = 8 * engine.PageTokens

// makePlan chooses the longest context that fits, or the requested one, then room for more
// sequences of it: up to four, or MaxNumSeqs if less. With GPUMemoryUtilization set, the pool takes
// what MaxNumSeqs full sequences need.
func makePlan(spec models.Spec, s engine.Settings, r engine.Room) (Plan, error) {
	pages := func(n int) int { return pagesFor(n, spec, s) }
	share := s.GPUMemoryUtilization
	usable := usable(r, share)
	p := Plan{MaxPosition: spec.MaxPosition, Weights: r.Need.Weights, Free: r.Free,
		Scratch: r.Need.Scratch + r.Extra, PageBytes: r.Need.PageBytes, logits: r.Extra,
		Bounded: s.MaxModelLen > 0}
	fixed := p.Weights + p.Scratch
	p.FullContext = freeFor(fixed+int64(pages(spec.MaxPosition))*p.PageBytes, r, share)
	maxPages := int(max(usable-fixed, 0) / p.PageBytes)
	if r.MostPages > 0 {
		maxPages = min(maxPages, r.MostPages)
	}
	want := min(cmp.Or(s.MaxModelLen, spec.MaxPosition), spec.MaxPosition)
	n := want
	if pages(n) > maxPages {
		const page = engine.PageTokens
		n = page * sort.Search(want/page, func(k int) bool { return pages((k+1)*page) > maxPages })
	}
	short := p.Bounded && n < want
	if r.OnDisk > 0 && (n < min(want, diskContext) || short) {
		if p, ok := p.onDisk(spec, s, r, usable); ok {
			return p, nil
		}
	}
	if n < LeastContext || short {
		want = min(cmp.Or(s.MaxModelLen, gpu.UsableContext), spec.MaxPosition) // as doctor's figure
		needs := fixed + int64(pages(want))*p.PageBytes
		text := memoryNeeded(needs, freeFor(needs, r, share), r.Free, r.Total)
		if share > 0 {
			text += fmt.Sprintf("; --gpu-memory-utilization %g leaves the rest", share)
		}
		return Plan{}, fmt.Errorf("not enough memory: with %d tokens of context it %s. Choose a "+
			"smaller model, --max-model-len or --max-num-batched-tokens", want, text)
	}
	perSequence, sequences := pages(n), min(4, s.MaxNumSeqs)
	if share > 0 {
		sequences = s.MaxNumSeqs
	}
	p.Context, p.Pages = n, min(perSequence*max(sequences, 1), max(maxPages, perSequence))
	if p.Sequences = p.Pages / perSequence; share == 0 {
		p.Pages = p.Sequences * perSequence
	}
	p.KV = int64(p.Pages) * p.PageBytes
	p.Total = p.KV + fixed
	p.Remaining, p.Spare = r.Free-p.Total, max(0, usable-p.Total)
	return p, nil
}

// One page of the engine is one of the pool.
var _ [engine.PageTokens]struct{} = [kv.PageTokens]struct{}{}

// diskContext is the default context of a model with experts on the disk: memory for conversations
// is lost to experts.
const diskContext = 8192

// onDisk plans as many experts in memory as fit next to one conversation; false if not even those
// of two tokens fit.
func (p Plan) onDisk(spec models.Spec, s engine.Settings, r engine.Room, usable int64) (Plan,
	bool) {
	p.Context = min(cmp.Or(s.MaxModelLen, diskContext), spec.MaxPosition)
	p.Pages, p.Sequences = pagesFor(p.Context, spec, s), 1
	p.KV = int64(p.Pages) * p.PageBytes
	p.OnDisk = p.Weights + p.KV + p.Scratch - usable
	p.Total, p.Remaining = usable, r.Free-usable
	two := r.OnDisk * int64(2*spec.ExpertsPerToken) / int64(spec.Experts)
	return p, p.OnDisk > 0 && p.OnDisk <= r.OnDisk-two
}

// Lines describes the plan for people, and how to get a longer context.
func (p Plan) Lines() []string {
	several := ""
	if p.Sequences > 1 {
		several = fmt.Sprintf(", for %d conversations of that length at once", p.Sequences)
	}
	lines := []string{
		fmt.Sprintf("memory: weights %s + conversations %s + working memory %s = %s of %s free, "+
			"%s stay free", gb(p.Weights-p.OnDisk), gb(p.KV), gb(p.Scratch), gb(p.Total),
			gb(p.Free), gb(p.Remaining)),
		fmt.Sprintf("context: %d tokens%s", p.Context, several),
	}
	if p.Context < p.MaxPosition && !p.Bounded {
		lines = append(lines, fmt.Sprintf("for the model's whole context of %d tokens %s must be "+
			"free: free memory, or lower --max-num-seqs or --max-num-batched-tokens, or choose "+
			"--kv-cache-dtype bf16 or fp8",
			p.MaxPosition, gb(p.FullContext)))
	}
	if p.Ceiling > 0 {
		what := "in all"
		if p.discrete {
			what = "of host memory beside the weights"
		}
		line := fmt.Sprintf("at most %s %s under load: %s for requests, %s for "+
			"evicted conversations", gb(p.Ceiling), what, gb(p.Requests), gb(p.Swap))
		if p.Tools > 0 {
			line += fmt.Sprintf(", %s for python", gb(p.Tools))
		}
		lines = append(lines, line)
	}
	return lines
}

// Slow warns about experts on the disk; "" if all are in memory.
func (p Plan) Slow() string {
	if p.OnDisk == 0 {
		return ""
	}
	return fmt.Sprintf("%s of the %s of weights do not fit in memory and are read from the disk: "+
		"slow. Free memory, or choose a smaller model",
		gb(p.OnDisk), gb(p.Weights))
}

func gb(n int64) string { return fmt.Sprintf("%.1f GB", float64(max(n, 0))/1e9) }
