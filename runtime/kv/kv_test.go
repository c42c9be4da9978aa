package kv

import (
	"math/rand/v2"
	"testing"
)

// check holds the pool to its invariants: every page is free or in one table, and the counts say
// so.
func check(t *testing.T, p *Pool, tables []*Table) {
	t.Helper()
	seen := make([]int, p.Total())
	for _, page := range p.free {
		seen[page]++
	}
	used := 0
	checkIndex(t, p, tables)
	for _, tab := range tables {
		if len(tab.full) != len(tab.window) {
			t.Fatalf("tables of %d and %d entries", len(tab.full), len(tab.window))
		}
		held := 0
		for i := range tab.full {
			seen[tab.full[i]]++
			held++
			if tab.window[i] == NoPage {
				if i >= tab.live {
					t.Fatalf("entry %d is given back behind entry %d, which is not", i, tab.live)
				}
				continue
			}
			seen[tab.window[i]]++
			held++
			if twin := p.twin(tab.window[i]); twin >= 0 {
				seen[twin]++
				held++
			}
		}
		if tab.Pages() != held {
			t.Fatalf("the table says %d pages and holds %d", tab.Pages(), held)
		}
		used += held
	}
	for page, n := range seen {
		if n != 1 {
			t.Fatalf("page %d is in %d places", page, n)
		}
	}
	if p.Used() != used || p.Used()+p.Free() != p.Total() || p.Peak() < p.Used() {
		t.Fatalf("used %d (want %d), free %d, total %d, peak %d", p.Used(), used, p.Free(),
			p.Total(), p.Peak())
	}
}

// sequence runs as the scheduler runs it: reserve a chunk, compute it, slide.
type sequence struct {
	Table
	next  int
	chunk int
}

func run(t *testing.T, rng *rand.Rand, window int) {
	pages, windowPages := 20+rng.IntN(100), 1
	if rng.IntN(3) == 0 {
		windowPages = 2
	}
	p := NewPool(pages, window, windowPages)
	var seqs []*sequence
	tables := func() (all []*Table) {
		for _, s := range seqs {
			all = append(all, &s.Table)
		}
		return all
	}
	for range 300 {
		switch n := rng.IntN(10); {
		case n == 0 || len(seqs) == 0:
			seqs = append(seqs, &sequence{chunk: 1 + rng.IntN(200)})
		case n == 1:
			i := rng.IntN(len(seqs))
			p.Release(&seqs[i].Table, nil)
			if seqs[i].Pages() != 0 {
				t.Fatal("pages after Release")
			}
			seqs = append(seqs[:i], seqs[i+1:]...)
		default:
			s := seqs[rng.IntN(len(seqs))]
			rows := 1 + rng.IntN(s.chunk)
			before, free, need := s.Pages(), p.Free(), p.Need(&s.Table, s.next+rows)
			if ok := p.Reserve(&s.Table, s.next+rows); ok != (need <= free) {
				t.Fatalf("need %d, free %d, reserved %v", need, free, ok)
			} else if !ok {
				if s.Pages() != before || p.Free() != free {
					t.Fatal("a refused reservation took pages")
				}
				continue
			}
			if s.Pages() != before+need || s.Room() < s.next+rows {
				t.Fatalf("%d pages, %d before, need %d, room %d", s.Pages(), before, need, s.Room())
			}
			// Every position that a row of this chunk sees has its page.
			for pos := max(0, s.next-window+1); pos < s.next+rows; pos++ {
				if s.Window()[pos/PageTokens] == NoPage {
					t.Fatalf("window page of position %d is gone at %d", pos, s.next)
				}
			}
			if most := PagesOf(s.next+rows, s.chunk, window, p.entryPages()); s.Pages() > most {
				t.Fatalf("%d positions in chunks of %d hold %d pages, PagesOf says %d", s.next+rows,
					s.chunk, s.Pages(), most)
			}
			s.next += rows
			p.Slide(&s.Table, s.next)
			// Nothing is kept that the next row cannot see.
			for i, page := range s.Window() {
				if page != NoPage && (i+1)*PageTokens <= s.next-window+1 {
					t.Fatalf("window page %d is kept at position %d", i, s.next)
				}
			}
		}
		check(t, p, tables())
	}
	for _, s := range seqs {
		p.Release(&s.Table, nil)
	}
	if p.Free() != p.Total() {
		t.Fatalf("%d of %d pages are lost", p.Used(), p.Total())
	}
}

func TestPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		run(t, rng, []int{1, 2, 31, 32, 33, 64, 128}[rng.IntN(7)])
	}
}

func FuzzPool(f *testing.F) {
	f.Add(uint64(1), uint8(128))
	f.Fuzz(func(t *testing.T, seed uint64, window uint8) {
		run(t, rand.New(rand.NewPCG(seed, 0)),
			1+int(window))
	})
}

// PagesFor is not only a bound: some alignment needs it.
func TestPagesForIsReached(t *testing.T) {
	for _, window := range []int{1, 2, 33, 128} {
		for _, chunk := range []int{1, 2, 31, 32, 33, 100} {
			most := 0
			// a first chunk of any length shifts the alignment
			for first := 1; first <= PageTokens; first++ {
				p := NewPool(1000, window, 1)
				var s Table
				next := 0
				for next < 640 {
					rows := chunk
					if next == 0 {
						rows = min(first, chunk)
					}
					p.Reserve(&s, next+rows)
					if len(s.full) == 20 {
						most = max(most, s.Pages())
					}
					next += rows
					p.Slide(&s, next)
					if next > 608 && chunk > 1 {
						break
					}
				}
			}
			if want := PagesOf(640, chunk, window, 1); most > want {
				t.Errorf("window %d chunk %d: %d pages, PagesFor says %d", window, chunk, most,
					want)
			} else if want-most > 1 {
				t.Errorf("window %d chunk %d: PagesFor says %d, at most %d are held", window, chunk,
					want, most)
			}
		}
	}
}

func TestSequenceOfGptOSS(t *testing.T) {
	const window = 128
	p := NewPool(8192, window, 1)
	var s Table
	for next := range 4096 {
		if !p.Reserve(&s, next+1) {
			t.Fatal("no pages")
		}
		p.Slide(&s, next+1)
	}
	// 128 full pages; the next query, at 4096, sees 3969..4096: four whole pages.
	if s.Pages() != 128+4 || p.Used() != 132 {
		t.Fatalf("%d pages", s.Pages())
	}
}

func BenchmarkDecode(b *testing.B) {
	p := NewPool(4096, 128, 1)
	var s Table
	next := 0
	for b.Loop() {
		if next == 60000 {
			p.Release(&s, nil)
			next = 0
		}
		p.Reserve(&s, next+1)
		next++
		p.Slide(&s, next)
	}
}
