package openai

import (
	"encoding/json"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
)

func FuzzResponsesRequest(f *testing.F) {
	seedBodies(f, "testdata/clients")
	store := session.NewStore()
	item := json.RawMessage(`{"role":"user","content":"a"}`)
	if err := putResponse(store, "x", storedResponse{Body: json.RawMessage(`{}`),
		Items: map[string]json.RawMessage{"i": item}}); err != nil {
		f.Fatal(err)
	}
	p := newResponsesAPI(newDriver(DriverOptions{Store: store}), newKeptTools(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, bad := parseObject(b)
		if bad == nil {
			r := p.parse(o)
			if bad = o.fault(); bad == nil {
				startable(t, r.turns[0])
				if _, err := marshal(&r.response); err != nil {
					t.Error(err)
				}
				return
			}
		}
		wellFormed(t, bad.status, bad.kind, bad.message)
	})
}
