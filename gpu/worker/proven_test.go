//go:build linux

package worker

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestProven: what a card says of its kernels arrives on this side.
func TestProven(t *testing.T) {
	summary, wrong := opened(t, "proven", Options{}).Kernels()
	if summary != "machine code; 1 of 2 fast ones right" ||
		!slices.Equal(wrong, []string{"decode_down is wrong"}) {
		t.Errorf("%q, %q", summary, wrong)
	}
	if summary, wrong := opened(t, "cpu", Options{}).Kernels(); summary != "" || wrong != nil {
		t.Errorf("%q, %q", summary, wrong)
	}
}

// TestTest: the results of a check arrive one by one, before its end or what went wrong; whoever
// has seen enough stops it.
func TestTest(t *testing.T) {
	b := opened(t, "cpu", Options{})
	enough := errors.New("enough")
	for _, x := range []struct {
		ask   string
		most  int
		parts int
		err   string
	}{{"3", 99, 3, ""}, {"0", 99, 0, ""}, {"9", 99, 7, "it cannot count so far"},
		{"5", 2, 2, "enough"}, {"[]", 9, 0, "cannot unmarshal"}} {
		var got []string
		err := b.Test(t.Context(), json.RawMessage(x.ask), func(part json.RawMessage) error {
			if got = append(got, string(part)); len(got) == x.most {
				return enough
			}
			return nil
		})
		if len(got) != x.parts || (err == nil) != (x.err == "") || err != nil &&
			!strings.Contains(err.Error(), x.err) {
			t.Errorf("%s: %q, %v", x.ask, got, err)
		}
	}
	if _, free := b.Memory(); free == 0 {
		t.Error("the worker is gone")
	}
}
