// The readiness status while the model loads.

package cli

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/runtime/serve"
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

// TestReadyIsAlwaysSaid: a model may be unloaded before the server says that it is ready, as with
// --keep-alive 0. Scripts wait for the words nevertheless, and a person for the lines to paste.
func TestReadyIsAlwaysSaid(t *testing.T) {
	m, err := serve.New(t.Context(), serve.Options{Model: "demo", KeepAlive: time.Hour,
		Notify: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Find(nil); err != nil || m.Lines() != nil {
		t.Fatalf("the model that nothing loads: %v, %v", m.Lines(), err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	blocks := ways(t, "serve demo", func(on Terminal, _ *heard) {
		verb := &serveVerb{terminal: on, listener: listener}
		(&server{serveVerb: verb, Models: m}).announce()
	})
	for i, words := range []string{"ossrun: Application startup complete.", "Ready in "} {
		if !strings.Contains(blocks[i], words) {
			t.Errorf("no %q in %s", words, blocks[i])
		}
	}
}

// A log has lines of a download's progress, some time apart.
func TestDownloadsInALog(t *testing.T) {
	defer func(d time.Duration) { lineEvery = d }(lineEvery)
	var log strings.Builder
	s := &pullScreen{name: "gpt-oss-20b", terminal: Terminal{Err: &log}}
	for i := range 3 {
		lineEvery = map[bool]time.Duration{true: 0, false: time.Hour}[i < 2]
		s.progress(hub.Progress{Bytes: 13_760_000_000, Done: int64(i) * 1_204_000_000, Rate: 21e6,
			Remaining: 10 * time.Minute})
	}
	const want = "ossrun: gpt-oss-20b  1.20 of 13.76 GB  21.0 MB/s  10 min left\n"
	if log.String() != want {
		t.Errorf("the log has\n%swant\n%s", &log, want)
	}
}
