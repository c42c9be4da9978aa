// The block tables of one sequence: which page holds which positions.

package kv

// Given is the entry of a window page that was given back.
const Given = -1

// Table holds the pages of one sequence. Entry i of both tables covers the positions i*PageTokens to
// (i+1)*PageTokens-1. The zero value has no pages.
type Table struct {
	full, window []int32
	live         int // first window entry that is not given back
}

// Full is the table of the layers that see everything. It is valid until the next call that changes the table.
func (t *Table) Full() []int32 { return t.full }

// Window is the table of the layers that see a window, with Given in front of what they still see.
func (t *Table) Window() []int32 { return t.window }

// Pages is how many pages the table holds.
func (t *Table) Pages() int { return len(t.full) + len(t.window) - t.live }

// Room is how many positions have their pages.
func (t *Table) Room() int { return len(t.full) * PageTokens }

// Need is how many pages Reserve would take.
func (p *Pool) Need(t *Table, positions int) int {
	return 2 * max(0, (positions+PageTokens-1)/PageTokens-len(t.full))
}

// Reserve gives the positions below positions their pages, or takes none and returns false.
func (p *Pool) Reserve(t *Table, positions int) bool {
	need := p.Need(t, positions)
	if need > len(p.free) {
		return false
	}
	for range need / 2 {
		t.full = append(t.full, p.take())
		t.window = append(t.window, p.take())
	}
	return true
}

// Slide gives back the window pages that no query at position next or later sees: a query at p sees p-window+1 to p.
func (p *Pool) Slide(t *Table, next int) {
	for seen := min((next-p.window+1)/PageTokens, len(t.window)); t.live < seen; t.live++ {
		p.give(t.window[t.live])
		t.window[t.live] = Given
	}
}

// Release gives everything back. The table is empty then and can be used again.
func (p *Pool) Release(t *Table) {
	for _, page := range t.full {
		p.give(page)
	}
	for _, page := range t.window[t.live:] {
		p.give(page)
	}
	t.full, t.window, t.live = t.full[:0], t.window[:0], 0
}
