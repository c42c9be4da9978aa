package messages

import (
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
)

func FuzzMessagesRequest(f *testing.F) {
	answertest.SeedBodies(f, "../testdata/clients")
	f.Add([]byte(answertest.TurnOf(answertest.AskFiles+`,{"role":"assistant","content":[{"type":"thinking","signature":`+
		`"ossrun1.YQ"},{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user",`+
		`"content":[{"type":"tool_result","tool_use_id":"c"}]}`, `,"thinking":{"type":"enabled",`+
		`"budget_tokens":9}`)))
	p := New(answer.New(answer.Options{}), tools.NewPool(nil, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, bad := fields.ParseObject(b)
		if bad == nil {
			r := p.parse(o)
			if bad = o.Fault(); bad == nil {
				answertest.Startable(t, r.Turns[0])
				return
			}
		}
		answertest.WellFormed(t, bad.Status, bad.Kind, bad.Message)
	})
}
