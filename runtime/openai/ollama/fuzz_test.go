package ollama

import (
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/openai/fields"
)

func FuzzOllamaRequest(f *testing.F) {
	answertest.SeedBodies(f, "../testdata/clients")
	f.Add([]byte(`{"model":"a","prompt":"b","raw":true,"think":"low","options":{"stop":"c"}}`))
	f.Add([]byte(`{"model":"a","messages":[{"role":"assistant","tool_calls":[{"function":` +
		`{"name":"f","arguments":{}}}]},{"role":"tool","tool_name":"f"}],"format":"json"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := New(answer.New(answer.Options{}))
		for _, read := range []answer.Reader{p.ReadChat, p.ReadGenerate} {
			o, bad := fields.ParseObject(b)
			if bad == nil {
				r, _ := read(o)
				if bad = o.Fault(); bad == nil {
					answertest.Startable(t, r.Turns[0])
					continue
				}
			}
			answertest.WellFormed(t, bad.Status, bad.Kind, bad.Message)
		}
	})
}
