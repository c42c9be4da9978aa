package python

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Every known way out is tried in bubblewrap, and held.
func TestAttacks(t *testing.T) {
	defer goleak.VerifyNone(t)
	hosttest.Program(t, "bwrap")
	tried := 0
	if err := Attack(t.Context(), "bwrap", func(v Verdict) {
		if tried++; !v.Held {
			t.Errorf("%s: %s", v.Attack, v.Detail)
		}
	}); err != nil {
		t.Error(err)
	}
	if n := strings.Count(attacks, "\n@attack(") + strings.Count(attacks, "\n@bomb("); tried != n {
		t.Errorf("%d attacks of %d", tried, n)
	}
}

// Without a sandbox the cells would do what they try.
func TestAttacksRunInSandboxesOnly(t *testing.T) {
	for _, name := range []string{"unsafe", ""} {
		if err := Attack(t.Context(), name, func(v Verdict) { t.Error(v) }); err == nil {
			t.Errorf("%q: they run", name)
		}
	}
}
