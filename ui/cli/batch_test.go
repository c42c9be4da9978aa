package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/responses"
)

// batched is a fake server that echoes and counts requests.
type batched struct {
	mu    sync.Mutex
	asked map[string]int
	after func(n int) // called before answer n
}

func (s *batched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Model, Prompt string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	if s.asked == nil {
		s.asked = map[string]int{}
	}
	s.asked[body.Prompt]++
	times, n := s.asked[body.Prompt], len(s.asked)
	s.mu.Unlock()
	if s.after != nil {
		s.after(n)
	}
	w.Header().Set("X-Request-Id", "req_1")
	switch {
	case body.Prompt == "bad":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"no such thing","type":"invalid_request_error"}}`)
	case body.Prompt == "busy" && times == 1:
		w.Header().Set("Retry-After", "0.01")
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		fmt.Fprintf(w, `{"id":"of %s","model":%q,"url":%q}`, body.Prompt, body.Model, r.URL.Path)
	}
}

func runBatch(t *testing.T, ctx context.Context, args ...string) (code int, stderr string) {
	t.Helper()
	code, out, stderr := runHere(ctx, append([]string{"batch"}, args...)...)
	if out != "" {
		t.Errorf("stdout: %s", out)
	}
	return code, stderr
}

// results reads an output by custom id.
func results(t *testing.T, name string) map[string]responses.BatchResult {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]responses.BatchResult{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		var r responses.BatchResult
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if _, twice := all[r.CustomID]; twice {
			t.Errorf("%s stands twice", r.CustomID)
		}
		all[r.CustomID] = r
	}
	return all
}

func TestBatch(t *testing.T) {
	s := &batched{}
	srv := httptest.NewServer(s)
	defer srv.Close()
	folder := t.TempDir()
	in, out := filepath.Join(folder, "in.jsonl"), filepath.Join(folder, "out.jsonl")
	var b strings.Builder
	for i, prompt := range []string{"a", "b", "bad", "busy"} {
		fmt.Fprintf(&b, `{"custom_id":"r%d","method":"POST","url":"/v1/completions",`+
			`"body":{"prompt":%q}}`+"\n\n", i, prompt)
	}
	b.WriteString(`{"custom_id":"r4","method":"post","url":"/v1/responses","body":{"model":"mine"}}`)
	write(t, in, b.String())
	code, errs := runBatch(t, t.Context(), in, out, "--base-url", srv.URL+"/v1", "--model", "20b")
	all := results(t, out)
	ownersOnly(t, out)
	if code != exitFailure || len(all) != 5 || !strings.Contains(errs, "requests: 5, new: 5, "+
		"refused: 1") {
		t.Errorf("%d %s %v", code, errs, all)
	}
	if r := all["r0"].Response; r.StatusCode != 200 || r.RequestID != "of a" ||
		string(r.Body) != `{"id":"of a","model":"20b","url":"/v1/completions"}` {
		t.Errorf("%+v %s", r, r.Body)
	}
	if r := all["r4"].Response; string(r.Body) !=
		`{"id":"of ","model":"mine","url":"/v1/responses"}` {
		t.Errorf("%s", r.Body)
	}
	if r := all["r2"].Response; r.StatusCode != 400 || !strings.Contains(string(r.Body),
		"no such thing") || r.RequestID != "req_1" {
		t.Errorf("%+v", r)
	}
	if s.asked["busy"] != 2 || all["r3"].Response.StatusCode != 200 {
		t.Errorf("%v", s.asked)
	}
	if code, errs = runBatch(t, t.Context(), in, out, "--base-url", srv.URL); code != 0 ||
		!strings.Contains(errs, "new: 0") || s.asked["a"] != 1 {
		t.Errorf("%d %s", code, errs)
	}
}

// The results of an earlier release are gone on with, those lines untouched; members that a newer
// release adds are none of ours.
func TestBatchOfOtherReleases(t *testing.T) {
	text, err := os.ReadFile("../../testdata/versions/batch.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	before := string(text) + `{"custom_id":"r3","response":{"cards":[1]},"more":{}}` + "\n"
	folder := t.TempDir()
	in, out := filepath.Join(folder, "in.jsonl"), filepath.Join(folder, "out.jsonl")
	var b strings.Builder
	for i := range 5 {
		fmt.Fprintf(&b, `{"custom_id":"r%d","method":"POST","url":"/v1/completions",`+
			`"body":{"prompt":"p%d"}}`+"\n", i, i)
	}
	if err := errors.Join(os.WriteFile(in, []byte(b.String()), 0o600),
		os.WriteFile(out, []byte(before), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := &batched{}
	srv := httptest.NewServer(s)
	defer srv.Close()
	if code, errs := runBatch(t, t.Context(), in, out, "--base-url", srv.URL); code != 0 ||
		!strings.Contains(errs, "requests: 5, new: 1") {
		t.Errorf("%d %s", code, errs)
	}
	after, err := os.ReadFile(out)
	if rest, same := strings.CutPrefix(string(after), before); err != nil || !same ||
		!strings.Contains(rest, `"custom_id":"r4"`) || len(s.asked) != 1 {
		t.Errorf("%v: %s", err, after)
	}
}

// An interrupted batch resumes: every request is asked once, except those that were running.
func TestBatchGoesOn(t *testing.T) {
	s := &batched{}
	srv := httptest.NewServer(s)
	defer srv.Close()
	folder := t.TempDir()
	in, out := filepath.Join(folder, "in.jsonl"), filepath.Join(folder, "out.jsonl")
	var b strings.Builder
	const n = 200
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"%d","method":"POST","url":"/v1/completions",`+
			`"body":{"prompt":"p%d"}}`+"\n", i, i)
	}
	write(t, in, b.String())
	ctx, stop := context.WithCancel(t.Context())
	s.after = func(n int) {
		if n == 60 {
			stop()
		}
	}
	code, errs := runBatch(t, ctx, in, out, "--base-url", srv.URL, "--max-concurrency", "4")
	if code != exitInterrupted || !strings.Contains(errs, "the same command to resume") {
		t.Fatalf("%d %s", code, errs)
	}
	kept := len(results(t, out))
	f, err := os.OpenFile(out, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"id":"batch_req_1`) // as a power cut leaves it
	f.Close()
	s.after = nil
	if code, errs = runBatch(t, t.Context(), in, out, "--base-url", srv.URL); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	if all := results(t, out); len(all) != n || kept < 50 || kept > 64 {
		t.Errorf("%d results, %d before", len(all), kept)
	}
	again := 0
	for _, times := range s.asked {
		again += times - 1
	}
	if again > 5 {
		t.Errorf("%d requests were sent twice", again)
	}
}

