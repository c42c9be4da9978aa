package checkpoint

import (
	"testing"

	"github.com/ossrun/ossrun/models/mapping"
)

// TestSpans: every byte that is not skipped is in one span, no other is, and none exceeds the
// limit.
func TestSpans(t *testing.T) {
	const size = 1000
	for _, pairs := range [][][2]int64{nil, {{0, 10}}, {{990, 1000}},
		{{100, 200}, {200, 333}, {400, 401}}, {{0, 1000}}, {{50, 50}, {60, 70}},
		{{900, 2000}, {3000, 4000}}} {
		var without []mapping.Range
		for _, p := range pairs {
			without = append(without, mapping.Range{Begin: p[0], End: p[1]})
		}
		for _, each := range []int{1, 7, 64, 5000} {
			var seen, left [size]int
			for _, s := range spansOf(nil, make([]byte, size), without, each) {
				if len(s.data) < 1 || len(s.data) > each {
					t.Errorf("without %v: a span of %d bytes of %d", without, len(s.data), each)
				}
				for i := range s.data {
					seen[int(s.begin)+i]++
				}
			}
			for _, s := range without {
				for i := s.Begin; i < min(s.End, size); i++ {
					left[i] = 1
				}
			}
			for i := range seen {
				if seen[i]+left[i] != 1 {
					t.Fatalf("without %v by %d: byte %d is in %d spans", without, each, i, seen[i])
				}
			}
		}
	}
}
