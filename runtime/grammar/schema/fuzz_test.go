package schema

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// No schema makes the compiler fail or stall, and none has an automaton with a dead end.
func FuzzSchema(f *testing.F) {
	for _, s := range walkSchemas {
		f.Add([]byte(s), uint64(1))
	}
	_, groups := readSuite(f)
	for _, gs := range groups {
		for _, g := range gs {
			f.Add([]byte(g.Schema), uint64(2))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		if len(raw) > 4096 {
			return
		}
		c, err := Compile(t.Context(), raw, seed%2 == 0)
		if err != nil {
			return
		}
		// A walk never reaches a state where nothing can follow and the text may not end.
		rng := rand.New(rand.NewPCG(seed, 1))
		at := c.Matcher()
		var text []byte
		for len(text) < 400 {
			b, ok := read(rng, at, "")
			if !ok {
				if !at.Done() {
					t.Fatalf("%s: a dead end after %q", raw, text)
				}
				break
			}
			text = append(text, b)
		}
		if at.Done() && !json.Valid(text) {
			t.Fatalf("%s: %q is no JSON", raw, text)
		}
	})
}
