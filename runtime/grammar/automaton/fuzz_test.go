package automaton

import "testing"

// No expression makes the construction of an automaton fail or stall.
func FuzzRegex(f *testing.F) {
	for _, s := range []string{`a`, `^a|b$`, `[^a-c]{2,4}`, `(\d+\.)*\w?`, `\s\S`, `é+`,
		`[\u0400-\u04ff]`, `(?i)ab`, `$^`, `a{0}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		if len(expression) > 200 {
			return
		}
		for _, search := range []bool{false, true} {
			d, err := patternDFA(t.Context(), expression, search)
			if err != nil {
				continue
			}
			d.markTotal()
			if len(d.next) != len(d.accept)*d.classes || len(d.total) != len(d.accept) {
				t.Fatalf("%q: %d edges of %d states", expression, len(d.next), len(d.accept))
			}
		}
	})
}
