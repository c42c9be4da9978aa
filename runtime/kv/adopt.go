// Prefix lookup: the longest prefix of a new sequence's tokens whose pages are cached.
//
// The full layers need every page of the prefix; the window layers only those of its last window-1
// positions. If these are gone there are two ways, and the one with less to compute is taken: begin
// at an earlier position whose window pages are cached, or compute the receptive field again for
// the window layers alone. The latter is exact, since all of the full layers' pages are cached.

package kv

import "slices"

// Hit is the part of a sequence that need not be computed.
type Hit struct {
	Tokens int // positions that the full layers have
	// position from which the window layers must be computed again up to Tokens; Tokens: none
	Rebuild int
}

// Adopt fills an empty table with the cached pages of a prefix of tokens, at most most positions
// long. hashes are those of tokens. At most two pages of the table are new; all others were found
// in the index.
func (p *Pool) Adopt(t *Table, tokens []int32, hashes []Hash, most int) Hit {
	if p.keep == nil {
		return Hit{}
	}
	path := p.path(hashes, tokens, most)
	part, m := p.part(path, path.last(p.root(t.root)), tokens, most)
	h, fullPages := p.choose(path, part, m)
	if h.Tokens == 0 {
		return h
	}
	m = h.Tokens - fullPages*PageTokens
	t.tail, t.indexed = path[:fullPages].last(nil), fullPages
	p.tables++
	t.id = p.tables
	first := max(0, h.Tokens-p.window+1)
	rebuild := h.Rebuild < h.Tokens
	for i, n := range path[:fullPages] {
		n.inMemory = n.inMemory && t.inMemory
		p.ref(n.full)
		t.full = append(t.full, n.full)
		if rebuild || i < first/PageTokens {
			t.window = append(t.window, NoPage)
			continue
		}
		p.ref(n.window)
		t.window = append(t.window, n.window)
	}
	p.touch(path)
	t.twins = p.entryPages() - 1
	t.live, t.end, t.exact, t.rebuild = min(first/PageTokens, fullPages), fullPages, first, rebuild
	if rebuild {
		t.live = h.Rebuild / PageTokens
		t.end = t.live
	}
	if m > 0 && !p.adoptPart(t, part, m) {
		// A prefix of full pages remains. Its window pages may be missing, so the lookup starts
		// again.
		p.Release(t, nil)
		return p.Adopt(t, tokens, hashes, fullPages*PageTokens)
	}
	return h
}

type path []*node

func (w path) last(root *node) *node {
	if len(w) == 0 {
		return root
	}
	return w[len(w)-1]
}

