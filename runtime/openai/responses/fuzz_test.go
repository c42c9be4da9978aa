package responses

import (
	"encoding/json"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/records"
)

func FuzzResponsesRequest(f *testing.F) {
	answertest.SeedBodies(f, "../testdata/clients")
	store := records.NewStore()
	item := json.RawMessage(`{"role":"user","content":"a"}`)
	if err := putResponse(store, "x", storedResponse{Body: json.RawMessage(`{}`),
		Items: map[string]json.RawMessage{"i": item}}); err != nil {
		f.Fatal(err)
	}
	p := New(answer.New(answer.Options{Store: store}), tools.NewPool(nil, nil), nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		o, bad := fields.ParseObject(b)
		if bad == nil {
			r := p.parse(o)
			if bad = o.Fault(); bad == nil {
				answertest.Startable(t, r.Turns[0])
				if _, err := answer.Marshal(&r.response); err != nil {
					t.Error(err)
				}
				return
			}
		}
		answertest.WellFormed(t, bad.Status, bad.Kind, bad.Message)
	})
}
