package tools

import (
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// A turn whose built-in calls are hidden can be taken up by another process too.
func TestSampledPassesThroughHiddenCalls(t *testing.T) {
	f := &sessiontest.Model{Script: sessiontest.Agent, Sampled: []int32{5, 6}}
	turn, err := f.Start(t.Context(), session.Request{Messages: []session.Message{
		session.User("Hello")}})
	if err != nil {
		t.Fatal(err)
	}
	if got := hideCalls(turn, nil).Sampled(); !slices.Equal(got, f.Sampled) {
		t.Errorf("%v can be taken up, not %v", got, f.Sampled)
	}
}
