package chat

import (
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/openai/fields"
)

func FuzzChatRequest(f *testing.F) {
	answertest.SeedBodies(f, "../testdata/clients")
	f.Fuzz(func(t *testing.T, b []byte) {
		o, bad := fields.ParseObject(b)
		if bad == nil {
			r := Parse(o, 0)
			if bad = o.Fault(); bad == nil {
				answertest.Startable(t, r.Turns[0])
				return
			}
		}
		answertest.WellFormed(t, bad.Status, bad.Kind, bad.Message)
	})
}
