// The memory plan of one loaded model: how long the context may be and how many KV pages the pool gets.
//
// What must stay true: weights + pool + scratch never exceed the memory that was free, and the pool always holds at
// least one sequence of the stated context length, so an admitted request can always end.

package session

import (
	"fmt"
	"sort"
)

// PlanInput is what the plan is computed from. All sizes are bytes.
type PlanInput struct {
	Free        int64 // memory free before loading
	Weights     int64
	Scratch     int64
	PageBytes   int64
	PageTokens  int
	MaxPosition int // what the checkpoint was made for
	MaxModelLen int // what the user asked for; 0: as long as fits
	Window      int // positions a window layer sees
	ChunkTokens int // most rows of one sequence in a step
	MaxSeqs     int
}

// Plan is what comes of it.
type Plan struct {
	Context int // longest sequence, prompt and answer together
	Pages   int
	KV      int64 // bytes of the pool
	Total   int64 // weights + KV + scratch
}

// reserve is left to the rest of the machine: a tenth of what is free, at least 256 MiB and at most 4 GiB.
func reserve(free int64) int64 {
	return min(max(free/10, 256<<20), 4<<30)
}

// pagesFor is the pages a sequence of n tokens can hold at once: its full layers all of it, its window layers the
// window, one chunk, and a page cut at each end.
func (in PlanInput) pagesFor(n int) int {
	full := (n + in.PageTokens - 1) / in.PageTokens
	window := min(full, (in.Window+in.ChunkTokens+in.PageTokens-1)/in.PageTokens+2)
	return full + window
}

// MakePlan chooses the longest context that fits (or the one asked for), then room for more sequences of it: up to
// four, or MaxSeqs if that is less.
func MakePlan(in PlanInput) (Plan, error) {
	room := in.Free - reserve(in.Free) - in.Weights - in.Scratch
	most := int(max(room, 0) / in.PageBytes)
	want := in.MaxPosition
	if in.MaxModelLen > 0 {
		want = min(in.MaxModelLen, in.MaxPosition)
	}
	n := want
	if in.pagesFor(n) > most {
		n = in.PageTokens * sort.Search(want/in.PageTokens, func(k int) bool { return in.pagesFor((k+1)*in.PageTokens) > most })
	}
	if n < in.PageTokens*8 || in.MaxModelLen > 0 && n < want {
		return Plan{}, fmt.Errorf("not enough memory: %s free, the weights take %s and a context of %d tokens %s more: choose a smaller model or --max-model-len",
			gib(in.Free), gib(in.Weights), want, gib(int64(in.pagesFor(want))*in.PageBytes+in.Scratch))
	}
	pages := in.pagesFor(n)
	for k := 2; k <= min(4, in.MaxSeqs) && in.pagesFor(n)*k <= most; k++ {
		pages = in.pagesFor(n) * k
	}
	p := Plan{Context: n, Pages: pages, KV: int64(pages) * in.PageBytes}
	p.Total = p.KV + in.Weights + in.Scratch
	return p, nil
}

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(max(n, 0))/(1<<30)) }
