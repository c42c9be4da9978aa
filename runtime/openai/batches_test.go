// Files and batches of both APIs: what comes out, what is refused, and who finds it.

package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// upload sends a form; header are names and values.
func upload(t *testing.T, srv *httptest.Server, purpose, name, content string,
	header ...string) porttest.Reply {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if purpose != "" {
		hosttest.Check(t, form.WriteField("purpose", purpose))
	}
	if name != "" {
		part := hosttest.Must(form.CreateFormFile("file", name))(t)
		hosttest.Must(part.Write([]byte(content)))(t)
	}
	hosttest.Check(t, form.Close())
	return porttest.Ask(t, "POST", srv.URL+"/v1/files", body.String(),
		append(header, "Content-Type", form.FormDataContentType())...)
}

func idIn(t *testing.T, r porttest.Reply) string {
	t.Helper()
	id, _ := porttest.Decode(t, r.Body)["id"].(string)
	if r.Status != 200 || id == "" {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	return id
}

// requestLines are n requests of chat completions; number 3 of them is refused.
func requestLines(n int) string {
	var b strings.Builder
	for i := range n {
		extra := ""
		if i == 3 {
			extra = `,"temperature":9`
		}
		fmt.Fprintf(&b, `{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":`+
			`{"messages":[{"role":"user","content":"question %d"}]%s}}`+"\n", i, i, extra)
	}
	return b.String()
}

func batchOf(t *testing.T, srv *httptest.Server, content string, header ...string) string {
	t.Helper()
	file := idIn(t, upload(t, srv, "batch", "in.jsonl", content, header...))
	body := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions",`+
		`"completion_window":"24h","metadata":{"topic":"a"}}`, file)
	return idIn(t, porttest.Ask(t, "POST", srv.URL+"/v1/batches", body, header...))
}

// messageBatchOf begins a batch of one request of Anthropic's API, and waits for its end unless
// the text is "wait".
func messageBatchOf(t *testing.T, srv *httptest.Server, text string, header ...string) string {
	t.Helper()
	id := idIn(t, porttest.Ask(t, "POST", srv.URL+"/v1/messages/batches",
		`{"requests":[{"custom_id":"a","params":{"max_tokens":9,"messages":`+
			`[{"role":"user","content":"`+text+`"}]}}]}`, header...))
	return porttest.Eventually(t, func() (string, bool) {
		r := porttest.Ask(t, "GET", srv.URL+"/v1/messages/batches/"+id, "", header...)
		return id, text == "wait" || strings.Contains(r.Body, `"processing_status":"ended"`)
	})
}

// endOf waits for the end of a batch.
func endOf(t *testing.T, srv *httptest.Server, id string, header ...string) map[string]any {
	t.Helper()
	return porttest.Eventually(t, func() (map[string]any, bool) {
		r := porttest.Ask(t, "GET", srv.URL+"/v1/batches/"+id, "", header...)
		m := porttest.Decode(t, r.Body)
		return m, slices.Contains([]any{"completed", "failed", "expired", "cancelled"}, m["status"])
	})
}

// linesOf are the results of an ended batch by custom_id, each of which it has once.
func linesOf(t *testing.T, srv *httptest.Server, b map[string]any,
	header ...string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, name := range []string{"output_file_id", "error_file_id"} {
		id, ok := b[name].(string)
		if !ok {
			continue
		}
		r := porttest.Ask(t, "GET", srv.URL+"/v1/files/"+id+"/content", "", header...)
		for text := range strings.Lines(r.Body) {
			m := porttest.Decode(t, text)
			key := m["custom_id"].(string)
			if all[key] != nil {
				t.Errorf("%s has two lines", key)
			}
			all[key] = m
		}
	}
	return all
}

