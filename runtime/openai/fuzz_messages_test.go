package openai

import "testing"

func FuzzMessagesRequest(f *testing.F) {
	seedBodies(f, "testdata/clients")
	f.Add([]byte(turnOf(askFiles+`,{"role":"assistant","content":[{"type":"thinking","signature":`+
		`"ossrun1.YQ"},{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user",`+
		`"content":[{"type":"tool_result","tool_use_id":"c"}]}`, `,"thinking":{"type":"enabled",`+
		`"budget_tokens":9}`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, bad := parseObject(b)
		if bad == nil {
			r := parseMessages(o, 0)
			if bad = o.fault(); bad == nil {
				startable(t, r.turns[0])
				return
			}
		}
		wellFormed(t, bad.status, bad.kind, bad.message)
	})
}
