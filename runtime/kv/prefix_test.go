package kv

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkIndex holds the pool to what pool.go and prefix.go promise: one state a page, references as
// the tables have them, nothing used below something cached.
func checkIndex(t *testing.T, p *Pool, tables []*Table) {
	t.Helper()
	refs := make([]int32, p.Total())
	for _, tab := range tables {
		for _, page := range tab.full {
			refs[page]++
		}
		for i := tab.live; i < tab.end; i++ {
			refs[tab.window[i]]++
		}
	}
	for page, twin := range p.twins { // in the state of their pages, and theirs alone
		if twin < 0 {
			continue
		}
		if refs[twin] != 0 || p.twins[twin] >= 0 || p.pages[twin].node != nil ||
			p.pages[twin].class != none || p.pages[page].refs == 0 && p.pages[page].class == none {
			t.Fatalf("page %d is the twin of page %d: %+v, %+v", twin, page, p.pages[twin],
				p.pages[page])
		}
		refs[twin] = min(refs[page], 1)
	}
	used := 0
	for page := range p.pages {
		if p.pages[page].refs != refs[page] {
			t.Fatalf("page %d has %d references, %d tables hold it", page, p.pages[page].refs,
				refs[page])
		}
		if refs[page] > 0 {
			used++
		}
	}
	listed := map[int32]bool{}
	for l := shortLived; l <= longLived; l++ {
		before := int32(-1)
		for page := p.evictable[l].first; page >= 0; page = p.pages[page].next {
			m := p.pages[page]
			if m.class != l || m.prev != before || m.node == nil || m.refs != 0 || listed[page] {
				t.Fatalf("page %d in list %d: %+v", page, l, m)
			}
			listed[page], before = true, page
			if twin := p.twin(page); twin >= 0 {
				if listed[twin] {
					t.Fatalf("page %d is a twin twice", twin)
				}
				listed[twin] = true
			} else if m.windowed && p.twins != nil {
				t.Fatalf("window page %d has no twin", page)
			}
		}
		if p.evictable[l].last != before {
			t.Fatalf("list %d ends at %d, its last page is %d", l, p.evictable[l].last, before)
		}
	}
	for _, page := range p.free {
		if m := p.pages[page]; m.refs != 0 || m.class != none || m.node != nil {
			t.Fatalf("free page %d: %+v", page, m)
		}
	}
	if used != p.Used() || len(listed) != p.Cached() || used+len(listed)+len(p.free) != p.Total() ||
		p.Free() != p.Total()-used {
		t.Fatalf("%d used (said %d), %d cached (said %d), %d free, %d in all", used, p.Used(),
			len(listed), p.Cached(), len(p.free), p.Total())
	}
	whole := 0
	var walk func(n *node, above int32)
	walk = func(n *node, above int32) {
		if n.evicted || p.pages[n.full].node != n || n.window >= 0 && p.pages[n.window].node != n {
			t.Fatalf("node %+v and its pages do not know each other", n)
		}
		if above == 0 && refs[n.full] > 0 {
			t.Fatal("a page is used below one that is cached")
		}
		if n.n == PageTokens {
			whole++
			if p.index[n.hash] != n || n.parent.hash.Next(n.tokens[:]) != n.hash {
				t.Fatal("a node is not found under the hash of its tokens")
			}
		} else if len(n.children) > 0 || refs[n.full] > 0 {
			t.Fatal("a leaf has children or is in a table")
		}
		for _, c := range n.children {
			walk(c, refs[n.full])
		}
	}
	for h, root := range p.roots {
		if root.hash != h || root.parent != nil || len(root.children) == 0 {
			t.Fatalf("root %x: %+v", h, root)
		}
		for _, c := range root.children {
			if c.parent != root {
				t.Fatal("a page does not know its root")
			}
			walk(c, 1)
		}
	}
	if whole != len(p.index) {
		t.Fatalf("%d nodes, %d in the index", whole, len(p.index))
	}
}