func TestBatch(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("Hello."))
	b := endOf(t, srv, batchOf(t, srv, requestLines(20)+"\n"))
	all := linesOf(t, srv, b)
	if b["status"] != "completed" || len(all) != 20 ||
		porttest.At(b, "request_counts", "completed") != 19.0 || porttest.At(b, "request_counts", "failed") != 1.0 ||
		porttest.At(b, "metadata", "topic") != "a" {
		t.Errorf("%v", b)
	}
	if porttest.At(all["r3"], "response", "status_code") != 400.0 ||
		porttest.At(all["r3"], "response", "body", "error", "param") != "temperature" {
		t.Errorf("%v", all["r3"])
	}
	if porttest.At(all["r7"], "response", "body", "choices", 0, "message", "content") != "Hello." ||
		porttest.At(all["r7"], "error") != nil {
		t.Errorf("%v", all["r7"])
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, s := range f.Shares {
		if !s.Background {
			t.Error("a line is not in the background")
		}
	}
}

// A batch goes on in the next process: no line is lost, and none that was stored is asked again.
func TestBatchOfAnEndedProcess(t *testing.T) {
	store := records.NewStore()
	var mu sync.Mutex
	asked := map[string]int{}
	var stop chan struct{} // closed after 50 answers; the rest of the lines then hang
	half, answered := make(chan struct{}), 0
	script := func(r session.Request) ([]session.Event, error) {
		mu.Lock()
		asked[r.Messages[0].Text()]++
		if answered++; answered == 50 && stop != nil {
			close(half)
		}
		wait := stop
		if answered < 50 {
			wait = nil
		}
		mu.Unlock()
		if wait != nil {
			<-wait
		}
		return sessiontest.Answers("Hello.")(r)
	}
	open := func(o *openai.Options) { o.Store, o.MaxNumSeqs = store, 8 }
	stop = make(chan struct{})
	model := &sessiontest.Model{Script: script}
	o := openai.Options{Options: answer.Options{Models: sessiontest.Single(model, model.Now,
		"gpt-oss:20b")}}
	open(&o)
	first := porttest.NewChecked(t, o)
	srv := httptest.NewServer(first)
	id := batchOf(t, srv, requestLines(200))
	<-half
	first.GiveUp()
	mu.Lock()
	close(stop)
	stop = nil
	mu.Unlock()
	first.Await(t.Context())
	first.Close()
	srv.Close()
	later := porttest.NewChecked(t, o)
	second := httptest.NewServer(later)
	defer later.Close()
	defer second.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { later.TakeOver(ctx) })
	defer work.Wait()
	defer cancel()
	b := endOf(t, second, id)
	if all := linesOf(t, second, b); len(all) != 200 || b["status"] != "completed" {
		t.Errorf("%d lines, %v", len(all), b)
	}
	again := 0
	for _, n := range asked {
		again += n - 1
	}
	if again > 8 { // those that ran
		t.Errorf("%d lines were asked twice", again)
	}
}

