package tools

import (
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/session"
)

// A turn whose built-in calls are hidden can be taken up by another process too.
func TestSampledPassesThroughHiddenCalls(t *testing.T) {
	f := &answertest.Model{Script: answertest.Agent, Sampled: []int32{5, 6}}
	turn, err := f.Start(t.Context(), session.Request{Messages: []session.Message{
		session.User("Hello")}})
	if err != nil {
		t.Fatal(err)
	}
	if got := hideCalls(turn, nil).Sampled(); !slices.Equal(got, f.Sampled) {
		t.Errorf("%v can be taken up, not %v", got, f.Sampled)
	}
}