// world is a pool with contents: what each slot of each page holds, as a device would have it.
type world struct {
	t       *testing.T
	p       *Pool
	window  int
	field   int
	full    [][PageTokens]uint64 // the prefix up to this position
	win     [][PageTokens]uint64
	seqs    []*talk
	saved   int
	rebuilt int
	spilled map[Hash][PageTokens]uint64
	wspill  map[Hash][2][PageTokens]uint64
}

// setWindow writes a slot of a window page, and another value into its twin's; getWindow tells
// whether both are there.
func (w *world) setWindow(page int32, slot int, value uint64) {
	w.win[page][slot] = value
	if twin := w.p.twin(page); twin >= 0 {
		w.win[twin][slot] = ^value
	}
}

func (w *world) getWindow(page int32, slot int, value uint64) bool {
	twin := w.p.twin(page)
	if twin < 0 && w.p.twins != nil {
		return false
	}
	return w.win[page][slot] == value && (twin < 0 || w.win[twin][slot] == ^value)
}

// talk is a sequence with its tokens.
type talk struct {
	Table
	tokens []int32
	salt   string
	next   int // computed
	cut    int // rebuild: up to here
}

// prefix is what a page holds at the end of the first n tokens.
func (s *talk) prefix(n int) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range s.salt {
		h = (h ^ uint64(c)<<32) * 1099511628211
	}
	for _, id := range s.tokens[:n] {
		h = (h ^ uint64(id+1)) * 1099511628211
	}
	return h
}

func newWorld(t *testing.T, rng *rand.Rand) *world {
	w := &world{t: t, window: []int{1, 2, 20, 33, 64, 128}[rng.IntN(6)],
		spilled: map[Hash][PageTokens]uint64{}, wspill: map[Hash][2][PageTokens]uint64{}}
	pages, windowPages := 30+rng.IntN(120), 1
	if rng.IntN(3) == 0 {
		windowPages = 2
	}
	w.p = NewPool(pages, w.window, windowPages)
	w.full, w.win = make([][PageTokens]uint64, w.p.Total()), make([][PageTokens]uint64, w.p.Total())
	if rng.IntN(2) == 0 {
		w.field = 1 + (w.window-1)*(1+rng.IntN(3))
	}
	keep := Prefixes{Root: RootOf("test"), Field: w.field}
	if rng.IntN(3) > 0 {
		keep.Copy = func(from, to int32) error {
			if rng.IntN(20) == 0 {
				return errors.New("no copy today")
			}
			w.full[to], w.win[to] = w.full[from], w.win[from]
			return nil
		}
	}
	if rng.IntN(2) == 0 {
		keep.Evict = func(h Hash, windowed, _ bool, page int32) {
			if windowed {
				both := [2][PageTokens]uint64{w.win[page]}
				if twin := w.p.twin(page); twin >= 0 {
					both[1] = w.win[twin]
				}
				w.wspill[h] = both
			} else {
				w.spilled[h] = w.full[page]
			}
		}
	}
	w.p.KeepPrefixes(keep)
	return w
}

// begin starts a sequence and holds what it adopted to the contents.
func (w *world) begin(rng *rand.Rand, tokens []int32) {
	s := &talk{tokens: tokens, salt: []string{"", "", "a", "b"}[rng.IntN(4)]}
	root := RootOf("test").Salted(s.salt)
	if s.salt != "" || rng.IntN(2) == 0 {
		s.Root(root)
	}
	hashes := Hashes(root, nil, tokens)
	has := func(h Hash, windowed bool) bool {
		_, ok := w.spilled[h]
		if windowed {
			_, ok = w.wspill[h]
		}
		return ok
	}
	w.p.Restore(s.root, tokens, hashes, len(tokens)-1, 1+rng.IntN(10), has, func(h Hash,
		windowed bool, page int32) error {
		if rng.IntN(20) == 0 {
			return errors.New("the disk is gone")
		}
		if windowed {
			w.win[page] = w.wspill[h][0]
			if twin := w.p.twin(page); twin >= 0 {
				w.win[twin] = w.wspill[h][1]
			}
		} else {
			w.full[page] = w.spilled[h]
		}
		return nil
	})
	h := w.p.Adopt(&s.Table, tokens, hashes, len(tokens)-1)
	w.saved += h.Rebuild
	if h.Tokens >= len(tokens) || h.Rebuild > h.Tokens || h.Tokens > s.Room() {
		w.t.Fatalf("hit %+v of %d tokens, room %d", h, len(tokens), s.Room())
	}
	var cuts []int
	for c := rng.IntN(60) + 1; c < len(tokens); c += 1 + rng.IntN(200) {
		cuts = append(cuts, c)
	}
	s.Cuts(cuts)
	s.next, s.cut = h.Rebuild, h.Tokens
	w.seqs = append(w.seqs, s)
	for pos := range h.Tokens {
		if got := w.full[s.full[pos/PageTokens]][pos%PageTokens]; got != s.prefix(pos+1) {
			w.t.Fatalf("adopted %d tokens, the full page of position %d holds something else",
				h.Tokens, pos)
		}
	}
	if h.Rebuild < h.Tokens {
		if w.field == 0 || h.Tokens-h.Rebuild != w.field {
			w.t.Fatalf("hit %+v with a field of %d", h, w.field)
		}
		return
	}
	w.sees(s, h.Tokens)
}

