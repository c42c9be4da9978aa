// The shared conversations of ossrun chat: who sees which, and which writers are refused.

package openai_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// sharing has the port share conversations, of which those in open are open in a terminal.
func sharing(open map[string]bool) func(*openai.Options) {
	return func(o *openai.Options) {
		o.Sessions = &openai.Sessions{
			Claim: func(id string) (func(), bool) { return func() {}, !open[id] },
			Erase: func(s records.Store, _, id string) error {
				if open[id] {
					return errors.New("it is open")
				}
				_, err := s.Delete(records.KindChat, id)
				return err
			}}
	}
}

func TestSessionsAreShared(t *testing.T) {
	open, store := map[string]bool{}, records.NewStore()
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"), sharing(open),
		func(o *openai.Options) { o.Store = store })
	save := func(id, version, name string) porttest.Reply {
		return porttest.Ask(t, "POST", srv.URL+"/v1/sessions/"+id, `{"version":"`+version+`","session":{"id":"`+
			id+`","name":"`+name+`","exchanges":[]}}`)
	}
	wants := func(r porttest.Reply, status int, code string) {
		t.Helper()
		if r.Status != status || !strings.Contains(r.Body, code) {
			t.Errorf("%d %s, not %d %s", r.Status, r.Body, status, code)
		}
	}
	version := func(r porttest.Reply) string {
		return porttest.Decode(t, r.Body)["version"].(string)
	}
	list := func() int {
		r := porttest.Ask(t, "GET", srv.URL+"/v1/sessions", "")
		return len(porttest.Decode(t, r.Body)["data"].([]any))
	}
	first := version(save("aa11", "", "one"))
	wants(save("aa11", "", "two"), 409, "session_changed")
	wants(save("aa11", "x", "two"), 409, "session_changed")
	second := version(save("aa11", first, "two"))
	if r, ok := store.Get(records.KindChat, "aa11"); !ok || !strings.Contains(string(r.Value), "two") {
		t.Errorf("the store has %s", r.Value)
	}
	open["aa11"] = true
	wants(save("aa11", second, "three"), 409, "session_open")
	wants(porttest.Ask(t, "DELETE", srv.URL+"/v1/sessions/aa11", ""), 409, "session_open")
	open["aa11"] = false
	for _, id := range []string{"%2e%2e%2fx", "-a", "a%2fb", strings.Repeat("a", 65)} {
		if r := save(id, "", "x"); r.Status < 300 || r.Status >= 500 {
			t.Errorf("%s: %d %s", id, r.Status, r.Body)
		}
	}
	for _, body := range []string{`{}`, `{"session":[]}`, `{"session":{"id":"bb22"}}`,
		`{"session":null}`, `{"session":{"id":7}}`} {
		wants(porttest.Ask(t, "POST", srv.URL+"/v1/sessions/aa11", body), 400, "session")
	}
	if n := list(); n != 1 {
		t.Errorf("%d conversations are listed", n)
	}
	wants(porttest.Ask(t, "GET", srv.URL+"/v1/sessions", "", "Origin", "http://localhost:3000"), 403,
		"origin_not_allowed")
	wants(porttest.Ask(t, "GET", srv.URL+"/v1/sessions", "", "Origin", srv.URL), 200, "aa11")
	wants(porttest.Ask(t, "DELETE", srv.URL+"/v1/sessions/aa11", ""), 200, "deleted")
	wants(porttest.Ask(t, "DELETE", srv.URL+"/v1/sessions/aa11", ""), 404, "not found")
	if n := list(); n != 0 {
		t.Errorf("%d conversations are left", n)
	}
}

func TestSessionsAreShownOnlyWhereShared(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	for _, method := range []string{"GET /v1/sessions", "POST /v1/sessions/a", "DELETE /v1/sessions/a"} {
		method, path, _ := strings.Cut(method, " ")
		if r := porttest.Ask(t, method, srv.URL+path, `{}`); r.Status != 404 {
			t.Errorf("%s %s: %d %s", method, path, r.Status, r.Body)
		}
	}
}

// A client with a named key has its own conversations, which go with the key.
//
// SECURITY.md: `--share-sessions`: your conversations to the chat page and to programs that may do
// everything
func TestSessionsOfAKeyAreItsOwn(t *testing.T) {
	var n named
	store := hosttest.Must(records.Open(records.Options{TTL: records.RememberedFor,
		File: filepath.Join(t.TempDir(), "kept.db")}))(t)
	defer store.Close()
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"), withKeys(t, &n, store), sharing(nil))
	n.add(t, "alice", nil)
	n.add(t, "bob", nil)
	hosttest.Check(t, store.Put(records.Record{Kind: records.KindChat, Key: "cc33",
		Value: []byte(`{"id":"cc33","exchanges":[]}`)}))
	said := func(srv *httptest.Server, name string) string {
		return n.as(t, srv, name, "GET", "/v1/sessions", "").Body
	}
	if r := n.as(t, srv, "alice", "POST", "/v1/sessions/aa11",
		`{"session":{"id":"aa11","exchanges":[]}}`); r.Status != 200 {
		t.Fatal(r.Body)
	}
	if a, b := said(srv, "alice"), said(srv, "bob"); !strings.Contains(a, "aa11") ||
		strings.Contains(a, "cc33") || strings.Contains(b, "aa11") || strings.Contains(b, "cc33") {
		t.Errorf("alice sees %s\nbob %s", a, b)
	}
	r := n.as(t, srv, "bob", "DELETE", "/v1/sessions/aa11", "")
	if r.Status != 404 {
		t.Errorf("bob deletes alice's: %d", r.Status)
	}
}

// mostPageLines bounds the chat page, which has no framework.
const mostPageLines = 1900

func TestThePageIsSmall(t *testing.T) {
	lines := 0
	for _, kind := range []string{"page/*.js", "page/*.css", "page/chat.html"} {
		for _, path := range hosttest.Must(filepath.Glob(kind))(t) {
			lines += strings.Count(string(hosttest.Must(os.ReadFile(path))(t)), "\n")
		}
	}
	if lines > mostPageLines || lines < mostPageLines/2 {
		t.Errorf("the chat page has %d lines, at most %d", lines, mostPageLines)
	}
}
