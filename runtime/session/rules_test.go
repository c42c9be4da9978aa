package session

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
)

// legalSoFar says how many of the tokens of text the request's mask allows.
func legalSoFar(r sched.TokenRequest, text string) (allowed int, whole bool) {
	ids := encode(text)
	for i, id := range ids {
		if r.Constraint != nil && !allows(r.Constraint.Mask(), id) {
			return i, false
		}
		if r.Constraint != nil {
			r.Constraint.Accept(id)
		}
	}
	return len(ids), true
}

// submitted is the request that reaches the scheduler.
func submitted(t *testing.T, r Request) (sched.TokenRequest, error) {
	t.Helper()
	m, s := scripted("<|channel|>final<|message|>x<|return|>")
	m.context = 131072
	var got sched.TokenRequest
	m.submit = func(ctx context.Context, q sched.TokenRequest) (TokenStream, error) {
		got = q
		return s.submit(ctx, q)
	}
	r.Params = sample.Defaults()
	_, err := m.Start(context.Background(), r)
	return got, err
}

func weatherTool(parameters string) []harmony.ToolDescription {
	return []harmony.ToolDescription{{Name: "get_weather", Parameters: json.RawMessage(parameters)}}
}

func TestTurnsAreMasked(t *testing.T) {
	tool := weatherTool(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)
	call := `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Paris"}<|call|>`
	for _, c := range []struct {
		r     Request
		text  string
		legal bool
	}{
		{Request{}, "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>x<|return|>", true},
		{Request{}, call, false},
		{Request{Functions: tool}, call, true},
		{Request{Functions: tool}, strings.Replace(call, "city", "town", 1), false},
		{Request{Functions: tool, ToolChoice: grammar.None}, call, false},
		{Request{Functions: tool, ToolChoice: grammar.Named, ToolName: "get_weather"}, call, true},
		{Request{Functions: tool, ToolChoice: grammar.Required},
			"<|channel|>final<|message|>x<|return|>", false},
		{Request{Functions: tool, ToolChoice: grammar.Required, Python: true,
			Only: []string{"python"}}, call, false},
		{Request{Functions: tool, ToolChoice: grammar.Required, Python: true,
			Only: []string{"python"}},
			"<|channel|>commentary to=python code<|message|>1<|call|>", true},
		{Request{Functions: tool, ToolChoice: grammar.Required, Browser: true,
			Only: []string{"browser"}},
			`<|channel|>commentary to=browser.search code<|message|>{"query":"x"}<|call|>`, true},
		{Request{Functions: tool, ToolChoice: grammar.Required, Browser: true,
			Only: []string{"functions.get_weather"}}, call, true},
		{Request{Final: schema.AnyObject()}, "<|channel|>final<|message|>x<|return|>", false},
		{Request{Final: schema.AnyObject()}, `<|channel|>final<|message|>{"x":1}<|return|>`,
			true},
		{Request{MaxReasoning: -1}, "<|channel|>analysis", false},
	} {
		q := hosttest.Must(submitted(t, c.r))(t)
		if n, whole := legalSoFar(q, c.text); whole != c.legal {
			t.Errorf("%s: allowed to token %d", c.text, n)
		}
	}
}

func TestParametersThatCannotBeHeld(t *testing.T) {
	odd := `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`
	q, err := submitted(t, Request{Functions: weatherTool(odd)})
	hosttest.Check(t, err)
	if _, whole := legalSoFar(q,
		`<|channel|>commentary to=functions.get_weather<|message|>{"any":[1]}<|call|>`); !whole {
		t.Error("a function that is not strict is not held to JSON")
	}
	m, _ := scripted("<|channel|>final<|message|>x<|return|>")
	if _, res := run(t, m, Request{Functions: weatherTool(odd)}); len(res.Relaxed) != 1 ||
		!strings.Contains(res.Relaxed[0], "#/properties/a") {
		t.Errorf("relaxed: %q", res.Relaxed)
	}
	_, err = submitted(t, Request{Functions: weatherTool(odd), Strict: []string{"get_weather"}})
	var bad *RequestError
	if !errors.As(err, &bad) || !strings.Contains(bad.Msg, "#/properties/a") ||
		!strings.Contains(bad.Msg, "$ref") {
		t.Errorf("strict: %v", err)
	}
	if _, err = submitted(t, Request{ToolChoice: grammar.Required}); !errors.As(err, &bad) {
		t.Errorf("required without tools: %v", err)
	}
}

func TestALoopInTheAnswerEndsTheTurn(t *testing.T) {
	m, _ := scripted("<|channel|>final<|message|>" + strings.Repeat("and so on ", 600) +
		"<|return|>")
	_, res := run(t, m, Request{})
	if res.Done.Finish != FinishLoop || res.Answer == "" || res.Done.Usage.Completion > 1000 {
		t.Errorf("finish %q after %d tokens", res.Done.Finish, res.Done.Usage.Completion)
	}
	if n := res.Done.Faults.Total(); n != 0 || res.Tokens[0] != token.Channel {
		t.Errorf("%d faults", n)
	}
}

// allows tells whether a mask allows id; a nil mask allows all.
func allows(mask []uint64, id int32) bool {
	return mask == nil || mask[id>>6]>>(id&63)&1 == 1
}

// A prediction starts with the header of an answer, by which it is found. One longer than the
// context is left out.
func TestPredictionIsBehindItsHeader(t *testing.T) {
	for _, c := range []struct{ says, want string }{{"", ""},
		{"Hi <|end|>", "<|start|>assistant<|channel|>final<|message|>Hi <|end|>"},
		{strings.Repeat("word ", 200_000), ""}} {
		got, err := submitted(t, Request{Messages: []Message{User("hi")}, Prediction: c.says})
		if text := string(token.Get().Decode(nil, got.Prediction)); err != nil || text != c.want {
			t.Errorf("%q, %v", text, err)
		}
		if c.want != "" && got.Prediction[len(got.Prediction)-1] == token.End {
			t.Error("text became a special token")
		}
	}
}
