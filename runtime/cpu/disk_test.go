package cpu_test

import (
	"math"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Asking the disk for the chosen experts changes no bit.
func TestExpertsOnDisk(t *testing.T) {
	ckpt := openT2(t)
	tokens := make([]int32, 40)
	for i := range tokens {
		tokens[i] = int32(i*7919) % int32(ckpt.Spec.Vocab)
	}
	var want [][]float32
	for _, onDisk := range []bool{false, true} {
		got, err := behind(t, ckpt, engine.Settings{OnDisk: onDisk}, 2, tokens[:24], tokens[24:],
			24, 3)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		for i := range want {
			for j, w := range want[i] {
				if math.Float32bits(got[i][j]) != math.Float32bits(w) {
					t.Fatalf("row %d, token %d: %v, not %v", i, j, got[i][j], w)
				}
			}
		}
	}
}
