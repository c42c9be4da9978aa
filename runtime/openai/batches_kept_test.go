// What a batch keeps: each result at once, until it expires, for whichever server has the lease.

package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Whenever a process is killed, the store has the results of all lines but those that run.
func TestEachResultIsStoredAtOnce(t *testing.T) {
	file := records.Options{File: filepath.Join(t.TempDir(), "kept.db"), TTL: time.Hour}
	store, other := hosttest.Must(records.Open(file))(t), hosttest.Must(records.Open(file))(t)
	defer store.Close()
	defer other.Close()
	srv, _ := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
		var number, results int
		fmt.Sscanf(r.Messages[0].Text(), "question %d", &number)
		for _, record := range other.List(records.KindContent) {
			results += bytes.Count(record.Value, []byte("batch_req_"))
		}
		b := porttest.Decode(t, string(other.List(records.KindBatch)[0].Value))
		done := porttest.At(b, "request_counts", "completed").(float64) +
			porttest.At(b, "request_counts", "failed").(float64)
		if results != number || done != float64(number) {
			t.Errorf("before line %d the store has %d results and counts %v", number, results, done)
		}
		return sessiontest.Answers(strings.Repeat("long ", 1000))(r) // several parts of the journal
	}, func(o *openai.Options) { o.Store, o.MaxNumSeqs = store, 1 })
	b := endOf(t, srv, batchOf(t, srv, requestLines(20)))
	if all := linesOf(t, srv, b); len(all) != 20 || b["status"] != "completed" {
		t.Errorf("%d lines, %v", len(all), b)
	}
	if list := other.List(records.KindContent); len(list) != 3 {
		t.Errorf("%d files, and not the input, the output and the error file", len(list))
	}
}

// A batch that has not ended within 24 hours ends with the lines that are answered.
func TestBatchExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &sessiontest.Model{Script: func(r session.Request) ([]session.Event, error) {
			if strings.HasSuffix(r.Messages[0].Text(), " 7") {
				return porttest.Slowly(nil)(r)
			}
			return sessiontest.Answers("Hello.")(r)
		}}
		h := porttest.NewChecked(t, openai.Options{Options: answer.Options{MaxNumSeqs: 1,
			Models: sessiontest.Single(f, f.Now, "gpt-oss:20b")}})
		defer h.Close()
		ask := func(method, path, kind, body string) map[string]any {
			r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
			r.Header.Set("Content-Type", kind)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return porttest.Decode(t, w.Body.String())
		}
		var form bytes.Buffer
		parts := multipart.NewWriter(&form)
		hosttest.Check(t, parts.WriteField("purpose", "batch"))
		part := hosttest.Must(parts.CreateFormFile("file", "in.jsonl"))(t)
		hosttest.Must(part.Write([]byte(requestLines(20))))(t)
		hosttest.Check(t, parts.Close())
		file := ask("POST", "/v1/files", parts.FormDataContentType(), form.String())
		path := "/v1/batches/" + ask("POST", "/v1/batches", "application/json", fmt.Sprintf(
			`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`,
			file["id"]))["id"].(string)
		<-time.After(24*time.Hour - time.Minute)
		if b := ask("GET", path, "", ""); b["status"] != "in_progress" {
			t.Errorf("%v", b)
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		b := ask("GET", path, "", "")
		if b["status"] != "expired" || b["expired_at"].(float64) < b["expires_at"].(float64) ||
			porttest.At(b, "request_counts", "completed") != 6.0 ||
			porttest.At(b, "request_counts", "failed") != 1.0 {
			t.Errorf("%v", b)
		}
		r := httptest.NewRequest("GET", fmt.Sprintf("http://127.0.0.1/v1/files/%s/content",
			b["error_file_id"]), nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		codes := map[any]int{}
		for text := range strings.Lines(w.Body.String()) {
			m := porttest.Decode(t, text)
			if m["response"] == nil {
				codes[porttest.At(m, "error", "code")]++
			}
		}
		if codes["batch_expired"] != 13 || len(codes) != 1 {
			t.Errorf("%v", codes)
		}
	})
}

// Of two servers on one store one runs a batch, however long; the other shows it and ends it.
func TestTwoServersOnOneBatch(t *testing.T) {
	file := records.Options{File: filepath.Join(t.TempDir(), "kept.db"), TTL: time.Hour}
	var servers []*httptest.Server
	var models []*sessiontest.Model
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer work.Wait()
	defer cancel()
	gate := make(chan struct{})
	store := hosttest.Must(records.Open(file))(t)
	defer store.Close()
	for range 2 {
		f := &sessiontest.Model{Script: porttest.Slowly(gate)}
		o := openai.Options{Options: answer.Options{MaxNumSeqs: 4,
			Models: sessiontest.Single(f, f.Now, "gpt-oss:20b")}}
		o.Store, o.Silence = hosttest.Must(records.Open(file))(t), 300*time.Millisecond
		defer o.Store.Close()
		h := porttest.NewChecked(t, o)
		defer h.Close()
		work.Go(func() { h.TakeOver(ctx) })
		srv := httptest.NewServer(h)
		defer srv.Close()
		servers, models = append(servers, srv), append(models, f)
	}
	asked := func(i int) int {
		models[i].Mu.Lock()
		defer models[i].Mu.Unlock()
		return len(models[i].Requests)
	}
	id := batchOf(t, servers[0], requestLines(20))
	leases := map[string]bool{}
	porttest.Eventually(t, func() (any, bool) { // while the other looks many times
		for _, r := range store.List(records.KindRunning) {
			leases[string(r.Value)] = true
		}
		return len(leases), len(leases) > 20
	})
	first := slices.Index([]bool{asked(0) > 0, asked(1) > 0}, true) // the other may have been first
	if first < 0 || asked(1-first) > 0 {
		t.Fatalf("%d and %d requests", asked(0), asked(1))
	}
	b := porttest.Decode(t, porttest.Ask(t, "POST",
		servers[1-first].URL+"/v1/batches/"+id+"/cancel", "").Body)
	if b["status"] != "cancelling" {
		t.Errorf("%v", b)
	}
	b = endOf(t, servers[1-first], id)
	all := linesOf(t, servers[first], b)
	if b["status"] != "cancelled" || len(all) != 20 || asked(1-first) > 0 {
		t.Errorf("%d lines, %d requests of the other, %v", len(all), asked(1-first), b)
	}
	close(gate)
}