func TestBatchIsCancelled(t *testing.T) {
	leave := make(chan struct{})
	srv, _ := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
		if strings.HasSuffix(r.Messages[0].Text(), " 9") {
			<-leave
		}
		return sessiontest.Answers("Hello.")(r)
	}, func(o *openai.Options) { o.MaxNumSeqs = 1 })
	id := batchOf(t, srv, requestLines(20))
	porttest.Eventually(t, func() (any, bool) {
		m := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+"/v1/batches/"+id, "").Body)
		return m, porttest.At(m, "request_counts", "completed") == 8.0
	})
	r := porttest.Ask(t, "POST", srv.URL+"/v1/batches/"+id+"/cancel", "")
	if m := porttest.Decode(t, r.Body); m["status"] != "cancelling" {
		t.Errorf("%v", m)
	}
	close(leave)
	b := endOf(t, srv, id)
	all := linesOf(t, srv, b)
	if b["status"] != "cancelled" || len(all) != 20 || porttest.At(all["r19"], "error", "code") !=
		"batch_cancelled" || porttest.At(all["r4"], "response", "status_code") != 200.0 {
		t.Errorf("%v %v", b, all["r19"])
	}
	if r := porttest.Ask(t, "POST", srv.URL+"/v1/batches/"+id+"/cancel", ""); r.Status != 409 {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

func TestBadInputsFail(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."))
	good := requestLines(1)
	change := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	for text, code := range map[string]string{
		"{\n":                                   "invalid_json_line",
		"":                                      "invalid_file",
		good + good:                             "duplicate_custom_id",
		change("r0", ""):                        "missing_required_parameter",
		change("POST", "GET"):                   "invalid_method",
		change("chat/completions", "responses"): "invalid_url",
		change(`{"messages"`, `{"stream":true,"messages"`):               "invalid_request",
		`{"custom_id":"a","method":"POST","url":"/v1/chat/completions"}`: "invalid_request",
	} {
		b := endOf(t, srv, batchOf(t, srv, text))
		if b["status"] != "failed" || porttest.At(b, "errors", "data", 0, "code") != code {
			t.Errorf("%.100s: %v", text, b["errors"])
		}
	}
}

func TestFilesAndBatchesAreRefused(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."),
		func(o *openai.Options) { o.MaxBody = 10_000 })
	file := idIn(t, upload(t, srv, "batch", "in.jsonl", requestLines(1)))
	create := func(change string) string {
		m := map[string]any{"input_file_id": file, "endpoint": "/v1/responses",
			"completion_window": "24h"}
		hosttest.Check(t, json.Unmarshal([]byte(change), &m))
		return string(hosttest.Must(json.Marshal(m))(t))
	}
	post := func(path, body string, header ...string) porttest.Reply {
		return porttest.Ask(t, "POST", srv.URL+path, body, header...)
	}
	batch := func(change string) porttest.Reply { return post("/v1/batches", create(change)) }
	large := strings.Repeat("x", 10_000)
	for what, c := range map[string]struct {
		r      porttest.Reply
		status int
		word   string
	}{
		"no file":         {upload(t, srv, "batch", "", ""), 400, "file"},
		"no purpose":      {upload(t, srv, "", "a", "x"), 400, "purpose"},
		"another purpose": {upload(t, srv, "assistants", "a", "x"), 400, "purpose"},
		"too large":       {upload(t, srv, "batch", "a", large), 413, "--max-body"},
		"no form":         {post("/v1/files", "{}"), 400, "multipart"},
		"a cut form": {post("/v1/files", "--a\r\n", "Content-Type",
			"multipart/form-data; boundary=a"), 400, "purpose"},
		"unknown input":      {batch(`{"input_file_id":"file-1"}`), 404, "file-1"},
		"wrong endpoint":     {batch(`{"endpoint":"/v1/embeddings"}`), 400, "endpoint"},
		"another window":     {batch(`{"completion_window":"1h"}`), 400, "completion_window"},
		"wrong metadata":     {batch(`{"metadata":{"a":5}}`), 400, "metadata.a"},
		"nothing":            {post("/v1/batches", `{}`), 400, "endpoint"},
		"page of an unknown": {porttest.Ask(t, "GET", srv.URL+"/v1/files?after=a", ""), 400, "after"},
	} {
		if c.r.Status != c.status || !strings.Contains(c.r.Body, c.word) {
			t.Errorf("%s: %d %s", what, c.r.Status, c.r.Body)
		}
	}
}

// keptRoutes are the routes of one stored file or batch.
var keptRoutes = []string{"GET /v1/files/{id}", "GET /v1/files/{id}/content",
	"DELETE /v1/files/{id}", "GET /v1/batches/{id}", "POST /v1/batches/{id}/cancel",
	"GET /v1/messages/batches/{id}", "GET /v1/messages/batches/{id}/results",
	"POST /v1/messages/batches/{id}/cancel", "DELETE /v1/messages/batches/{id}"}

