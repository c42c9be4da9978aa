// Package kv hands out the pages of the KV cache and finds the cached pages that hold a prompt's
// prefix. A page holds keys and values of PageTokens positions, for the full layers or for the
// window layers; both kinds come from one pool, so memory is fixed at start.
//
// What must stay true:
//   - A page is in exactly one state: free (its contents are not used), used (in one or more
//     tables, which refs counts), or cached (in no table, but in the index).
//   - The numbers of used, cached and free pages add up to the total.
//   - A cached page can be taken as well as a free one, so caching never makes a request wait.
//   - If window pages are pairs, the second of a pair, its twin, is in the same state as the first,
//     and only Twins knows it: tables, the index and the lists name the first.
//   - A page is written only by a table that does not share it: indexed pages are full and never
//     written again.
//   - Nothing here allocates device memory. All methods except Spill's belong to the scheduler's
//     goroutine.
package kv

// PageTokens is how many positions a page holds.
const PageTokens = 32

// WholePages rounds a count of cached tokens down to whole pages. Clients see no finer count, so
// that guesses at a prompt that someone else has cached are right or wrong by a page, not a token.
func WholePages(tokens int) int { return tokens / PageTokens * PageTokens }

// Pool is a fixed number of pages, numbered from 0.
type Pool struct {
	window int
	pages  []page
	// by page: the second page of these window positions, or -1; nil: one page is enough
	twins []int32
	// a stack: the page freed last is the likeliest to be in the hardware's caches
	free      []int32
	evictable [classCount]queue
	used      int
	peak      int
	releases  uint64
	prefixes
}

type page struct {
	refs       int32         // tables that hold it
	class      evictionClass // of a cached page; else none
	windowed   bool          // which of node's two pages it is
	prev, next int32         // in the queue of its class
	node       *node         // the node that has it; nil: none
}

// evictionClass says how soon a cached page is evicted. Within a class, the least recently used
// page goes first.
type evictionClass uint8

const (
	none evictionClass = iota
	// window pages of a sequence that no later prompt is likely to need
	shortLived
	longLived // all others
	classCount
)

// NewPool makes a pool for a model whose window layers see window positions, the query's own
// included. windowPages is how many pages an entry of a window table takes: two if keys and values
// of the full layers are kept in half the bytes of the window layers'. The pool finds no prefixes
// before KeepPrefixes.
func NewPool(pages, window, windowPages int) *Pool {
	p := &Pool{window: window, pages: make([]page, pages), free: make([]int32, pages)}
	if windowPages > 1 {
		p.twins = make([]int32, pages)
		for i := range p.twins {
			p.twins[i] = -1
		}
	}
	for i := range p.free {
		p.free[i] = int32(pages - 1 - i)
	}
	for i := range p.evictable {
		p.evictable[i] = queue{first: -1, last: -1}
	}
	return p
}

// Twins has the second page of each used window page, by the first one's number; nil if one page is
// enough. It is the pool's own slice and changes with it.
func (p *Pool) Twins() []int32 { return p.twins }

// entryPages is how many pages of the pool an entry of a window table takes.
func (p *Pool) entryPages() int {
	if p.twins != nil {
		return 2
	}
	return 1
}

func (p *Pool) Total() int { return len(p.pages) }

// Free is how many pages can be taken: those that are free and those that are cached.
func (p *Pool) Free() int { return len(p.pages) - p.used }

// Used is how many pages are in a table. A page in two counts once.
func (p *Pool) Used() int { return p.used }

// Cached is how many of the free pages are in the index.
func (p *Pool) Cached() int { return len(p.pages) - p.used - len(p.free) }

// Peak is the most pages that were ever used at once.
func (p *Pool) Peak() int { return p.peak }

// Releases counts freed pages. While it does not change, retrying an admission is pointless.
func (p *Pool) Releases() uint64 { return p.releases }

// take gives a page to its first table. The caller has checked Free.
func (p *Pool) take() int32 {
	if len(p.free) == 0 {
		p.evict()
	}
	page := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.pages[page].refs = 1
	p.use()
	return page
}

// takeWindow is take for an entry of a window table.
func (p *Pool) takeWindow() int32 {
	page := p.take()
	if p.twins != nil {
		p.twins[page] = p.take()
	}
	return page
}

// twin is the second page of a pair, -1 for none.
func (p *Pool) twin(page int32) int32 {
	if p.twins == nil {
		return -1
	}
	return p.twins[page]
}

func (p *Pool) use() {
	p.used++
	p.peak = max(p.peak, p.used)
}

// ref puts an indexed page into one more table.
func (p *Pool) ref(page int32) {
	m := &p.pages[page]
	if m.refs == 0 {
		p.unlist(page)
		p.use()
		if twin := p.twin(page); twin >= 0 {
			p.pages[twin].refs = 1
			p.use()
		}
	}
	m.refs++
}

// unref takes a page out of one table.
func (p *Pool) unref(page int32) {
	m := &p.pages[page]
	if m.refs--; m.refs > 0 {
		return
	}
	p.used--
	p.releases++
	if twin := p.twin(page); twin >= 0 {
		p.pages[twin].refs = 0
		p.used--
	}
	switch {
	case m.node == nil:
		p.drop(page)
	case m.windowed && !m.node.pinned:
		p.enlist(page, shortLived)
	default:
		p.enlist(page, longLived)
	}
}

// drop makes a page that is in no table and no list free, with its twin.
func (p *Pool) drop(page int32) {
	if twin := p.twin(page); twin >= 0 {
		p.twins[page] = -1
		p.free = append(p.free, twin)
	}
	p.free = append(p.free, page)
}

// queue is a list of cached pages, the longest unused first.
type queue struct{ first, last int32 }

func (p *Pool) enlist(page int32, class evictionClass) {
	m, q := &p.pages[page], &p.evictable[class]
	m.class, m.prev, m.next = class, q.last, -1
	if q.last >= 0 {
		p.pages[q.last].next = page
	} else {
		q.first = page
	}
	q.last = page
}

func (p *Pool) unlist(page int32) {
	m := &p.pages[page]
	q := &p.evictable[m.class]
	if m.prev >= 0 {
		p.pages[m.prev].next = m.next
	} else {
		q.first = m.next
	}
	if m.next >= 0 {
		p.pages[m.next].prev = m.prev
	} else {
		q.last = m.prev
	}
	m.class = none
}

// PagesFor is PagesOf a sequence of this pool.
func (p *Pool) PagesFor(positions, chunk int) int {
	return PagesOf(positions, chunk, p.window, p.entryPages())
}

// PagesOf is how many pages a sequence of that many positions holds at most, if its rows come in
// chunks of chunk. Its full layers hold one for every PageTokens positions. Its window layers hold
// windowPages for each stretch of PageTokens that the chunk or the window of its first row touches.
func PagesOf(positions, chunk, window, windowPages int) int {
	full := (positions + PageTokens - 1) / PageTokens
	// A stretch of n positions touches at worst (n-2)/PageTokens + 2 pages, 1 if n is 1.
	stretch := window - 1 + chunk
	touched := 1
	if stretch > 1 {
		touched = (stretch-2)/PageTokens + 2
	}
	return full + windowPages*min(full, touched)
}

// Entry returns the pages of the pool of a table's entry: the page, and its twin if windowed.
func (p *Pool) Entry(page int32, windowed bool) []int32 {
	if twin := p.twin(page); windowed && twin >= 0 {
		return []int32{page, twin}
	}
	return []int32{page}
}
