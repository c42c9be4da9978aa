package sample

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// naiveStop cuts the whole text at the stop string that ends first, the longest of those that end
// there.
func naiveStop(text string, stops []string) (before, met string) {
	end := -1
	for _, s := range stops {
		if s == "" {
			continue
		}
		if i := strings.Index(text, s); i >= 0 {
			if e := i + len(s); end < 0 || e < end || e == end && len(s) > len(met) {
				end, met = e, s
			}
		}
	}
	if end < 0 {
		return text, ""
	}
	return text[:end-len(met)], met
}

// check streams the text in pieces given by the bits of cuts, and holds every emitted piece to the
// rules.
func check(t *testing.T, text string, stops []string, cuts uint) {
	t.Helper()
	wantText, wantMet := naiveStop(text, stops)
	m := NewStopMatcher(stops)
	var got, met string
	from := 0
	for i := 1; i <= len(text); i++ {
		if i < len(text) && cuts>>(i-1)&1 == 0 {
			continue
		}
		emit, hit := m.Push(text[from:i])
		from = i
		got += emit
		if met != "" && (emit != "" || hit != "") {
			t.Fatalf("%q %q: text after the stop", text, stops)
		}
		if hit != "" {
			met = hit
		}
		if met == "" {
			// Exactly the longest beginning of a stop string at the end is held back.
			hold := 0
			for _, s := range stops {
				for n := min(len(s)-1, i); n > hold; n-- {
					if strings.HasSuffix(text[:i], s[:n]) {
						hold = n
					}
				}
			}
			if len(got) != i-hold {
				t.Fatalf("%q %q after %d bytes: %d emitted, want %d", text, stops, i, len(got),
					i-hold)
			}
		}
	}
	got += m.Flush()
	if got != wantText || met != wantMet {
		t.Fatalf("%q %q cuts %b: got %q stop %q, want %q stop %q", text, stops, cuts, got, met,
			wantText, wantMet)
	}
}

// words returns every word over the letters up to n long.
func words(letters string, n int) []string {
	all := []string{""}
	for from := 0; n > 0; n-- {
		to := len(all)
		for _, w := range all[from:to] {
			for _, l := range letters {
				all = append(all, w+string(l))
			}
		}
		from = to
	}
	return all
}

func TestStopMatcherExhaustively(t *testing.T) {
	stops := words("ab", 3)
	for _, text := range words("ab", 7) {
		for i, a := range stops {
			for _, b := range stops[i:] {
				set := []string{a, b}
				check(t, text, set, 0)
				check(t, text, set, ^uint(0))
				check(t, text, set, 0b0101011)
			}
		}
	}
	for _, text := range words("ab", 8) {
		for _, a := range words("ab", 5) {
			for _, cuts := range []uint{0, ^uint(0), 0b10010110} {
				check(t, text, []string{a}, cuts)
			}
		}
	}
	for _, text := range words("abc", 5) { // every way to cut
		for _, a := range words("abc", 3) {
			for cuts := range uint(1) << max(len(text)-1, 0) {
				check(t, text, []string{a, "ca"}, cuts)
			}
		}
	}
}

func TestStopMatcherAtRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	word := func(n int) string {
		var b strings.Builder
		for range rng.IntN(n + 1) {
			b.WriteByte("abc"[rng.IntN(3)])
		}
		return b.String()
	}
	for range 20000 {
		stops := make([]string, rng.IntN(5))
		for i := range stops {
			stops[i] = word(9)
		}
		check(t, word(40), stops, uint(rng.Uint64()))
	}
}

func FuzzStopMatcher(f *testing.F) {
	f.Add("the end.\n\nUser: x", "\n\nUser:", "end!", uint(0b1011))
	f.Fuzz(func(t *testing.T, text, a, b string, cuts uint) {
		if len(text) < 60 && len(a) < 60 && len(b) < 60 {
			check(t, text, []string{a, b}, cuts)
		}
	})
}

func BenchmarkStopMatcher(b *testing.B) {
	m := NewStopMatcher([]string{"\n\nUser:", "</s>", "END", "\n\n\n"})
	b.SetBytes(5)
	b.ReportAllocs()
	for b.Loop() {
		m.Push(" word")
	}
}
