package term

import "testing"

func TestCounted(t *testing.T) {
	for want, n := range map[string]struct {
		n     int
		thing string
	}{"0 tools": {0, "tool"}, "1 tool": {1, "tool"}, "2 tools": {2, "tool"}, "1 branch": {1, "branch"},
		"12,345 branches": {12345, "branch"}} {
		if got := Count(n.n, n.thing); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
