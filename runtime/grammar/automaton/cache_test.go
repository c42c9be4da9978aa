package automaton

import (
	"context"
	"errors"
	"testing"
)

// A value is created once while it is valid, and a failure too; stale and cancelled ones are
// recreated, and a full cache is cleared.
func TestCache(t *testing.T) {
	stale := map[int]bool{}
	c, made := Cache[string, int]{Most: 2, Stale: func(v int) bool { return stale[v] }}, 0
	get := func(key string, fails error) (int, error) {
		return c.Get(key, func() (int, error) { made++; return made, fails })
	}
	bad := errors.New("bad")
	for i, step := range []struct {
		key   string
		fails error
		want  int
		err   error
	}{
		{"a", nil, 1, nil}, {"a", nil, 1, nil}, {"b", bad, 2, bad}, {"b", nil, 2, bad},
		{"a", nil, 3, nil}, // 1 is stale; the cache is full
		{"b", context.Canceled, 4, context.Canceled}, {"b", nil, 5, nil}, {"b", nil, 5, nil},
	} {
		stale[1] = i == 4
		if v, err := get(step.key, step.fails); v != step.want || err != step.err {
			t.Errorf("step %d: %d, %v", i, v, err)
		}
	}
	if !c.Has("a") || c.Has("c") {
		t.Errorf("a is there: %v, c: %v", c.Has("a"), c.Has("c"))
	}
}
