package session

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// What models were seen to write, as a whole turn: no word of it is lost, no special token is
// shown, every call is a call.
func TestHeadersOfTheIssues(t *testing.T) {
	raw := hosttest.Must(os.ReadFile("../../harmony/testdata/headers.jsonl"))(t)
	for line := range strings.Lines(string(raw)) {
		var c struct {
			Source, Text string
			Want         []struct {
				Role, Channel, Recipient, Text string
				Call, Cut                      bool
			}
			Faults string
		}
		hosttest.Check(t, json.Unmarshal([]byte(line), &c))
		m, _ := scripted(c.Text, "[length]")
		events, res := run(t, m, Request{Messages: []Message{User("x")},
			Functions: weatherTool("{}")})
		all, calls := res.Reasoning+res.Answer+res.Commentary, 0
		for _, w := range c.Want {
			switch {
			case w.Cut:
			case w.Call:
				if calls == len(res.Calls) {
					t.Errorf("%s: the call of %s is lost\n%s", c.Source, w.Recipient, events)
					break
				}
				if got := res.Calls[calls]; got.Recipient != w.Recipient ||
					got.Arguments != w.Text || got.Name != strings.TrimPrefix(w.Recipient,
					"functions.") {
					t.Errorf("%s: %+v, want %+v", c.Source, got, w)
				}
				calls++
			case !strings.Contains(all, w.Text):
				t.Errorf("%s: %q is lost\n%s", c.Source, w.Text, events)
			}
		}
		if len(res.Calls) != calls || strings.Count("\n"+events, "\nend ") != calls {
			t.Errorf("%s: %d calls, want %d\n%s", c.Source, len(res.Calls), calls, events)
		}
		if strings.Contains(events, "<|") {
			t.Errorf("%s: a special token is shown\n%s", c.Source, events)
		}
		if (c.Faults == "") != (res.Done.Faults.Total() == 0) && !strings.Contains(c.Source,
			"makes up") && res.Done.Faults[harmony.FaultRole] == 0 {
			t.Errorf("%s: faults %v", c.Source, res.Done.Faults)
		}
		if calls > 0 && res.Done.Finish != FinishToolCalls {
			t.Errorf("%s: finish %s", c.Source, res.Done.Finish)
		}
	}
}

// A call that a limit cuts off has no arguments that could be run: it is not ended, and the turn
// says length.
func TestACutCallIsNoCall(t *testing.T) {
	const call = `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":`
	m, _ := scripted(call+"[length]", call+"1}[length]")
	events, res := run(t, m, Request{Messages: []Message{User("x")}, Functions: weatherTool("{}")})
	if len(res.Calls) != 0 || strings.Contains(events, "\nend ") ||
		res.Done.Finish != FinishLength || len(res.Messages) != 0 {
		t.Errorf("%s %+v", events, res)
	}
	// whole JSON, and only its end is missing
	events, res = run(t, m, Request{Messages: []Message{User("x")}})
	if len(res.Calls) != 1 || !strings.Contains(events, `end "{\"a\":1}"`) ||
		res.Done.Finish != FinishLength {
		t.Errorf("%s %+v", events, res)
	}
}
