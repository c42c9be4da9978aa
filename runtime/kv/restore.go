// Restoring pages that were evicted from the pool.

package kv

// Restore brings back pages of a prefix of tokens from another memory, at most limit of them, so
// that Adopt finds them: the full layers' pages up to the first gap, and the window layers' pages
// at the end. more tells that there are others. An error of load does no harm: what was not
// restored is computed.
func (p *Pool) Restore(tokens []int32, hashes []Hash, most, limit int, has func(h Hash,
	windowed bool) bool,
	load func(h Hash, windowed bool, page int32) error) (restored int, more bool) {
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
			take, pages = p.takeWindow, p.each()
		}
		if restored == limit || p.Free() < pages {
			more = more || restored == limit
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
		w = append(w, p.addPage(w.last(&p.root), hashes[i], tokens[i*PageTokens:], page))
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
			p.holds(page, n, true)
			p.unref(page)
		}
	}
	for i := len(w) - 1; i >= 0; i-- {
		p.unref(w[i].full)
	}
	return restored, more
}
