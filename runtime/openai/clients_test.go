// Replays what released clients send: every request must be answered, in well-formed streams, with
// the ids of earlier answers put where the client would put them.

package openai_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestRecordedClients(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*.jsonl")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			replay(t,
				file)
		})
	}
}

func replay(t *testing.T, file string) {
	srv, f := porttest.Server(t, sessiontest.Agent)
	b := hosttest.Must(os.ReadFile(file))(t)
	ids := map[string]string{} // recorded -> ours
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q answertest.RecordedRequest
		hosttest.Check(t, json.Unmarshal(lines.Bytes(), &q))
		body, path := string(q.Body), q.Path
		for old, ours := range ids {
			body = strings.ReplaceAll(body, `"`+old+`"`, `"`+ours+`"`)
			path = strings.ReplaceAll(path, "/"+old, "/"+ours)
		}
		if body == "null" {
			body = ""
		}
		started := len(f.Requests)
		r := porttest.Ask(t, q.Method, srv.URL+path, body)
		if q.Status >= 400 && q.Status < 429 { // the recorded server refused it too
			if r.Status < 400 || r.Status >= 500 {
				t.Errorf("%s %s: status %d, want 4xx", q.Method, path, r.Status)
			}
			continue
		}
		if r.Status != 200 {
			t.Fatalf("%s %s: status %d %s", q.Method, path, r.Status, r.Body)
		}
		stream := strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream")
		switch {
		case path == "/v1/chat/completions" && stream:
			list := porttest.Events(t, r.Body)
			for _, e := range list[:len(list)-1] {
				porttest.Conform(t, "CreateChatCompletionStreamResponse", e.Json)
			}
			if list[len(list)-1].Data != "[DONE]" {
				t.Errorf("the stream ends in %q", list[len(list)-1].Data)
			}
		case path == "/v1/chat/completions":
			porttest.Conform(t, "CreateChatCompletionResponse", porttest.Decode(t, r.Body))
		case path == "/v1/responses":
			var answer map[string]any
			if stream {
				list := porttest.Events(t, r.Body)
				porttest.ConformResponses(t, list)
				answer = list[len(list)-1].Json["response"].(map[string]any)
			} else {
				answer = porttest.Decode(t, r.Body)
				porttest.Conform(t, "Response", answer)
			}
			remember(ids, q, answer)
		}
		if strings.HasPrefix(path, "/v1/models") || q.Method != "POST" {
			continue
		}
		if len(f.Requests) != started+1 {
			t.Fatalf("%d turns were started", len(f.Requests)-started)
		}
		// Nothing the client says is lost: as many messages of users and results of tools as the
		// body holds.
		got := sessiontest.History(f.Last(t))
		for _, want := range said(t, q.Body) {
			if !strings.Contains(got, want) {
				t.Errorf("the history lacks %q:\n%s", want, got)
			}
		}
	}
	hosttest.Check(t, lines.Err())
}

func remember(ids map[string]string, q answertest.RecordedRequest, answer map[string]any) {
	ids[q.Response] = answer["id"].(string)
	delete(ids, "")
	var ours []string
	for _, i := range answer["output"].([]any) {
		if id, ok := porttest.At(i, "call_id").(string); ok {
			ours = append(ours, id)
		}
	}
	for i, old := range q.Calls {
		if i < len(ours) {
			ids[old] = ours[i]
		}
	}
}

// said is every text of a user and every output of a tool in a request.
func said(t *testing.T, body json.RawMessage) []string {
	t.Helper()
	m := porttest.Decode(t, string(body))
	var list []string
	add := func(v any) {
		switch v := v.(type) {
		case string:
			list = append(list, v)
		case []any:
			for _, p := range v {
				if s, ok := porttest.At(p, "text").(string); ok {
					list = append(list, s)
				}
			}
		}
	}
	for _, key := range []string{"messages", "input"} {
		if s, ok := m[key].(string); ok {
			add(s)
		}
		items, _ := m[key].([]any)
		for _, i := range items {
			switch role := porttest.At(i, "role"); {
			case role == "user", role == "tool", role == "assistant":
				add(porttest.At(i, "content"))
			case porttest.At(i, "type") == "function_call_output":
				add(porttest.At(i, "output"))
			case porttest.At(i, "type") == "function_call":
				add(porttest.At(i, "arguments"))
			}
		}
	}
	return list
}