// sees checks that the window layers have what a query at position at sees.
func (w *world) sees(s *talk, at int) {
	for pos := max(0, at-w.window+1); pos < at; pos++ {
		if page := s.window[pos/PageTokens]; page == NoPage || !w.getWindow(page, pos%PageTokens,
			s.prefix(pos+1)) {
			w.t.Fatalf("position %d is not in the window layers at %d", pos, at)
		}
	}
}

// compute moves a sequence on; false: no pages.
func (w *world) compute(s *talk, rows int) bool {
	if s.next < s.cut { // window layers only
		from, to := s.cut-w.field, min(s.cut, s.next+rows)
		if !w.p.ReserveWindow(&s.Table, from, to) {
			return false
		}
		for pos := max(0, s.next-w.window+1); pos < s.next; pos++ {
			if s.window[pos/PageTokens] == NoPage {
				w.t.Fatalf("a row at %d finds no page at %d", s.next, pos)
			}
		}
		for pos := s.next; pos < to; pos++ {
			value := s.prefix(pos + 1)
			if pos < s.cut-w.window+1 {
				value = 0xbad
			}
			w.setWindow(s.window[pos/PageTokens], pos%PageTokens, value)
		}
		s.next = to
		w.rebuilt++
		if w.p.Slide(&s.Table, to); to == s.cut {
			w.p.Rebuilt(&s.Table, to)
			w.sees(s, to)
		}
		return true
	}
	to := min(len(s.tokens), s.next+rows)
	if !w.p.Reserve(&s.Table, to) {
		return false
	}
	w.sees(s, s.next)
	for pos := s.next; pos < to; pos++ {
		for _, page := range []int32{s.full[pos/PageTokens], s.window[pos/PageTokens]} {
			if w.p.pages[page].refs != 1 || w.p.pages[page].node != nil {
				w.t.Fatalf("position %d is written into a page of others", pos)
			}
		}
		w.full[s.full[pos/PageTokens]][pos%PageTokens] = s.prefix(pos + 1)
		w.setWindow(s.window[pos/PageTokens], pos%PageTokens, s.prefix(pos+1))
	}
	s.next = to
	w.p.Commit(&s.Table, s.tokens, nil, s.next)
	w.p.Slide(&s.Table, s.next)
	return true
}

func (w *world) end(i int) {
	s := w.seqs[i]
	computed := s.next
	if s.next < s.cut {
		computed = 0
	}
	w.p.Release(&s.Table, s.tokens[:computed])
	w.seqs = slices.Delete(w.seqs, i, i+1)
}

