package openai

import "testing"

func FuzzChatRequest(f *testing.F) {
	seedBodies(f, "testdata/clients")
	f.Fuzz(func(t *testing.T, b []byte) {
		o, bad := parseObject(b)
		if bad == nil {
			r := parseChat(o, 0)
			if bad = o.fault(); bad == nil {
				startable(t, r.turns[0])
				return
			}
		}
		wellFormed(t, bad.status, bad.kind, bad.message)
	})
}
