package device

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table of docs/gpu.md says for each kernel variant on which card it ran and when.

// TestVariantsHaveARow: each variant has its row, in their order, and no other has one; a row names
// cards with a date, or says that there was none.
func TestVariantsHaveARow(t *testing.T) {
	text, err := os.ReadFile("../../docs/gpu.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| kernel | what | on which card, when |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/gpu.md has no table of what ran")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	row := regexp.MustCompile("^\\| `([a-z0-9_]+)` \\| [^|]+ \\| (.+) \\|$")
	ran := regexp.MustCompile(`^(no card|[A-Z][A-Za-z0-9, ]+: 20\d\d-\d\d-\d\d(; .+)?)$`)
	var have []Variant
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		cells := row.FindStringSubmatch(line)
		if cells == nil || !ran.MatchString(cells[2]) {
			t.Errorf("no row of the table: %q", line)
			continue
		}
		have = append(have, Variant(cells[1]))
	}
	if want := Variants(); !slices.Equal(have, want) {
		t.Errorf("the table has %v, the variants are %v", have, want)
	}
}
