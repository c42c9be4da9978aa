// The prefix index: trees of pages. A node is the page that follows its parent's; its hash names
// all tokens up to the page's end. A tree's root names who may find its pages.
//
// What must stay true:
//   - A sequence finds pages of its own root's tree only, parts of pages included, so that neither
//     hits nor waiting times reveal to a client the prompts of another root.
//   - The pool knows the roots that have pages, and no others.
//   - A table holds the full page of every node on the way to its tail, so all pages below a cached
//     full page are cached too. The cached pages of a sequence are listed from its end to its
//     beginning, so a page is evicted after those that need it.
//   - A leaf, the part of a page at the end of a sequence, has no hash, is found through its
//     parent, and is in no table.

package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// prefixes is the part of the pool that finds pages by their tokens.
type prefixes struct {
	keep   *Prefixes // nil: nothing is kept
	roots  map[Hash]*node
	index  map[Hash]*node
	tables uint64
}

// Prefixes says how prefixes are kept.
type Prefixes struct {
	Root Hash // of the tables that have none of their own
	// Field is how many positions back from a cut the window layers' keys and values depend on, if
	// those of the full layers are cached; 0: window pages cannot be computed again, so a hit ends
	// at cached ones.
	Field int
	// Copy copies a page's contents; it is called twice for a pair of pages; nil: parts of pages
	// are not shared.
	Copy func(from, to int32) error
	// Evict is called before a cached page is used for something else; it may be nil. inMemory: the
	// contents may not be written to a disk.
	Evict func(h Hash, windowed, inMemory bool, page int32)
}

// node is one page of a prefix, for both kinds of layers.
type node struct {
	hash     Hash
	parent   *node // nil for a root
	children []*node
	tokens   [PageTokens]int32
	n        int    // of tokens; less than PageTokens for a leaf
	full     int32  // -1 for none: roots, and lost pages
	window   int32  // -1 for none
	from     int    // the first of window's PageTokens slots that is right
	pinned   bool   // the window page is kept like a full one
	maker    uint64 // table that computed it
	evicted  bool
	inMemory bool // no disk may have its contents: see Table.InMemory and Withhold
}

// KeepPrefixes makes the pool find prefixes. It is called before the first table is used.
func (p *Pool) KeepPrefixes(o Prefixes) {
	p.keep = &o
	p.roots, p.index = map[Hash]*node{}, map[Hash]*node{}
}

// root is the root of the prefixes with this name. It exists while it has pages.
func (p *Pool) root(h Hash) *node {
	if h == (Hash{}) {
		h = p.keep.Root
	}
	if n := p.roots[h]; n != nil {
		return n
	}
	return &node{hash: h, n: PageTokens, full: -1, window: -1}
}

// tailOf is the page that the next one of a table follows.
func (p *Pool) tailOf(t *Table) *node {
	if t.tail != nil {
		return t.tail
	}
	return p.root(t.root)
}

// follow puts a page after another.
func (p *Pool) follow(parent, n *node) {
	n.parent = parent
	parent.children = append(parent.children, n)
	if parent.parent == nil {
		p.roots[parent.hash] = parent
	}
}

// Forget drops all cached pages: their contents are lost. Tables in use stay as they are, but the
// index no longer knows them.
func (p *Pool) Forget() {
	for _, root := range p.roots {
		for len(root.children) > 0 {
			p.prune(root.children[0], false)
		}
	}
}

// Invalidate drops the pages that this table computed from the index: their contents may be wrong.
func (p *Pool) Invalidate(t *Table) {
	t.private = true
	var first *node
	for n := t.tail; n != nil; n = n.parent {
		if n.maker == t.id {
			first = n
		}
	}
	if first != nil && !first.evicted {
		p.prune(first, false)
	}
}

