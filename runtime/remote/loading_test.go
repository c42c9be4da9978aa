package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
)

// A server that loads is waited for, when the chat opens and before an answer, and its progress is
// reported; one that is well and refuses with 503 is not.
func TestALoadingServerIsWaitedFor(t *testing.T) {
	var loading atomic.Int32 // how many more looks find it loading
	s := &standIn{t: t, models: `{"data":[{"id":"gpt-oss-20b"}]}`,
		answers: [][]string{{`{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`}}}
	refusals := 1
	s.refuses = func(map[string]any) (int, string) {
		refusals--
		if refusals < 0 {
			return 0, ""
		}
		return 503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/health" && loading.Add(-1) >= 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"status":"loading the model, 4.1 of 13.8 GB"}`)
		case r.URL.Path == "/health":
			fmt.Fprint(w, `{"status":"ok"}`)
		default:
			s.ServeHTTP(w, r)
		}
	}))
	defer srv.Close()
	var reports []string
	loading.Store(1)
	report := func(line string) { reports = append(reports, line) }
	port, err := Open(t.Context(), srv.URL, "", report)
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	const said = ": loading the model, 4.1 of 13.8 GB"
	if len(reports) != 1 || !strings.HasSuffix(reports[0], said) {
		t.Errorf("reports %q", reports)
	}
	model, err := port.Get(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	loading.Store(1)
	request := session.Request{Messages: []session.Message{session.User("hi")}}
	turn, err := model.Start(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	for _, ok := turn.Next(); ok; _, ok = turn.Next() {
	}
	if got := turn.Result(); got.Answer != "hi" || len(reports) < 2 ||
		!strings.HasSuffix(reports[1], said) {
		t.Errorf("%+v, reports %q", got, reports)
	}

	refusals = 1
	loading.Store(0)
	if _, err := model.Start(t.Context(), request); err == nil ||
		!strings.Contains(err.Error(), "Loading model") {
		t.Errorf("a server that is well: %v", err)
	}
	loading.Store(1 << 30)
	ctx, cancel := context.WithCancel(t.Context())
	refusals = 1
	port.report = func(string) { cancel() }
	if _, err := model.Start(ctx, request); err == nil {
		t.Error("the wait outlives its context")
	}
}
