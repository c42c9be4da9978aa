// The embedded demo model on every instruction set of this machine: its answers at temperature 0
// must not depend on which kernels computed them.

package cli

import (
	"os"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

// TestDemoOnEachISA asks one held-out question of 240, all of them with OSSRUN_LONG.
func TestDemoOnEachISA(t *testing.T) {
	t.Parallel()
	every, most := 240, 60
	if os.Getenv("OSSRUN_LONG") != "" {
		every, most = 1, 400
	}
	greedy := sample.Defaults()
	greedy.Temperature = 0
	var requests []session.Request
	for i, h := range readHeldOut(t) {
		if i%every == 0 {
			r := h.request(greedy)
			r.MaxTokens = most
			requests = append(requests, r)
		}
	}
	want := answersOn(t, "scalar", requests)
	for _, isa := range cpu.ISAs() {
		if isa == "scalar" {
			continue
		}
		for i, got := range answersOn(t, isa, requests) {
			if !slices.Equal(got, want[i]) {
				t.Errorf("%s answers request %d with %q, the plain loops with %q", isa, i,
					token.Get().Decode(nil, got), token.Get().Decode(nil, want[i]))
			}
		}
		t.Logf("%s: %d answers are those of the plain loops", isa, len(requests))
	}
}

func answersOn(t *testing.T, isa string, requests []session.Request) [][]int32 {
	t.Helper()
	m := loadDemo(t, engine.Settings{ISA: isa, MaxNumSeqs: 8})
	defer m.Close()
	answers := make([][]int32, len(requests))
	playAll(t, m, requests, func(i int, res session.Result) { answers[i] = res.Tokens })
	return answers
}