// Unknown ids, and those of another key, are not found on any route; a removed key's are deleted.
func TestFilesAndBatchesAreTheirKeys(t *testing.T) {
	var n named
	store := records.NewStore()
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."), withKeys(t, &n, store))
	n.add(t, "alice", nil)
	n.add(t, "mallory", nil)
	key := []string{"Authorization", "Bearer " + n.keys["alice"]}
	id := batchOf(t, srv, requestLines(3), key...)
	b := endOf(t, srv, id, key...)
	if len(linesOf(t, srv, b, key...)) != 3 {
		t.Errorf("%v", b)
	}
	for _, route := range keptRoutes {
		method, path, _ := strings.Cut(route, " ")
		ids := []string{"nothing"}
		switch {
		case strings.HasPrefix(path, "/v1/files"):
			ids = append(ids, b["input_file_id"].(string), b["output_file_id"].(string))
		case strings.HasPrefix(path, "/v1/messages"):
			ids = append(ids, id, messageBatchOf(t, srv, "hello", key...))
		default:
			ids = append(ids, id)
		}
		for _, id := range ids {
			r := n.as(t, srv, "mallory", method, strings.Replace(path, "{id}", id, 1), "")
			if r.Status != 404 {
				t.Errorf("%s, %s: %d %s", route, id, r.Status, r.Body)
			}
		}
	}
	for _, path := range []string{"/v1/files", "/v1/batches"} {
		if r := n.as(t, srv, "mallory", "GET", path, ""); !strings.Contains(r.Body, `"data":[]`) {
			t.Errorf("%s: %s", path, r.Body)
		}
		if r := n.as(t, srv, "alice", "GET", path, ""); strings.Contains(r.Body, `"data":[]`) {
			t.Errorf("%s: %s", path, r.Body)
		}
	}
}

// Both APIs have the same batches, and neither finds the other's.
func TestMessageBatch(t *testing.T) {
	leave := make(chan struct{})
	srv, _ := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
		if r.Messages[0].Text() == "wait" {
			<-leave
		}
		return sessiontest.Answers("Hello.")(r)
	}, func(o *openai.Options) { o.MaxNumSeqs = 1 })
	get := func(path string) string { return porttest.Ask(t, "GET", srv.URL+path, "").Body }
	request := func(id, text string) string {
		return `{"custom_id":"` + id + `","params":{"max_tokens":9,"messages":[{"role":"user",` +
			`"content":"` + text + `"}]}}`
	}
	post := func(requests ...string) porttest.Reply {
		return porttest.Ask(t, "POST", srv.URL+"/v1/messages/batches",
			`{"requests":[`+strings.Join(requests, ",")+`]}`)
	}
	path := "/v1/messages/batches/" + idIn(t, post(request("a", "hello"),
		`{"custom_id":"b","params":{}}`, request("c", "wait"), request("d", "hello")))
	porttest.Eventually(t, func() (any, bool) {
		m := porttest.Decode(t, porttest.Ask(t, "POST", srv.URL+path+"/cancel", "").Body)
		return m, m["processing_status"] == "canceling"
	})
	close(leave)
	counts := porttest.Eventually(t, func() (map[string]any, bool) {
		m := porttest.Decode(t, get(path))
		n, _ := m["request_counts"].(map[string]any)
		return n, m["processing_status"] == "ended" && m["results_url"] == srv.URL+path+"/results"
	})
	found := map[string]float64{}
	for text := range strings.Lines(get(path + "/results")) {
		found[porttest.At(porttest.Decode(t, text), "result", "type").(string)]++
	}
	for kind, n := range counts {
		if n != found[kind] {
			t.Errorf("%v, and the results %v", counts, found)
			break
		}
	}
	if found["canceled"] == 0 {
		t.Errorf("%v", found)
	}
	ours, theirs := batchOf(t, srv, requestLines(1)), strings.TrimPrefix(path, "/v1/messages/batches/")
	endOf(t, srv, ours)
	for path, other := range map[string]string{"/v1/batches": theirs, "/v1/messages/batches": ours} {
		if body := get(path); strings.Contains(body, other) || !strings.Contains(body, "batch_") {
			t.Errorf("%s: %s", path, body)
		}
	}
	for _, path := range []string{ours, ours + "/results"} {
		if body := get("/v1/messages/batches/" + path); !strings.Contains(body, "not_found_error") {
			t.Errorf("%s: %s", path, body)
		}
	}
	if r := post(request("a", "x"), request("a", "x")); r.Status != 400 ||
		!strings.Contains(r.Body, "custom_id came before") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}
