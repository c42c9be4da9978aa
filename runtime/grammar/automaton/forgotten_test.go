package automaton_test

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// A body with more states than are cached continues as if none were dropped, with bounded memory.
func TestStatesAreForgotten(t *testing.T) {
	c := grammarOf(t,
		`{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}},"maxItems":5000}`)
	other := c.Matcher()
	if !other.AcceptText([]byte(`[{"a":1},{"b":"`)) {
		t.Fatal("the other body")
	}
	text := "[" + strings.Repeat(`{"a":17,"b":"x"},`, 600) + "{}]"
	m := c.Matcher()
	for i, id := range token.Get().Encode(nil, text) {
		if !automaton.Allows(m.Mask(token.Call), id) || !m.Accept(id) {
			t.Fatalf("token %d is refused", i)
		}
		if size := c.Bytes(); size > automaton.MostBytes+automaton.MostBytes/4 {
			t.Fatalf("token %d: %d bytes are kept", i, size)
		}
	}
	if !m.Done() || c.Age() == 0 {
		t.Errorf("done %v, forgotten %d times", m.Done(), c.Age())
	}
	if mask := other.Mask(token.Call); automaton.Allows(mask, token.Call) || !other.AcceptText([]byte(`y"}]`)) ||
		!other.Done() {
		t.Error("the other body does not go on")
	}
}
