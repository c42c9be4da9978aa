// The memory plan of one loaded model: how long the context may be and how many KV pages the pool gets.
//
// What must stay true: weights + pool + scratch never exceed the memory that may be taken, and the pool always holds at
// least one sequence of the stated context length, so an admitted request can always end.

package session

import (
	"cmp"
	"fmt"
	"sort"

	"github.com/ossrun/ossrun/runtime/kv"
)

// PlanInput is what the plan is computed from. All sizes are bytes.
type PlanInput struct {
	Free        int64   // memory free before loading
	Total       int64   // what a device with a memory of its own has, used or not; 0: it shares the host's
	Utilization float64 // share of Total, or of Free without one, that may be taken, up to 1; 0: all but a reserve for the rest
	Reserve     int64   // that; 0: a tenth of what is free, at least 256 MiB and at most 4 GiB
	Weights     int64
	Scratch     int64 // activations of the largest step, and what steps take beside them: the logits of all sequences
	PageBytes   int64
	PageTokens  int
	WindowPages int // pages of the pool that PageTokens positions of the window layers take; 0: one
	MaxPosition int // what the checkpoint was made for
	MaxModelLen int // what the user asked for; 0: as long as fits
	Window      int // positions a window layer sees
	ChunkTokens int // most rows of one sequence in a step
	MaxSeqs     int
	MostPages   int // that each of several devices has room for beside the rest; 0: what the sizes above say
}

// Plan is what comes of it.
type Plan struct {
	Context int // longest sequence, prompt and answer together
	Pages   int
	KV      int64 // bytes of the pool
	Total   int64 // weights + KV + scratch

	Weights, Scratch, PageBytes int64
	Free                        int64 // before loading
	Left                        int64 // of Free, untouched by the plan
	Spare                       int64 // of Left, beyond what is reserved for the rest of the machine
	MaxPosition                 int   // what the checkpoint was made for
	FullContext                 int64 // what Free would have to be for a context of MaxPosition
	Bounded                     bool  // Context was asked for: more memory would not make it longer
}

// reserve is left to the rest of the machine, a display among it: a tenth of what is free, at least 256 MiB and at most
// 4 GiB.
func reserve(free int64) int64 {
	return min(max(free/10, 256<<20), 4<<30)
}

// usable is what the plan may take.
func (in PlanInput) usable() int64 {
	if in.Utilization > 0 {
		of := in.Free
		if in.Total > 0 { // as vLLM counts: a share of the card, of which others may have taken some
			of = in.Total
		}
		return min(in.Free, int64(float64(of)*min(in.Utilization, 1)))
	}
	return in.Free - cmp.Or(in.Reserve, reserve(in.Free))
}

// freeFor is the least Free of which so many bytes are usable; of a card, what an empty one has to have.
func (in PlanInput) freeFor(bytes int64) int64 {
	return int64(sort.Search(1<<24, func(mib int) bool { // 16 TiB
		in.Free = int64(mib) << 20
		if in.Total > 0 {
			in.Total = in.Free
		}
		return in.usable() >= bytes
	})) << 20
}

// pagesFor is the pages a sequence of n tokens can hold at once.
func (in PlanInput) pagesFor(n int) int {
	return kv.PagesOf(n, in.ChunkTokens, in.Window, max(1, in.WindowPages))
}

// MakePlan chooses the longest context that fits (or the one asked for), then room for more sequences of it: up to
// four, or MaxSeqs if that is less. With a Utilization, which says what the memory is there for, all of it is taken that
// MaxSeqs sequences could use.
func MakePlan(in PlanInput) (Plan, error) {
	if in.PageTokens != kv.PageTokens {
		return Plan{}, fmt.Errorf("pages of %d tokens are planned, the pool has pages of %d", in.PageTokens, kv.PageTokens)
	}
	room := in.usable() - in.Weights - in.Scratch
	most := int(max(room, 0) / in.PageBytes)
	if in.MostPages > 0 {
		most = min(most, in.MostPages)
	}
	want := in.MaxPosition
	if in.MaxModelLen > 0 {
		want = min(in.MaxModelLen, in.MaxPosition)
	}
	n := want
	if in.pagesFor(n) > most {
		n = in.PageTokens * sort.Search(want/in.PageTokens, func(k int) bool { return in.pagesFor((k+1)*in.PageTokens) > most })
	}
	if n < in.PageTokens*8 || in.MaxModelLen > 0 && n < want {
		need := in.Weights + in.Scratch + int64(in.pagesFor(want))*in.PageBytes
		return Plan{}, fmt.Errorf("not enough memory: %s free, of which %s may be used; the weights take %s, steps of %d tokens %s and a context of %d tokens %s, "+
			"%s in all: choose a smaller model, --max-model-len or --max-num-batched-tokens",
			gib(in.Free), gib(in.usable()), gib(in.Weights), in.ChunkTokens, gib(in.Scratch), want, gib(int64(in.pagesFor(want))*in.PageBytes), gib(need))
	}
	sequences := min(4, in.MaxSeqs)
	if in.Utilization > 0 {
		sequences = in.MaxSeqs
	}
	each := in.pagesFor(n)
	pages := min(each*max(sequences, 1), max(most, each))
	if in.Utilization == 0 {
		pages = pages / each * each
	}
	p := Plan{Context: n, Pages: pages, KV: int64(pages) * in.PageBytes, Weights: in.Weights, Scratch: in.Scratch, PageBytes: in.PageBytes,
		Free: in.Free, MaxPosition: in.MaxPosition, Bounded: in.MaxModelLen > 0}
	p.Total = p.KV + in.Weights + in.Scratch
	p.Left, p.Spare = in.Free-p.Total, max(0, in.usable()-p.Total)
	p.FullContext = in.freeFor(in.Weights + in.Scratch + int64(in.pagesFor(in.MaxPosition))*in.PageBytes)
	return p, nil
}

// Lines says what the plan is, and what would make the context longer, for people.
func (p Plan) Lines() []string {
	lines := []string{
		fmt.Sprintf("memory: weights %s + KV %s + steps %s = %s of %s free, %s left", gib(p.Weights), gib(p.KV), gib(p.Scratch), gib(p.Total),
			gib(p.Free), gib(p.Left)),
		fmt.Sprintf("context: %d tokens; KV pages: %d of %d tokens and %d bytes", p.Context, p.Pages, kv.PageTokens, p.PageBytes),
	}
	if p.Context < p.MaxPosition && !p.Bounded {
		lines = append(lines, fmt.Sprintf("for the model's whole context of %d tokens %s must be free: free memory, or lower --max-num-seqs or "+
			"--max-num-batched-tokens, or choose --kv-cache-dtype bf16 or fp8", p.MaxPosition, gib(p.FullContext)))
	}
	return lines
}

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(max(n, 0))/(1<<30)) }
