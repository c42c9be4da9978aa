package models

// The known name that a mistyped one was probably meant to be.

import "strings"

// nearest gives the name of the catalogue that needs the fewest edits to become name, "" when more than a third of it
// would change or another size is meant ("70b" is not a slip for "20b").
func nearest(name string) string {
	name = strings.ToLower(name)
	best, fewest := "", len(name)/3+1
	for _, e := range catalogue() {
		for _, known := range append([]string{e.ID}, e.Aliases...) {
			if d := edits(name, known); d < fewest {
				best, fewest = known, d
			}
		}
	}
	return best
}

// edits counts the insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string
// alignment), in len(a) * len(b) steps.
func edits(a, b string) int {
	if len(a) > 200 {
		return len(a) // no typing error
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
