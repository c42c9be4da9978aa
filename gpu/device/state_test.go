package device

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
)

// The rows that stand alone in their sequence are named in the state, for the kernel that attends for them.
func TestStateNamesRowsThatStandAlone(t *testing.T) {
	l := layout{bucket: 8, most: 64}
	state := make([]byte, l.bytes())
	b := &engine.Batch{Tokens: make([]int32, 7), Seqs: []engine.SeqRows{
		{Start: 5, Rows: 1, Full: []int32{1}, Window: []int32{1}},
		{Start: 0, Rows: 3, Full: []int32{2}, Window: []int32{2}},
		{Start: 40, Rows: 1, Full: []int32{3, 4}, Window: []int32{3, 4}},
		{Start: 31, Rows: 2, Full: []int32{5, 6}, Window: []int32{5, 6}},
	}}
	l.write(state, b, 128, 4)
	word := func(i int) int32 { return int32(binary.NativeEndian.Uint32(state[4*i:])) }
	var alone []int32
	for i := range int(word(3)) {
		alone = append(alone, word(int(l.place(aloneArray))/4+i))
	}
	if !slices.Equal(alone, []int32{0, 4}) {
		t.Errorf("rows %v stand alone", alone)
	}
}
