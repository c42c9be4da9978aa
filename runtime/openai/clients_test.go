// Replays what released clients send: every request must be answered, in well-formed streams, with
// the ids of earlier answers put where the client would put them.

package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	srv, f := server(t, agent)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{} // recorded -> ours
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q recordedRequest
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		body, path := string(q.Body), q.Path
		for old, ours := range ids {
			body = strings.ReplaceAll(body, `"`+old+`"`, `"`+ours+`"`)
			path = strings.ReplaceAll(path, "/"+old, "/"+ours)
		}
		if body == "null" {
			body = ""
		}
		started := len(f.requests)
		r := ask(t, q.Method, srv.URL+path, body)
		if q.Status >= 400 && q.Status < 429 { // the recorded server refused it too
			if r.status < 400 || r.status >= 500 {
				t.Errorf("%s %s: status %d, want 4xx", q.Method, path, r.status)
			}
			continue
		}
		if r.status != 200 {
			t.Fatalf("%s %s: status %d %s", q.Method, path, r.status, r.body)
		}
		stream := strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream")
		switch {
		case path == "/v1/chat/completions" && stream:
			list := events(t, r.body)
			for _, e := range list[:len(list)-1] {
				conform(t, "CreateChatCompletionStreamResponse", e.json)
			}
			if list[len(list)-1].data != "[DONE]" {
				t.Errorf("the stream ends in %q", list[len(list)-1].data)
			}
		case path == "/v1/chat/completions":
			conform(t, "CreateChatCompletionResponse", decode(t, r.body))
		case path == "/v1/responses":
			var answer map[string]any
			if stream {
				list := events(t, r.body)
				conformResponses(t, list)
				answer = list[len(list)-1].json["response"].(map[string]any)
			} else {
				answer = decode(t, r.body)
				conform(t, "Response", answer)
			}
			remember(ids, q, answer)
		}
		if strings.HasPrefix(path, "/v1/models") || q.Method != "POST" {
			continue
		}
		if len(f.requests) != started+1 {
			t.Fatalf("%d turns were started", len(f.requests)-started)
		}
		// Nothing the client says is lost: as many messages of users and results of tools as the
		// body holds.
		got := history(f.last(t))
		for _, want := range said(t, q.Body) {
			if !strings.Contains(got, want) {
				t.Errorf("the history lacks %q:\n%s", want, got)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func remember(ids map[string]string, q recordedRequest, answer map[string]any) {
	ids[q.Response] = answer["id"].(string)
	delete(ids, "")
	var ours []string
	for _, i := range answer["output"].([]any) {
		if id, ok := at(i, "call_id").(string); ok {
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
	m := decode(t, string(body))
	var list []string
	add := func(v any) {
		switch v := v.(type) {
		case string:
			list = append(list, v)
		case []any:
			for _, p := range v {
				if s, ok := at(p, "text").(string); ok {
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
			switch role := at(i, "role"); {
			case role == "user", role == "tool", role == "assistant":
				add(at(i, "content"))
			case at(i, "type") == "function_call_output":
				add(at(i, "output"))
			case at(i, "type") == "function_call":
				add(at(i, "arguments"))
			}
		}
	}
	return list
}