// Commit puts the whole pages below position computed into the index. tokens are the sequence's;
// hashes name their pages, as far as the caller has made them. If the index has a page already, the
// table takes that page and gives its own back.
func (p *Pool) Commit(t *Table, tokens []int32, hashes []Hash, computed int) {
	if p.keep == nil || t.private || t.rebuild {
		return
	}
	for t.indexed < computed/PageTokens {
		if t.id == 0 {
			p.tables++
			t.id = p.tables
		}
		parent := p.tailOf(t)
		if parent.evicted {
			t.private = true
			return
		}
		i := t.indexed
		page := tokens[i*PageTokens : (i+1)*PageTokens]
		var h Hash
		if i < len(hashes) {
			h = hashes[i]
		} else {
			h = parent.hash.Next(page)
		}
		n := p.index[h]
		if n == nil {
			p.dropLeaves(parent, page)
			n = p.addPage(parent, h, page, t.full[i])
			n.maker, n.inMemory = t.id, t.inMemory
		} else if n.full != t.full[i] {
			p.ref(n.full)
			p.unref(t.full[i])
			t.full[i] = n.full
		}
		n.inMemory = n.inMemory && t.inMemory
		p.offerWindow(t, n, i)
		t.tail = n
		t.indexed++
	}
}

func (p *Pool) addPage(parent *node, h Hash, tokens []int32, full int32) *node {
	n := &node{hash: h, n: PageTokens, full: full, window: -1}
	copy(n.tokens[:], tokens)
	p.index[h] = n
	p.follow(parent, n)
	p.assign(full, n, false)
	return n
}

func (p *Pool) assign(page int32, n *node, windowed bool) {
	p.pages[page].node, p.pages[page].windowed = n, windowed
}

// offerWindow gives the node the table's window page i. If the node has a page that is as good, the
// table takes that page instead.
func (p *Pool) offerWindow(t *Table, n *node, i int) {
	if i < t.live || i >= t.end || t.window[i] == n.window {
		return
	}
	from := max(0, t.exact-i*PageTokens)
	if from >= PageTokens {
		return
	}
	page := t.window[i]
	if n.window >= 0 && n.from <= from {
		p.ref(n.window)
		p.unref(page)
		t.window[i] = n.window
		return
	}
	if n.window >= 0 {
		p.unindex(n.window)
	}
	n.window, n.from = page, from
	p.assign(page, n, true)
}

// unindex takes a page out of the index. If no table has it, it is free.
func (p *Pool) unindex(page int32) {
	m := &p.pages[page]
	m.node = nil
	if m.refs == 0 {
		p.unlist(page)
		p.drop(page)
	}
}

// addLeaf keeps the tokens after the last full page of a sequence that ends.
func (p *Pool) addLeaf(t *Table, computed []int32) {
	i, rest := t.indexed, computed[min(len(computed), t.indexed*PageTokens):]
	if p.keep == nil || t.private || t.rebuild || len(rest) == 0 || len(rest) >= PageTokens ||
		i >= t.end || i < t.live ||
		t.exact-i*PageTokens >= len(rest) {
		return
	}
	parent := p.tailOf(t)
	if parent.evicted {
		return
	}
	for _, c := range parent.children {
		if c.n >= len(rest) && slices.Equal(c.tokens[:len(rest)], rest) {
			return // indexed already
		}
	}
	p.dropLeaves(parent, rest)
	n := &node{n: len(rest), full: t.full[i], window: t.window[i],
		from: max(0, t.exact-i*PageTokens), pinned: true}
	copy(n.tokens[:], rest)
	p.follow(parent, n)
	p.assign(n.full, n, false)
	p.assign(n.window, n, true)
}

func (p *Pool) dropLeaves(parent *node, tokens []int32) {
	for i := len(parent.children) - 1; i >= 0; i-- {
		if c := parent.children[i]; c.n < PageTokens && c.n <= len(tokens) &&
			slices.Equal(c.tokens[:c.n], tokens[:c.n]) {
			p.prune(c, false)
		}
	}
}

