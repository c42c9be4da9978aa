// The block tables of one sequence: which page holds which positions.

package kv

// NoPage is the entry of a window page that the table does not hold (yet, or any more).
const NoPage = -1

// Table holds the pages of one sequence. Entry i of both tables covers the positions i*PageTokens
// to (i+1)*PageTokens-1. The zero value has no pages.
type Table struct {
	full, window []int32
	live, end    int // the window entries [live, end) are held
	twins        int // further pages of an entry of window

	// The table in the index.
	root     Hash // under which it is found; zero: the pool's
	id       uint64
	tail     *node // of the last indexed page, nil for none: the root's
	indexed  int   // whole pages that the index knows
	private  bool  // nothing more of it goes into the index
	inMemory bool  // no disk may have its pages
	exact    int   // first position whose window keys and values are right
	rebuild  bool  // window pages are being computed again
	cuts     []int // ascending lengths at which later prompts are likely to differ from this one
	cut      int   // index of the first of cuts that is not passed
}

// Full is the table of the layers that see everything. It is valid until the next call that changes
// the table.
func (t *Table) Full() []int32 { return t.full }

// Window is the table of the layers that see a window, with NoPage for earlier positions.
func (t *Table) Window() []int32 { return t.window }

// Pages is how many pages the table holds, those that it shares included.
func (t *Table) Pages() int { return len(t.full) + (t.end-t.live)*(1+t.twins) }

// Room is how many positions have their pages.
func (t *Table) Room() int { return len(t.full) * PageTokens }

// Reach is how many positions could have their pages if t got all pages that can be taken.
func (p *Pool) Reach(t *Table) int {
	return (len(t.full) + p.Free()/(1+p.entryPages())) * PageTokens
}

// WindowReach is Reach for window pages alone.
func (p *Pool) WindowReach(t *Table) int { return (t.end + p.Free()/p.entryPages()) * PageTokens }

// Root sets the name under which the sequence finds pages and is found, before it has any.
func (t *Table) Root(h Hash) { t.root = h }

// InMemory keeps the pages of the sequence, before it has any, off the disk that evicted pages go
// to, except those that another sequence without it has.
func (t *Table) InMemory(inMemory bool) { t.inMemory = inMemory }

// Cuts sets the lengths, ascending, at which later prompts are likely to differ from this sequence.
// Window pages there are kept.
func (t *Table) Cuts(lengths []int) { t.cuts, t.cut = lengths, 0 }

// Need is how many pages Reserve would take.
func (p *Pool) Need(t *Table, positions int) int {
	return (1 + p.entryPages()) * max(0, (positions+PageTokens-1)/PageTokens-len(t.full))
}

// Reserve takes the pages for the first positions positions, or takes none and returns false.
func (p *Pool) Reserve(t *Table, positions int) bool {
	need := p.Need(t, positions)
	if need > p.Free() {
		return false
	}
	t.twins = p.entryPages() - 1
	for range need / (1 + p.entryPages()) {
		t.full = append(t.full, p.take())
		t.window = append(t.window, p.takeWindow())
	}
	t.end = len(t.window)
	return true
}

// Slide gives back the window pages that no query at position next or later sees: a query at p sees
// p-window+1 to p.
func (p *Pool) Slide(t *Table, next int) {
	for seen := min((next-p.window+1)/PageTokens, t.end); t.live < seen; t.live++ {
		page := t.window[t.live]
		if n := p.pages[page].node; n != nil && t.nearCut(t.live, p.window) {
			n.pinned = true
		}
		p.unref(page)
		t.window[t.live] = NoPage
		// other names of that page, see ReserveWindow
		for i := t.live - 1; i >= 0 && t.window[i] != NoPage; i-- {
			t.window[i] = NoPage
		}
	}
}

// cutSlack is how far after a cut a prompt may really begin to differ: a turn without its reasoning
// shares the beginning of a header with the turn that had it.
const cutSlack = 8

// nearCut tells whether a prompt that differs from one of the cuts on needs window page i. It is
// called with ascending i.
func (t *Table) nearCut(i, window int) bool {
	for t.cut < len(t.cuts) && t.cuts[t.cut]+cutSlack <= i*PageTokens {
		t.cut++
	}
	return t.cut < len(t.cuts) && t.cuts[t.cut]-window+1 < (i+1)*PageTokens
}

// Release gives everything back. computed are the tokens whose keys and values are in the pages:
// their end is a likely cut, so the pages there are kept longest. The table is empty then and can
// be used again.
func (p *Pool) Release(t *Table, computed []int32) {
	p.Commit(t, computed, nil, len(computed))
	p.addLeaf(t, computed)
	// the last page is the first to be evicted
	for i := len(t.full) - 1; i >= 0; i-- {
		if i >= t.live && i < t.end {
			if n := p.pages[t.window[i]].node; n != nil {
				n.pinned = true
			}
			p.unref(t.window[i])
		}
		p.unref(t.full[i])
	}
	*t = Table{full: t.full[:0], window: t.window[:0], root: t.root, inMemory: t.inMemory}
}
