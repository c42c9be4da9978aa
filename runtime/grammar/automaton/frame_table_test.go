package automaton

import (
	"math/rand/v2"
	"testing"
)

// The table returns the numbers of an equivalent map.
func TestFrameTableIsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	m, ids := newMachine(NewProgram()), map[frame]int32{}
	for range 100_000 {
		f := frame{frameKind(rng.IntN(7)), rng.Int32N(20), rng.Int32N(6) - 1, rng.Int32N(1 << 20),
			rng.Int32N(int32(len(m.frames)))}
		if rng.IntN(2) == 0 && len(m.frames) > 1 { // one that is there
			f = m.frames[1+rng.IntN(len(m.frames)-1)]
		}
		want, known := ids[f]
		if !known {
			want = int32(len(m.frames))
			ids[f] = want
		}
		if got := m.push(f.kind, f.ref, f.a, f.b, f.parent); got != want || m.frames[got] != f {
			t.Fatalf("%v is %d, want %d", f, got, want)
		}
	}
}
