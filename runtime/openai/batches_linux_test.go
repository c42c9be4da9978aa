// Files and batches on a full disk: nothing acknowledged is lost, and nothing is asked that could
// not be stored.

package openai_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestBatchOnAFullDisk(t *testing.T) {
	disk := hosttest.SmallDisk(t)
	kept := records.Options{File: filepath.Join(disk, "kept.db"), TTL: time.Hour}
	store := hosttest.Must(records.Open(kept))(t)
	var mu sync.Mutex
	asked, full, stop := map[string]int{}, make(chan struct{}), make(chan struct{})
	var log porttest.LockedBuffer
	srv, _ := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
		mu.Lock()
		asked[r.Messages[0].Text()]++
		n := len(asked)
		mu.Unlock()
		if n == 6 {
			close(full)
		}
		if n >= 6 {
			<-stop
		}
		return sessiontest.Answers(strings.Repeat("long ", 200))(r)
	}, func(o *openai.Options) {
		o.Store, o.MaxNumSeqs, o.Log = store, 2, slog.New(slog.NewTextHandler(&log, nil))
	})
	files := func() int {
		return strings.Count(porttest.Ask(t, "GET", srv.URL+"/v1/files?limit=1000", "").Body, `"purpose"`)
	}
	id := batchOf(t, srv, requestLines(40))
	<-full
	filler := hosttest.Fill(t, disk)
	r := upload(t, srv, "batch", "a", strings.Repeat("x", 5000))
	for n := 0; r.Status == 200 && n < 1000; n++ { // until the log has no page left either
		r = upload(t, srv, "batch", "a", "x")
	}
	n := files()
	r = upload(t, srv, "batch", "a", strings.Repeat("x", 100_000))
	porttest.WantFault(t, r, 507, fields.KindServer, "", "", "the disk is full")
	if files() != n {
		t.Error("a file is listed that was refused")
	}
	r = porttest.Ask(t, "POST", srv.URL+"/v1/messages/batches", fmt.Sprintf(
		`{"requests":[{"custom_id":"a","params":{"max_tokens":9,"messages":[{"role":"user",`+
			`"content":%q}]}}]}`, strings.Repeat("x", 100_000)))
	if r.Status != 507 || !strings.Contains(r.Body, `"api_error"`) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	close(stop)
	before := strings.Count(log.String(), "a batch is not stored now")
	porttest.Eventually(t, func() (any, bool) { // it tries again, and asks for no more
		return nil, strings.Count(log.String(), "a batch is not stored now") > before+3
	})
	mu.Lock()
	if len(asked) > 8 {
		t.Errorf("%d lines were asked on a full disk", len(asked))
	}
	mu.Unlock()
	hosttest.Check(t, os.Remove(filler))
	b := endOf(t, srv, id)
	if all := linesOf(t, srv, b); len(all) != 40 || b["status"] != "completed" || len(asked) != 39 {
		t.Errorf("%d lines, %d asked, %v", len(all), len(asked), b)
	}
	for text, n := range asked {
		if n != 1 {
			t.Errorf("%q was asked %d times", text, n)
		}
	}
	srv.Close()
	hosttest.Check(t, store.Close())
}
