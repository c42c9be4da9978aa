package openai_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
)

// A key is removed while its client has a stream, a plain request and a background response: all
// end, and what it has stored goes, but nothing of another client.
//
// SECURITY.md: Removing a key ends its requests and background responses, also on other servers
// of the store, and deletes its records; the last one leaves the server locked until `ossrun
// keys off`.
func TestARemovedKeyEndsWhatItRuns(t *testing.T) {
	var n named
	store := records.NewStore()
	var ring *keys.Ring
	p := live(t, engine.Settings{}, withKeys(t, &n, store), func(o *openai.Options) {
		ring = o.Keys
	})
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { ring.Watch(ctx); close(watched) }()
	defer func() { cancel(); <-watched }()
	n.add(t, "alice", nil)
	n.add(t, "bob", nil)
	stored := func(who string) string {
		r := n.as(t, p.Server, who, "POST", "/v1/responses",
			`{"model":"demo","input":"x","max_output_tokens":16}`)
		return porttest.Decode(t, r.Body)["id"].(string)
	}
	alices, bobs := stored("alice"), stored("bob")
	talk := porttest.Decode(t, n.as(t, p.Server, "alice", "POST", "/v1/conversations", `{}`).Body)
	p.stage.hold()
	run := n.as(t, p.Server, "alice", "POST", "/v1/responses",
		`{"model":"demo","input":"y","background":true}`)
	background := porttest.Decode(t, run.Body)["id"].(string)
	replies := make(chan porttest.Reply, 2)
	for _, member := range []string{`"stream":true`, `"stream":false`} {
		go func() {
			replies <- n.as(t, p.Server, "alice", "POST", "/v1/chat/completions",
				porttest.ChatWith(`"model":"demo",`+member))
		}()
	}
	hosttest.Until(t, "three run", func() bool {
		st := p.model.Stats()
		return st.Running+st.Waiting == 3
	})
	hosttest.Check(t, keys.Change(n.path, func(all []keys.Key) ([]keys.Key, error) {
		i := keys.Index(all, "alice")
		return slices.Delete(all, i, i+1), nil
	}))
	hosttest.Until(t, "the key is gone", func() bool { return ring.Len() == 1 })
	p.stage.free()
	for range 2 {
		r := <-replies
		if r.Status == 200 && !strings.Contains(r.Body, "this API key was removed") ||
			r.Status != 200 && r.Status != http.StatusUnauthorized {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	}
	for _, kind := range []records.Kind{records.KindResponse, records.KindRunning,
		records.KindConversation, records.KindTurn} {
		hosttest.Until(t, string(kind)+" of hers are gone", func() bool {
			return !slices.ContainsFunc(store.List(kind), func(r records.Record) bool {
				return strings.Contains(r.Key, alices) || strings.Contains(r.Key, background) ||
					strings.Contains(r.Key, talk["id"].(string)) || kind == records.KindRunning
			})
		})
	}
	if r := n.as(t, p.Server, "bob", "GET", "/v1/responses/"+bobs, ""); r.Status != 200 {
		t.Errorf("another's response: %d %s", r.Status, r.Body)
	}
	if r := n.as(t, p.Server, "alice", "GET", "/v1/models", ""); r.Status != 401 {
		t.Errorf("a removed key opens: %d", r.Status)
	}
}
