// Runs of one letter that become few tokens, such as indentation and ruled lines.
//
// A text of them is long and still fits a context, so it must be encoded to its end, at the price
// of the heap. What must stay true: a kept run is what mergeLong makes of it; what is kept has a
// bound, since a run needs one of few letters to become few tokens.

package token

import (
	"bytes"
	"sync"
)

const (
	// longestRun is the length of runs that are kept; longer ones have windows that are equal.
	longestRun = 2 * window
	// dense is how many bytes a token of a run that is kept has at least.
	dense = 12
)

// runs are tokens by letter and length.
type runs struct{ kept sync.Map }

type run struct {
	letter byte
	length int
}

// mergeRun appends the tokens of b, which is longer than shortPiece; false: it is no run.
func (t *Tokenizer) mergeRun(dst []int32, b []byte) ([]int32, bool) {
	if b[0] != b[1] || len(b) > longestRun || !bytes.Equal(b[1:], b[:len(b)-1]) {
		return dst, false
	}
	key := run{b[0], len(b)}
	if ids, ok := t.runs.kept.Load(key); ok {
		return append(dst, ids.([]int32)...), true
	}
	ids, _ := t.mergeWindows(nil, b, window, margin, nil)
	if len(ids)*dense <= len(b) {
		t.runs.kept.Store(key, ids)
	}
	return append(dst, ids...), true
}
