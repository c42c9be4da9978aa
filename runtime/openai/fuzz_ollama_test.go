package openai

import "testing"

func FuzzOllamaRequest(f *testing.F) {
	seedBodies(f, "testdata/clients")
	f.Add([]byte(`{"model":"a","prompt":"b","raw":true,"think":"low","options":{"stop":"c"}}`))
	f.Add([]byte(`{"model":"a","messages":[{"role":"assistant","tool_calls":[{"function":` +
		`{"name":"f","arguments":{}}}]},{"role":"tool","tool_name":"f"}],"format":"json"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newOllamaAPI(newDriver(DriverOptions{}))
		for _, read := range []reader{p.readChat, p.readGenerate} {
			o, bad := parseObject(b)
			if bad == nil {
				r, _ := read(o)
				if bad = o.fault(); bad == nil {
					startable(t, r.turns[0])
					continue
				}
			}
			wellFormed(t, bad.status, bad.kind, bad.message)
		}
	})
}
