package scripttest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
)

// requester sends a request and returns the object of its answer.
type requester func(method, path, body string) map[string]any

// What is deleted by any route is in no file: neither its text nor the tokens of its turns.
func TestWhatIsDeletedIsOnNoDisk(t *testing.T) {
	for name, remove := range map[string]func(requester){
		"a response": func(ask requester) {
			r := ask("POST", "/v1/responses", `{"input":"a SECRET"}`)
			ask("DELETE", "/v1/responses/"+r["id"].(string), "")
		},
		"a chain, the last first": func(ask requester) {
			r := ask("POST", "/v1/responses", `{"input":"a SECRET"}`)
			s := ask("POST", "/v1/responses", `{"input":"more","previous_response_id":"`+
				r["id"].(string)+`"}`)
			ask("DELETE", "/v1/responses/"+s["id"].(string), "")
			ask("DELETE", "/v1/responses/"+r["id"].(string), "")
		},
		"a salted one with a call": func(ask requester) {
			r := ask("POST", "/v1/responses", `{"input":"a SECRET","cache_salt":"s","tools":[`+
				`{"type":"function","name":"f","parameters":{}}],"tool_choice":"required"}`)
			ask("DELETE", "/v1/responses/"+r["id"].(string), "")
		},
		"a background one": func(ask requester) {
			r := ask("POST", "/v1/responses", `{"input":"a SECRET","background":true}`)
			path := "/v1/responses/" + r["id"].(string)
			hosttest.Until(t, "it has ended", func() bool {
				return ask("GET", path, "")["status"] == "completed"
			})
			ask("DELETE", path, "")
		},
		"a conversation with its responses": func(ask requester) {
			c := ask("POST", "/v1/conversations", `{}`)
			for range 2 {
				ask("POST", "/v1/responses", `{"input":"a SECRET","conversation":"`+
					c["id"].(string)+`"}`)
			}
			ask("DELETE", "/v1/conversations/"+c["id"].(string), "")
		},
		"the items of a conversation": func(ask requester) {
			c := ask("POST", "/v1/conversations", `{}`)
			id := c["id"].(string)
			ask("POST", "/v1/responses", `{"input":"a SECRET","conversation":"`+id+`"}`)
			items := ask("GET", "/v1/conversations/"+id+"/items", "")["data"].([]any)
			for _, item := range items {
				name := item.(map[string]any)["id"].(string)
				ask("DELETE", "/v1/conversations/"+id+"/items/"+name, "")
			}
		},
	} {
		t.Run(name, func(t *testing.T) { deleteAndSearch(t, remove) })
	}
}

// Of a stored chat completion only its text was on the disk, and goes with it.
func TestADeletedCompletionIsOnNoDisk(t *testing.T) {
	folder := t.TempDir()
	store := hosttest.Must(records.Open(records.Options{TTL: time.Hour,
		File: filepath.Join(folder, "kept.db")}))(t)
	srv := serveWith(t, store)
	ask := func(method, path, body string) (m map[string]any) {
		r := hosttest.Must(http.NewRequest(method, srv.URL+path, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		resp := hosttest.Must(http.DefaultClient.Do(r))(t)
		defer resp.Body.Close()
		hosttest.Check(t, json.NewDecoder(resp.Body).Decode(&m))
		return m
	}
	c := ask("POST", "/v1/chat/completions",
		`{"store":true,"messages":[{"role":"user","content":"a SECRET"}]}`)
	for _, tokens := range storedTokens(t, store) {
		if isInFiles(t, folder, tokens) {
			t.Error("sampled tokens are in a file")
		}
	}
	if !isInFiles(t, folder, "SECRET") {
		t.Error("the text is in no file before it is deleted")
	}
	if d := ask("DELETE", "/v1/chat/completions/"+c["id"].(string), ""); d["deleted"] != true {
		t.Error(d)
	}
	hosttest.Check(t, store.Close())
	if isInFiles(t, folder, "SECRET") {
		t.Error("the text is in a file")
	}
}

func deleteAndSearch(t *testing.T, remove func(requester)) {
	folder := t.TempDir()
	store := hosttest.Must(records.Open(records.Options{TTL: time.Hour,
		File: filepath.Join(folder, "kept.db")}))(t)
	srv := serveWith(t, store)
	traces := map[string]bool{}
	remove(func(method, path, body string) (m map[string]any) {
		t.Helper()
		if method == "DELETE" {
			for _, trace := range append(storedTokens(t, store), "SECRET") {
				if traces[trace] = true; len(store.List(records.KindTurn)) > 0 &&
					!isInFiles(t, folder, trace) { // so the search would find it
					t.Errorf("%q is in no file before it is deleted", trace)
				}
			}
		}
		r := hosttest.Must(http.NewRequest(method, srv.URL+path, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		resp := hosttest.Must(http.DefaultClient.Do(r))(t)
		defer resp.Body.Close()
		text := hosttest.Must(io.ReadAll(resp.Body))(t)
		if resp.StatusCode != http.StatusOK || json.Unmarshal(text, &m) != nil {
			t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
		}
		return m
	})
	for _, kind := range []records.Kind{records.KindTurn, records.KindResponse,
		records.KindRunning} {
		if n := len(store.List(kind)); n > 0 {
			t.Errorf("%d of kind %s are left", n, kind)
		}
	}
	hosttest.Check(t, store.Close())
	if len(traces) < 2 {
		t.Error("no tokens were stored")
	}
	for trace := range traces {
		if isInFiles(t, folder, trace) {
			t.Errorf("%q is in a file", trace)
		}
	}
}

// storedTokens are the sampled tokens of all turns, as they are stored: varints in base64.
func storedTokens(t *testing.T, store records.Store) (tokens []string) {
	t.Helper()
	for _, r := range store.List(records.KindTurn) {
		var turn struct{ Segments []struct{ Tokens string } }
		hosttest.Check(t, json.Unmarshal(r.Value, &turn))
		for _, segment := range turn.Segments {
			tokens = append(tokens, segment.Tokens)
		}
	}
	return tokens
}

func isInFiles(t *testing.T, folder, trace string) bool {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(folder, "*")) // the pattern is well formed
	return slices.ContainsFunc(files, func(name string) bool {
		return bytes.Contains(hosttest.Must(os.ReadFile(name))(t), []byte(trace))
	})
}