func TestMessageBatchesAreRefused(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."))
	request := func(id string) string { return fmt.Sprintf(`{"custom_id":%q,"params":{}}`, id) }
	for requests, want := range map[string]string{
		"":                                "requests: it has 0 requests, not 1 to 100000",
		request("a b"):                    "requests[0]: its custom_id must match ^[a-zA-Z0-9_-]{1,64}$",
		request("a") + "," + request("é"): "requests[1]: its custom_id must match",
		request(strings.Repeat("x", 65)):  "must match",
		request(""):                       "requests[0]: it has no custom_id",
		request("a_-Z9") + "," + request("a_-Z9"): "requests[1]: the custom_id came before",
	} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/messages/batches", `{"requests":[`+requests+`]}`)
		if r.Status != 400 || !strings.Contains(r.Body, want) ||
			!strings.Contains(r.Body, "invalid_request_error") {
			t.Errorf("%s: %d %s", requests, r.Status, r.Body)
		}
	}
	for n, route := range map[int]string{100_000: "/v1/messages", 50_000: "/v1/responses"} {
		var text bytes.Buffer
		for i := range n + 1 {
			if i == n {
				if _, fault := responses.ReadBatch(text.Bytes(), route); fault != nil {
					t.Errorf("%s: %v", route, fault)
				}
			}
			line, _ := json.Marshal(responses.BatchLine{CustomID: fmt.Sprint(i), Method: "POST",
				URL: route, Body: json.RawMessage("{}")})
			text.Write(append(line, '\n'))
		}
		if _, fault := responses.ReadBatch(text.Bytes(), route); fault["code"] != "invalid_file" {
			t.Errorf("%s: %v", route, fault)
		}
	}
}

// A message batch has no files, and OpenAI's routes do not find it; nor is content of another kind
// a file's.
func TestMessageBatchesAreNoFiles(t *testing.T) {
	store := records.NewStore()
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."),
		func(o *openai.Options) { o.Store = store })
	id := messageBatchOf(t, srv, "hello")
	chat := idIn(t, porttest.Post(t, srv, "/v1/chat/completions", porttest.ChatWith(`"store":true`)))
	if r := porttest.Ask(t, "GET", srv.URL+"/v1/files", ""); !strings.Contains(r.Body, `"data":[]`) {
		t.Error(r.Body)
	}
	for _, route := range []string{"GET /v1/batches/" + id, "POST /v1/batches/" + id + "/cancel",
		"GET /v1/files/" + id + "/content", "GET /v1/files/file-" + id + "-input/content",
		"GET /v1/files/" + chat + "/content", "DELETE /v1/files/" + chat} {
		method, path, _ := strings.Cut(route, " ")
		if r := porttest.Ask(t, method, srv.URL+path, ""); r.Status != 404 {
			t.Errorf("%s: %d %s", route, r.Status, r.Body)
		}
	}
	path := srv.URL + "/v1/messages/batches/" + id
	if r := porttest.Ask(t, "GET", path+"/results", ""); !strings.Contains(r.Body, "succeeded") {
		t.Error(r.Body)
	}
	if r := porttest.Ask(t, "DELETE", path, ""); r.Status != 200 {
		t.Error(r.Body)
	}
	if list := store.List(records.KindContent); len(list) != 1 || list[0].Key != chat {
		t.Errorf("the deleted batch left %d contents", len(list)-1)
	}
}

// Objects of one second are listed in the order of their creation.
func TestObjectsOfOneSecondKeepTheirOrder(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."))
	for path, create := range map[string]func() porttest.Reply{
		"/v1/files": func() porttest.Reply { return upload(t, srv, "batch", "a", requestLines(1)) },
		"/v1/chat/completions": func() porttest.Reply {
			return porttest.Post(t, srv, "/v1/chat/completions", porttest.ChatWith(`"store":true`))
		},
		"/v1/batches": func() porttest.Reply {
			file := idIn(t, upload(t, srv, "batch", "a", ""))
			return porttest.Ask(t, "POST", srv.URL+"/v1/batches", fmt.Sprintf(`{"input_file_id":%q,`+
				`"endpoint":"/v1/responses","completion_window":"24h"}`, file))
		},
		"/v1/messages/batches": func() porttest.Reply {
			return porttest.Ask(t, "POST", srv.URL+"/v1/messages/batches",
				`{"requests":[{"custom_id":"a","params":{}}]}`)
		},
	} {
		var ids, listed []string
		for range 20 {
			ids = append(ids, idIn(t, create()))
		}
		m := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+path+"?limit=20", "").Body)
		for _, o := range m["data"].([]any) {
			listed = append(listed, porttest.At(o, "id").(string))
		}
		if path != "/v1/chat/completions" { // newest first
			slices.Reverse(listed)
		}
		if !slices.Equal(ids, listed) {
			t.Errorf("%s: created %v, listed %v", path, ids, listed)
		}
	}
}