func live(t *testing.T, rng *rand.Rand) (saved, rebuilt int) {
	w := newWorld(t, rng)
	var past [][]int32
	for range 250 {
		switch n := rng.IntN(12); {
		case n == 0 || len(w.seqs) == 0:
			var tokens []int32
			// goes on from an earlier one, or leaves it somewhere
			if len(past) > 0 && rng.IntN(5) > 0 {
				tokens = slices.Clone(past[rng.IntN(len(past))])
				if rng.IntN(2) == 0 {
					tokens = tokens[:rng.IntN(len(tokens)+1)]
				}
			}
			for range 1 + rng.IntN(1+rng.IntN(300)) {
				tokens = append(tokens, int32(rng.IntN(3)))
			}
			past = append(past, tokens)
			w.begin(rng, tokens)
		case n == 1:
			w.end(rng.IntN(len(w.seqs)))
		case n == 2 && rng.IntN(20) == 0:
			w.p.Invalidate(&w.seqs[rng.IntN(len(w.seqs))].Table)
		case n == 2 && rng.IntN(40) == 0:
			w.p.Forget()
		default:
			s := w.seqs[rng.IntN(len(w.seqs))]
			if s.next == len(s.tokens) || !w.compute(s, 1+rng.IntN(150)) {
				w.end(slices.Index(w.seqs, s))
			}
		}
		var tables []*Table
		for _, s := range w.seqs {
			tables = append(tables, &s.Table)
		}
		checkIndex(t, w.p, tables)
	}
	for len(w.seqs) > 0 {
		w.end(0)
	}
	checkIndex(t, w.p, nil)
	if w.p.Used() != 0 {
		t.Fatalf("%d pages are lost", w.p.Used())
	}
	w.p.Forget()
	if len(w.p.free) != w.p.Total() || len(w.p.index) != 0 || len(w.p.roots) != 0 {
		t.Fatalf("%d of %d pages are free after Forget, %d roots", len(w.p.free), w.p.Total(),
			len(w.p.roots))
	}
	return w.saved, w.rebuilt
}

// Random sequences start, continue and end: adopted pages match their tokens, and no page
// is lost or shared with a writer.
func TestPrefixes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	saved, rebuilt := 0, 0
	for range 200 {
		a, b := live(t, rng)
		saved, rebuilt = saved+a, rebuilt+b
	}
	if saved < 100000 || rebuilt < 50 {
		t.Fatalf("%d positions were found and %d chunks rebuilt: the worlds do not test enough",
			saved, rebuilt)
	}
}

func FuzzPrefixes(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { live(t, rand.New(rand.NewPCG(a, b))) })
}

func TestHashNamesEverythingBefore(t *testing.T) {
	tokens := make([]int32, 3*PageTokens)
	a := Hashes(RootOf("m"), nil, tokens)
	tokens[0] = 1
	b := Hashes(RootOf("m"), nil, tokens)
	if len(a) != 3 || a[0] == b[0] || a[2] == b[2] || a[1] == a[0] {
		t.Fatalf("%x %x", a, b)
	}
	if c := Hashes(RootOf("n"), nil, tokens); c[0] == b[0] {
		t.Fatal("two models share a name")
	}
	if m := RootOf("m"); m.Salted("") != m || m.Salted("a") == m || m.Salted("a") == m.Salted("b") ||
		m.Salted("a") == RootOf("n").Salted("a") {
		t.Fatal("a salt keeps nothing apart, or no salt does")
	}
	if c := Hashes(RootOf("m"), slices.Clone(b[:1]), tokens); !slices.Equal(c, b) {
		t.Fatal("going on gives other names")
	}
}

func BenchmarkHashes(b *testing.B) {
	tokens := make([]int32, 32768)
	for b.Loop() {
		Hashes(Hash{}, nil, tokens)
	}
}

func BenchmarkAdopt(b *testing.B) {
	p := NewPool(5000, 128, 1)
	p.KeepPrefixes(Prefixes{Field: 1524})
	tokens := make([]int32, 32768)
	for i := range tokens {
		tokens[i] = int32(i)
	}
	hashes := Hashes(Hash{}, nil, tokens)
	var s Table
	for next := 0; next < len(tokens); next += 512 {
		p.Reserve(&s, next+512)
		p.Commit(&s, tokens, nil, next+512)
		p.Slide(&s, next+512)
	}
	p.Release(&s, tokens)
	b.ReportAllocs()
	for b.Loop() {
		if h := p.Adopt(&s, tokens, hashes, len(tokens)-1); h.Tokens != len(tokens)-PageTokens {
			b.Fatal(h)
		}
		p.Release(&s, tokens[:len(tokens)-PageTokens])
	}
}
