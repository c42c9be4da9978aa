// The readiness status while the model loads.

package cli

import (
	"testing"

	"github.com/ossrun/ossrun/runtime/remote/local"
)

func TestReadyTellsHowFarLoadingIs(t *testing.T) {
	s := &server{serveVerb: &serveVerb{}}
	s.state.Store(local.Loading)
	if err := s.ready(); err == nil || err.Error() != "loading the model" {
		t.Errorf("before anything is read: %v", err)
	}
	shown := int64(0)
	show, _ := s.withReadiness(func(string) (func(done, total int64), func()) {
		return func(done, _ int64) { shown = done }, func() {}
	})("reading gpt-oss-20b")
	show(4_100_000_000, 13_800_000_000)
	if err := s.ready(); err == nil || err.Error() != "loading the model, 4.1 of 13.8 GB" {
		t.Errorf("while it is read: %v", err)
	}
	if shown != 4_100_000_000 {
		t.Errorf("the terminal was shown %d", shown)
	}
}
