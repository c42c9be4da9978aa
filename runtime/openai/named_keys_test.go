// Named keys at the port: what each client may, and that what one leaves is not there for another.

package openai_test

import (
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// named are the keys of a file, by the names of their clients.
type named struct {
	path string
	keys map[string]string
}

func (n named) add(t *testing.T, name string, change func(*keys.Key)) {
	t.Helper()
	k, key := keys.New(name)
	if change != nil {
		change(&k)
	}
	hosttest.Check(t, keys.Change(n.path, func(all []keys.Key) ([]keys.Key, error) {
		return append(all, k), nil
	}))
	n.keys[name] = key
}

// withKeys has the port ask for the named keys that are in n.
func withKeys(t *testing.T, n *named, s records.Store) func(*openai.Options) {
	*n = named{filepath.Join(t.TempDir(), "keys.json"), map[string]string{}}
	return func(o *openai.Options) {
		var err error
		o.Store = s
		if o.Keys, err = keys.Open(n.path, s, func(line string) { t.Error(line) }); err != nil {
			t.Fatal(err)
		}
	}
}

// as asks as a client with a key.
func (n named) as(t *testing.T, srv *httptest.Server, name, method, path,
	body string) porttest.Reply {
	t.Helper()
	return porttest.Ask(t, method, srv.URL+path, body, "Authorization", "Bearer "+n.keys[name])
}

// runsPython calls python where a message says run, and says what it has printed.
func runsPython(r session.Request) ([]session.Event, error) {
	switch last := r.Messages[len(r.Messages)-1]; {
	case last.Role == harmony.RoleTool:
		return []session.Event{session.Answer{Text: last.Text()},
			sessiontest.Done(session.FinishStop)}, nil
	case r.Python && last.Text() == "run":
		return sessiontest.Call("call_1", "python", "x"), nil
	}
	return sessiontest.Answers("Hello.")(r)
}

// Every route with an id, and every field that names one: only the owner finds it, and requests of
// others change nothing.
func TestWhatAKeyLeavesIsItsOwn(t *testing.T) {
	var n named
	srv, _ := porttest.ToolServer(t, runsPython, nil, withKeys(t, &n, records.NewStore()),
		func(o *openai.Options) { o.APIKey = "the server's own" })
	n.add(t, "alice", nil)
	n.add(t, "mallory", func(k *keys.Key) { k.Admin = true })
	n.keys["the server's"] = "the server's own"
	made := func(path, body string) map[string]any {
		t.Helper()
		r := n.as(t, srv, "alice", "POST", path, body)
		if r.Status != 200 {
			t.Fatalf("%s: %d %s", path, r.Status, r.Body)
		}
		return porttest.Decode(t, r.Body)
	}
	response := made("/v1/responses", `{"input":"hi"}`)
	background := made("/v1/responses", `{"input":"hi","background":true}`)
	talk := made("/v1/conversations", `{"items":[{"type":"message","role":"user","content":"hi"}]}`)
	python := made("/v1/responses",
		`{"input":"run","tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`)
	container := porttest.LastItem(python, "code_interpreter_call")["container_id"].(string)
	id := func(m map[string]any) string { return m["id"].(string) }
	items := porttest.Decode(t, n.as(t, srv, "alice", "GET",
		"/v1/conversations/"+id(talk)+"/items", "").Body)
	item := porttest.At(items, "data", 0, "id").(string)
	said := porttest.LastItem(response, "message")["id"].(string)

	key := []string{"Authorization", "Bearer " + n.keys["alice"]}
	ended := endOf(t, srv, batchOf(t, srv, requestLines(1), key...), key...)
	ofMessages := messageBatchOf(t, srv, "hello", key...)
	completion := storedCompletion(t, srv, key...)

	type request struct{ method, path, body string }
	requests := map[string]request{
		"previous_response_id": {"POST", "/v1/responses",
			`{"input":"go on","previous_response_id":"` + id(response) + `"}`},
		"conversation": {"POST", "/v1/responses",
			`{"input":"go on","conversation":"` + id(talk) + `"}`},
		"item_reference": {"POST", "/v1/responses",
			`{"input":[{"type":"item_reference","id":"` + said + `"}]}`},
		"items of a conversation": {"POST", "/v1/conversations",
			`{"items":[{"type":"item_reference","id":"` + said + `"}]}`},
		"container": {"POST", "/v1/responses",
			`{"input":"run","tools":[{"type":"code_interpreter","container":"` + container + `"}]}`},
		"compact": {"POST", "/v1/responses/compact",
			`{"model":"gpt-oss:20b","input":"go on","previous_response_id":"` + id(response) + `"}`},
		"input_tokens": {"POST", "/v1/responses/input_tokens",
			`{"input":"go on","previous_response_id":"` + id(response) + `"}`},
	}
	document := porttest.Decode(t, n.as(t, srv, "alice", "GET", "/openapi.json", "").Body)
	for path, methods := range document["paths"].(map[string]any) {
		if !strings.Contains(path, "{") || strings.Contains(path, "/models/") {
			continue
		}
		of := id(response)
		switch {
		case strings.HasPrefix(path, "/v1/conversations/"):
			of = id(talk)
		case strings.HasPrefix(path, "/v1/batches/"):
			of = id(ended)
		case strings.HasPrefix(path, "/v1/chat/completions/"):
			of = completion
		case strings.HasPrefix(path, "/v1/messages/batches/"):
			of = ofMessages
		case strings.HasPrefix(path, "/v1/files/"):
			of = ended["output_file_id"].(string)
		case strings.HasSuffix(path, "/cancel"):
			of = id(background)
		}
		for method := range methods.(map[string]any) {
			body := ""
			switch {
			case strings.HasSuffix(path, "/items"):
				body = `{"items":[{"type":"message","role":"user","content":"x"}]}`
			case !strings.HasSuffix(path, "/cancel"):
				body = `{"metadata":{"x":"y"}}`
			}
			requests[method+" "+path] = request{strings.ToUpper(method), strings.NewReplacer("{id}",
				of, "{item}", item).Replace(path), body}
		}
	}
	if len(requests) < 15 {
		t.Errorf("%d ways to name something, which is too few", len(requests))
	}
	all := hosttest.Must(keys.Load(n.path))(t)
	for name, r := range requests { // the server's own by the keys that they have in the store
		for of := range map[string]bool{id(response): true, id(background): true, id(talk): true,
			id(ended): true, ended["output_file_id"].(string): true, ofMessages: true, completion: true} {
			path := strings.Replace(r.path, of, all[0].ID+"%2F"+of, 1)
			body := strings.Replace(r.body, of, all[0].ID+"/"+of, 1)
			if path+body == r.path+r.body {
				continue
			}
			got := n.as(t, srv, "the server's", r.method, path, body)
			if got.Status != 404 && !(got.Status == 400 && strings.Contains(got.Body, "not found")) {
				t.Errorf("%s, by its owner's id: %d %s", name, got.Status, got.Body)
			}
		}
	}
	for name, r := range requests {
		for _, other := range []string{"mallory", "the server's"} {
			got := n.as(t, srv, other, r.method, r.path, r.body)
			if got.Status != 404 && !(got.Status == 400 && strings.Contains(got.Body, "not found")) {
				t.Errorf("%s by %s: %d %s", name, other, got.Status, got.Body)
			}
		}
	}
	for _, last := range []bool{false, true} { // what deletes goes last
		for name, r := range requests {
			if deletes := r.method == "DELETE"; deletes != last ||
				deletes && strings.HasSuffix(r.path, id(talk)) {
				continue // its item is deleted too
			}
			if got := n.as(t, srv, "alice", r.method, r.path, r.body); got.Status != 200 &&
				got.Status != 409 { // a batch that has ended is not cancelled
				t.Errorf("%s by its owner: %d %s", name, got.Status, got.Body)
			}
		}
	}
}

// SECURITY.md: clients with a named key (`ossrun keys add`): the models, tools, requests and
// tokens that the key allows, and their own records; `/metrics` with `--admin` only
func TestWhatAKeyMayDo(t *testing.T) {
	var n named
	srv, _ := porttest.ToolServer(t, sessiontest.Answers("Hello."), nil,
		withKeys(t, &n, records.NewStore()))
	n.add(t, "free", nil)
	n.add(t, "here", func(k *keys.Key) { k.Models = []string{"openai/GPT-OSS-20b"} })
	n.add(t, "elsewhere", func(k *keys.Key) { k.Models = []string{"120b"} })
	n.add(t, "searcher", func(k *keys.Key) { k.Tools = []string{"browser"} })
	n.add(t, "admin", func(k *keys.Key) { k.Admin = true })
	chat := `{"messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		who, method, path, body string
		status                  int
		code                    string
	}{
		{"nobody", "POST", "/v1/chat/completions", chat + `}`, 401, "invalid_api_key"},
		{"free", "POST", "/v1/chat/completions", chat + `}`, 200, ""},
		{"here", "POST", "/v1/chat/completions", chat + `}`, 200, ""},
		{"here", "POST", "/v1/chat/completions", chat + `,"model":"gpt-oss:20b"}`, 200, ""},
		{"elsewhere", "POST", "/v1/chat/completions", chat + `,"model":"gpt-oss:20b"}`, 404,
			"model_not_found"},
		{"elsewhere", "POST", "/v1/chat/completions", chat + `}`, 404, "model_not_found"},
		{"elsewhere", "POST", "/v1/completions", `{"prompt":"x"}`, 404, "model_not_found"},
		{"elsewhere", "POST", "/v1/responses", `{"input":"x"}`, 404, "model_not_found"},
		{"elsewhere", "POST", "/v1/responses/compact", `{"model":"gpt-oss:20b","input":"x"}`, 404, "model_not_found"},
		{"elsewhere", "POST", "/v1/messages", `{"max_tokens":9,"model":"claude-3",` + chat[1:] + `}`,
			404, ""},
		{"elsewhere", "POST", "/v1/messages/count_tokens", chat + `}`, 404, ""},
		{"elsewhere", "POST", "/api/chat", chat + `,"model":"gpt-oss:20b"}`, 404, ""},
		{"elsewhere", "POST", "/api/show", `{"model":"gpt-oss:20b"}`, 404, ""},
		{"elsewhere", "POST", "/tokenize", `{"prompt":"x"}`, 404, "model_not_found"},
		{"elsewhere", "GET", "/v1/models/gpt-oss:20b", "", 404, "model_not_found"},
		{"here", "GET", "/v1/models/gpt-oss:20b", "", 200, ""},
		{"searcher", "POST", "/v1/responses", `{"input":"x","tools":[{"type":"web_search"}]}`, 200, ""},
		{"searcher", "POST", "/v1/responses",
			`{"input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`, 403,
			"tool_not_allowed"},
		{"searcher", "POST", "/v1/chat/completions", chat + `,"tools":[{"type":"code_interpreter"}]}`,
			403, "tool_not_allowed"},
		{"free", "GET", "/metrics", "", 403, "admin_required"},
		{"admin", "GET", "/metrics", "", 200, ""},
		{"nobody", "GET", "/health", "", 200, ""},
	} {
		r := n.as(t, srv, c.who, c.method, c.path, c.body)
		if r.Status != c.status || c.code != "" && !strings.Contains(r.Body, c.code) {
			t.Errorf("%s %s by %s: %d %s", c.method, c.path, c.who, r.Status, r.Body)
		}
	}
	for who, want := range map[string]bool{"free": true, "here": true, "elsewhere": false} {
		for _, path := range []string{"/v1/models", "/api/tags"} {
			r := n.as(t, srv, who, "GET", path, "")
			if r.Status != 200 || strings.Contains(r.Body, "gpt-oss:20b") != want {
				t.Errorf("%s for %s: %d %s", path, who, r.Status, r.Body)
			}
		}
	}
}

