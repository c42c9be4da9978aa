// Requests, and parts of answers, that several tests use.

package porttest

import (
	"bytes"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// LockedBuffer is a log that is read while it is written.
type LockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds to the log.
func (b *LockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is the log so far.
func (b *LockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// LastItem is the last output item of a type.
func LastItem(m any, kind string) map[string]any {
	list, _ := At(m, "output").([]any)
	for i := len(list) - 1; i >= 0; i-- {
		if At(list[i], "type") == kind {
			return list[i].(map[string]any)
		}
	}
	return nil
}

// Slowly answers "Hello." in two pieces, and waits for the gate between them.
func Slowly(gate chan struct{}) sessiontest.Script {
	return func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Reasoning{Text: "Think."}, session.Answer{Text: "Hel"},
			sessiontest.Pause{Until: gate}, session.Answer{Text: "lo."},
			sessiontest.Done(session.FinishStop)}, nil
	}
}

// Ended polls a response until it has ended.
func Ended(t *testing.T, srv *httptest.Server, id string) map[string]any {
	t.Helper()
	return Eventually(t, func() (map[string]any, bool) {
		m := Decode(t, Ask(t, "GET", srv.URL+"/v1/responses/"+id, "").Body)
		Conform(t, "Response", m)
		return m, m["status"] != "queued" && m["status"] != "in_progress"
	})
}

// Hello is a user's message.
const Hello = `{"role":"user","content":"hi"}`

// WeatherTool is a function in the form of chat completions.
const WeatherTool = `{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`

// Beyond is a schema that no grammar enforces completely.
const Beyond = `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`

// ChatWith is a chat request with these members and its messages.
func ChatWith(members string) string {
	return `{"messages":[` + Hello + `],` + members + `}`
}

// WeatherFunction is it in the form of responses.
const WeatherFunction = `{"type":"function","name":"get_weather","description":"Weather of a city","strict":true,"parameters":{"type":"object","properties":{"city":{"type":"string"}}}}`

// Holds tells whether g accepts the complete text.
func Holds(g *grammar.Grammar, text string) bool {
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

// allows tells whether a mask allows id; a nil mask allows all.
func allows(mask []uint64, id int32) bool {
	return mask == nil || mask[id>>6]>>(id&63)&1 == 1
}