// evict frees at least one cached page: the least recently used of the class that goes first.
func (p *Pool) evict() {
	page := p.evictable[shortLived].first
	if page < 0 {
		page = p.evictable[longLived].first
	}
	n := p.pages[page].node
	if p.pages[page].windowed {
		p.offerToSpill(n, true)
		p.unindex(page)
		n.window = -1
		return
	}
	p.prune(n, true)
}

// Flush frees every cached page, the least recently used first, and calls Evict for those that are
// kept.
func (p *Pool) Flush() {
	for p.keep != nil && p.Cached() > 0 {
		p.evict()
	}
}

// EvictPassing frees the cached window pages that no cut needs, which are the first to go when
// pages are short.
func (p *Pool) EvictPassing() {
	for p.evictable[shortLived].first >= 0 {
		p.evict()
	}
}

// offerToSpill calls Evict for a page whose contents are about to be lost.
func (p *Pool) offerToSpill(n *node, windowed bool) {
	if p.keep.Evict == nil || n.n < PageTokens {
		return
	}
	switch {
	case !windowed:
		p.keep.Evict(n.hash, false, n.inMemory, n.full)
	case n.window >= 0 && n.pinned && n.from == 0:
		p.keep.Evict(n.hash, true, n.inMemory, n.window)
	}
}

// prune takes a node and all below it out of the index.
func (p *Pool) prune(n *node, report bool) {
	siblings := n.parent.children
	i := slices.Index(siblings, n)
	siblings[i] = siblings[len(siblings)-1]
	siblings[len(siblings)-1] = nil
	n.parent.children = siblings[:len(siblings)-1]
	if n.parent.parent == nil && len(n.parent.children) == 0 {
		delete(p.roots, n.parent.hash)
	}
	for below := []*node{n}; len(below) > 0; {
		n := below[len(below)-1]
		below = append(below[:len(below)-1], n.children...)
		n.children, n.evicted = nil, true
		if n.n == PageTokens {
			delete(p.index, n.hash)
		}
		if report {
			p.offerToSpill(n, false)
			p.offerToSpill(n, true)
		}
		p.unindex(n.full)
		if n.window >= 0 {
			p.unindex(n.window)
		}
		n.full, n.window = -1, -1
	}
}

// Names of prefixes. A page is named by all tokens up to its end, not by its own tokens alone,
// since its keys and values depend on all tokens before it.

// Hash names a prefix of whole pages. It is cryptographic, so collisions can be ignored, and
// stable, so that pages can be found again in another process.
type Hash [16]byte

// RootOf names the empty prefix for what the words describe, so that pages of two models, or of two
// element types, never get the same name.
func RootOf(words ...string) (h Hash) {
	d := sha256.New()
	for _, w := range words {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(w)))
		d.Write(n[:])
		d.Write([]byte(w))
	}
	copy(h[:], d.Sum(nil))
	return h
}

// Salted is the empty prefix again, for those who have this salt; "": for all others.
func (h Hash) Salted(salt string) Hash {
	if salt == "" {
		return h
	}
	return RootOf("salted", string(h[:]), salt)
}

// Next is the name of prefix h extended by PageTokens more tokens.
func (h Hash) Next(page []int32) (next Hash) {
	var b [len(h) + 4*PageTokens]byte
	copy(b[:], h[:])
	for i, id := range page[:PageTokens] {
		binary.LittleEndian.PutUint32(b[len(h)+4*i:], uint32(id))
	}
	sum := sha256.Sum256(b[:])
	copy(next[:], sum[:])
	return next
}

// Hashes appends to have the names of the prefixes of tokens that end with each further whole page.
func Hashes(root Hash, have []Hash, tokens []int32) []Hash {
	h := root
	if len(have) > 0 {
		h = have[len(have)-1]
	}
	for pos := len(have) * PageTokens; pos+PageTokens <= len(tokens); pos += PageTokens {
		h = h.Next(tokens[pos : pos+PageTokens])
		have = append(have, h)
	}
	return have
}