// Each route that generates counts, and only those; a refusal says when to come again.
func TestAKeysBounds(t *testing.T) {
	generates := []struct{ path, body string }{
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`},
		{"/v1/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"x"}]}`},
		{"/v1/completions", `{"prompt":"x"}`},
		{"/v1/responses", `{"input":"x"}`},
		{"/v1/responses/compact", `{"model":"gpt-oss:20b","input":"x"}`},
		{"/v1/messages", `{"max_tokens":9,"messages":[{"role":"user","content":"x"}]}`},
		{"/api/chat", `{"model":"gpt-oss:20b","messages":[{"role":"user","content":"x"}]}`},
		{"/api/generate", `{"model":"gpt-oss:20b","prompt":"x"}`},
	}
	for name, bound := range map[string]func(*keys.Key){
		"requests": func(k *keys.Key) { k.Rate = len(generates) },
		"tokens": func(k *keys.Key) {
			each := sessiontest.Usage.Prompt + sessiontest.Usage.Completion
			k.Tokens = each*(len(generates)-1) + 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			var n named
			store := records.NewStore()
			srv, _ := porttest.Server(t, sessiontest.Answers("Hello."), withKeys(t, &n, store))
			n.add(t, "alice", bound)
			n.add(t, "admin", func(k *keys.Key) { k.Admin = true })
			for _, g := range generates {
				r := n.as(t, srv, "alice", "POST", g.path, g.body)
				if r.Status != 200 {
					t.Fatalf("%s: %d %s", g.path, r.Status, r.Body)
				}
			}
			for _, g := range generates {
				r := n.as(t, srv, "alice", "POST", g.path, g.body)
				if after, _ := strconv.Atoi(r.Header.Get("Retry-After")); r.Status != 429 || after < 1 {
					t.Errorf("%s: %d, after %d, %s", g.path, r.Status, after, r.Body)
				}
			}
			for _, path := range []string{"/v1/models", "/api/tags"} {
				if r := n.as(t, srv, "alice", "GET", path, ""); r.Status != 200 {
					t.Errorf("%s: %d %s", path, r.Status, r.Body)
				}
			}
			told := n.as(t, srv, "admin", "GET", "/metrics", "").Body
			for _, want := range []string{
				`ossrun:key_requests_total{key="alice",kind="generate"} ` + strconv.Itoa(len(generates)),
				`ossrun:key_tokens_total{key="alice",kind="prompt"}`} {
				if !strings.Contains(told, want) {
					t.Errorf("the metrics have no %s", want)
				}
			}
		})
	}
}
