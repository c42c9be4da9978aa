// Requests, and parts of answers, that several tests use.

package openai

import (
	"bytes"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/session"
)

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// lastItem is the last output item of a type.
func lastItem(m any, kind string) map[string]any {
	list, _ := at(m, "output").([]any)
	for i := len(list) - 1; i >= 0; i-- {
		if at(list[i], "type") == kind {
			return list[i].(map[string]any)
		}
	}
	return nil
}

// slowly answers "Hello." in two pieces, and waits for the gate between them.
func slowly(gate chan struct{}) script {
	return func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Reasoning{Text: "Think."}, session.Answer{Text: "Hel"},
			pause{until: gate}, session.Answer{Text: "lo."}, done(session.FinishStop)}, nil
	}
}

// ended polls a response until it has ended.
func ended(t *testing.T, srv *httptest.Server, id string) map[string]any {
	t.Helper()
	return eventually(t, func() (map[string]any, bool) {
		m := decode(t, ask(t, "GET", srv.URL+"/v1/responses/"+id, "").body)
		conform(t, "Response", m)
		return m, m["status"] != "queued" && m["status"] != "in_progress"
	})
}

const hello = `{"role":"user","content":"hi"}`

const weatherTool = `{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`

// beyond is a schema that no grammar holds whole.
const beyond = `{"type":"object","properties":{"a":{"unevaluatedProperties":false}}}`

// turnOf is a request of an agent that talks as Claude Code does.
func turnOf(messages, more string) string {
	return `{"model":"gpt-oss:20b","max_tokens":32000,"system":[{"type":"text","text":` +
		`"x-anthropic-billing-header: cc_version=2.1.329.649; cc_entrypoint=sdk-cli;"},` +
		`{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}}],` +
		`"metadata":{"user_id":"{\"device_id\":\"0\"}"},"context_management":{"edits":[]},` +
		`"output_config":{"effort":"high"},"tools":[` + bashTool + `],"messages":[` + messages +
		`]` + more + `}`
}

const askFiles = `{"role":"user","content":[{"type":"text","text":"Context."},{"type":"text","text":"List the files."}]}`

// chatWith is a chat request with these members beside its messages.
func chatWith(members string) string {
	return `{"messages":[` + hello + `],` + members + `}`
}

const weatherFunction = `{"type":"function","name":"get_weather","description":"Weather of a city","strict":true,"parameters":{"type":"object","properties":{"city":{"type":"string"}}}}`

// holds tells whether g allows text as a whole.
func holds(g *grammar.Grammar, text string) bool {
	if g == nil {
		return true
	}
	m := g.Matcher()
	for _, id := range token.Get().Encode(nil, text) {
		if !allows(m.Mask(token.Return), id) || !m.Accept(id) {
			return false
		}
	}
	return m.Done()
}

const bashTool = `{"name":"Bash","description":"Run a command","input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}`

// allows tells whether a mask allows id; a nil mask allows all.
func allows(mask []uint64, id int32) bool {
	return mask == nil || mask[id>>6]>>(id&63)&1 == 1
}