func TestBatchRefuses(t *testing.T) {
	folder := t.TempDir()
	in, out := filepath.Join(folder, "in"), filepath.Join(folder, "out")
	const good = `{"custom_id":"a","method":"POST","url":"/v1/responses","body":{}}` + "\n"
	for text, want := range map[string]string{
		"{": "line 1", `{"method":"POST"}`: "custom_id", good + good: "line 2: the custom_id came before: a",
		strings.Replace(good, "POST", "GET", 1):                "POST, not",
		strings.Replace(good, "/v1/responses", "/v1/files", 1): "must be one of",
		strings.Replace(good, "{}", "[]", 1):                   "an object",
		strings.Replace(good, "{}", `{"stream":true}`, 1):      "stream",
	} {
		write(t, in, text)
		if code, errs := runBatch(t, t.Context(), in, out); code != exitUsage ||
			!strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", text, code, errs)
		}
	}
	write(t, in, good)
	if code, errs := runBatch(t, t.Context(), in, in); code != exitUsage ||
		!strings.Contains(errs, "line 1 is no result of this: it has no custom_id and result; name another file") {
		t.Errorf("%d %s", code, errs)
	}
	if code, errs := runBatch(t, t.Context(), in); code != exitUsage ||
		!strings.Contains(errs, "two files") {
		t.Errorf("%d %s", code, errs)
	}
	if text, err := os.ReadFile(in); err != nil || string(text) != good {
		t.Errorf("the input was changed: %s", text)
	}
}
