// Package kv hands out the pages of the KV cache. A page holds keys and values of PageTokens positions of one sequence,
// for the full layers or for the window layers; both kinds come from one pool, so memory is fixed at start.
//
// What must stay true: a page is free or in exactly one table; used + free = total; nothing here allocates device memory.
// All methods belong to the scheduler's goroutine.
//
// Pages pass between the free list and the tables through take and give alone. That is where a prefix index joins in: a
// page given back then keeps its hash and goes to the tail of an LRU list, and a page found by its hash gets one more
// reference instead of being taken.
package kv

// PageTokens is how many positions a page holds. It is the engine's number; the scheduler holds them equal.
const PageTokens = 32

// Pool is a fixed number of pages, numbered from 0.
type Pool struct {
	window int
	total  int
	free   []int32 // a stack: the page last given back is the likeliest to be in a cache
	peak   int
}

// NewPool makes a pool for a model whose window layers see window positions, the query's own included.
func NewPool(pages, window int) *Pool {
	p := &Pool{window: window, total: pages, free: make([]int32, pages)}
	for i := range p.free {
		p.free[i] = int32(pages - 1 - i)
	}
	return p
}

// Total is the number of pages.
func (p *Pool) Total() int { return p.total }

// Free is how many pages are in no table.
func (p *Pool) Free() int { return len(p.free) }

// Used is how many pages are in a table.
func (p *Pool) Used() int { return p.total - len(p.free) }

// Peak is the most pages that were ever used at once.
func (p *Pool) Peak() int { return p.peak }

func (p *Pool) take() int32 {
	page := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.peak = max(p.peak, p.Used())
	return page
}

func (p *Pool) give(page int32) { p.free = append(p.free, page) }

// PagesFor is how many pages a sequence of that many positions holds at most, when its rows come in chunks of chunk: its
// full layers one for every PageTokens, its window layers the pages that the window of the chunk's first row and the
// chunk itself touch.
func PagesFor(positions, chunk, window int) int {
	full := (positions + PageTokens - 1) / PageTokens
	// A stretch of n positions touches (n-2)/PageTokens + 2 pages where it lies worst, 1 if n is 1.
	stretch := window - 1 + chunk
	touched := 1
	if stretch > 1 {
		touched = (stretch-2)/PageTokens + 2
	}
	return full + min(full, touched)
}