// path is the way down the tree along full pages.
func (p *Pool) path(hashes []Hash, tokens []int32, most int) (nodes path) {
	for i, h := range hashes {
		n := p.index[h]
		if n == nil || (i+1)*PageTokens > most || !slices.Equal(n.tokens[:],
			tokens[i*PageTokens:(i+1)*PageTokens]) {
			break
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// part finds the page after path, whose last is parent, that shares the longest beginning with
// tokens, and its length.
func (p *Pool) part(w path, parent *node, tokens []int32, most int) (best *node, m int) {
	if p.keep.Copy == nil || p.Free() < 1+p.entryPages() {
		return nil, 0
	}
	rest := tokens[len(w)*PageTokens : max(len(w)*PageTokens, min(most, (len(w)+1)*PageTokens))]
	for _, c := range parent.children {
		n := 0
		for n < min(c.n, len(rest)) && c.tokens[n] == rest[n] {
			n++
		}
		if n > m {
			best, m = c, n
		}
	}
	return best, m
}

// choose finds where computing begins. whole is how many pages of path are part of the hit.
func (p *Pool) choose(w path, part *node, m int) (_ Hit, fullPages int) {
	longest := len(w)*PageTokens + m
	if p.windowed(w, part, longest) {
		return Hit{longest, longest}, len(w)
	}
	if rebuildFrom := longest - p.keep.Field; p.keep.Field > 0 && rebuildFrom > 0 {
		for k := len(w); k*PageTokens > rebuildFrom; k-- {
			if index := k * PageTokens; p.windowed(w, part, index) {
				return Hit{index, index}, k
			}
		}
		return Hit{longest, rebuildFrom}, len(w)
	}
	for k := len(w); k > 0; k-- {
		if index := k * PageTokens; p.windowed(w, part, index) {
			return Hit{index, index}, k
		}
	}
	return Hit{}, 0
}

// windowed tells whether the window pages that a query at position pos sees are cached.
func (p *Pool) windowed(w path, part *node, pos int) bool {
	first := max(0, pos-p.window+1)
	for i := first / PageTokens; i*PageTokens < pos; i++ {
		n := part
		if i < len(w) {
			n = w[i]
		}
		if n == nil || n.window < 0 || n.from > max(0, first-i*PageTokens) {
			return false
		}
	}
	return true
}

// touch makes the cached window pages of a path the last to be evicted, its beginning last of all.
func (p *Pool) touch(w path) {
	for _, n := range slices.Backward(w) {
		if n.window >= 0 && p.pages[n.window].class == longLived {
			p.unlist(n.window)
			p.enlist(n.window, longLived)
		}
	}
}

// adoptPart gives the table a page with the first m tokens of part, to be continued: part's own
// page if part is a leaf of m tokens, else a copy.
func (p *Pool) adoptPart(t *Table, part *node, m int) bool {
	if part.n == m && m < PageTokens && part.window >= 0 {
		full, window := part.full, part.window
		p.ref(full)
		p.ref(window)
		p.prune(part, false) // the pages are in a table, so they stay
		t.full, t.window = append(t.full, full), append(t.window, window)
		if t.rebuild { // an entry in front of which others are missing cannot be held
			t.window[len(t.window)-1] = NoPage
			p.unref(window)
		} else {
			t.end = len(t.window)
		}
		return true
	}
	from, need := []int32{part.full}, 1
	if !t.rebuild {
		from, need = append(from, part.window), 1+p.entryPages()
	}
	for _, page := range from {
		p.ref(page)
	}
	var to []int32
	var err error
	if p.Free() >= need {
		for i, page := range from {
			if i == 0 {
				to = append(to, p.take())
			} else {
				to = append(to, p.takeWindow())
			}
			if err = p.copy(page, to[i]); err != nil {
				break
			}
		}
	}
	for _, page := range from {
		p.unref(page)
	}
	if err != nil || len(to) < len(from) {
		for _, page := range to {
			p.unref(page)
		}
		return false
	}
	t.full = append(t.full, to[0])
	if t.rebuild {
		t.window = append(t.window, NoPage)
		return true
	}
	t.window = append(t.window, to[1])
	t.end = len(t.window)
	return true
}

// copy copies a page, and its twin to the other page's twin.
func (p *Pool) copy(from, to int32) error {
	if err := p.keep.Copy(from, to); err != nil || p.twin(to) < 0 {
		return err
	}
	return p.keep.Copy(p.twin(from), p.twin(to))
}

// ReserveWindow reserves the window pages of the positions below positions, for a rebuild from
// position from on, or takes none and returns false. The first rows also see entries in front of
// from; these name the first page, and what the rows make of it is not used.
func (p *Pool) ReserveWindow(t *Table, from, positions int) bool {
	need := (positions+PageTokens-1)/PageTokens - t.end
	if need*p.entryPages() > p.Free() {
		return false
	}
	begin := t.end == from/PageTokens && t.live == t.end
	for range max(0, need) {
		t.window[t.end] = p.takeWindow()
		t.end++
	}
	if begin {
		for i := max(0, from-p.window+1) / PageTokens; i < t.live; i++ {
			t.window[i] = t.window[t.live]
		}
	}
	return true
}

// Rebuilt ends a rebuild: the window pages of the last window-1 positions before cut are right.
func (p *Pool) Rebuilt(t *Table, cut int) {
	p.Slide(t, cut)
	for i := range t.window[:t.live] {
		t.window[i] = NoPage
	}
	t.rebuild = false
	t.exact = max(0, cut-p.window+1)
	n := t.tail
	for i := t.indexed - 1; i >= t.live && n != nil && !n.evicted; i-- {
		p.offerWindow(t, n, i)
		n.pinned = true
		n = n.parent
	}
}

// Restoring pages that were evicted from the pool.

// Restore loads evicted pages of a prefix of tokens, under a root, at most limit of them, so that
// Adopt finds them: the full layers' pages up to the first gap, and the window layers' pages at the
// end. hasMore tells that there are others. An error of load does no harm: pages that are not
// restored are computed.
func (p *Pool) Restore(root Hash, tokens []int32, hashes []Hash, most, limit int,
	has func(h Hash, windowed bool) bool,
	load func(h Hash, windowed bool, page int32) error) (restored int, hasMore bool) {
	if p.keep == nil {
		return 0, false
	}
	w := p.path(hashes, tokens, most)
	end := len(w)
	for end < len(hashes) && (end+1)*PageTokens <= most && has(hashes[end], false) {
		end++
	}
	for _, n := range w { // held, so that they are not evicted to make room
		p.ref(n.full)
	}
	bring := func(h Hash, windowed bool) (int32, bool) {
		take, pages := p.take, 1
		if windowed {
			take, pages = p.takeWindow, p.entryPages()
		}
		if restored == limit || p.Free() < pages {
			hasMore = hasMore || restored == limit
			return 0, false
		}
		page := take()
		if load(h, windowed, page) != nil {
			p.unref(page)
			return 0, false
		}
		restored++
		return page, true
	}
	for i := len(w); i < end; i++ {
		page, ok := bring(hashes[i], false)
		if !ok {
			break
		}
		n := p.addPage(w.last(p.root(root)), hashes[i], tokens[i*PageTokens:], page)
		n.inMemory = true // unless the table that adopts it is not
		w = append(w, n)
	}
	if len(w) == end {
		for i := max(0, end*PageTokens-p.window+1) / PageTokens; i < end; i++ {
			n := w[i]
			if n.window >= 0 || !has(n.hash, true) {
				continue
			}
			page, ok := bring(n.hash, true)
			if !ok {
				break
			}
			n.window, n.from, n.pinned = page, 0, true
			p.assign(page, n, true)
			p.unref(page)
		}
	}
	for i := len(w) - 1; i >= 0; i-- {
		p.unref(w[i].full)
	}
	return restored, hasMore
}
