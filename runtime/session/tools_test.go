package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// adder is a scripted python that answers piece by piece.
type adder struct {
	answers []string
	calls   []string
	err     error
	block   bool
}

func (a *adder) Offer(r *Request)           { r.Python = true }
func (a *adder) Runs(recipient string) bool { return recipient == "python" }
func (a *adder) Close() error               { return nil }

func (a *adder) Run(ctx context.Context, c Call, output func(string)) (ToolResult, error) {
	a.calls = append(a.calls, c.Arguments)
	if a.block {
		<-ctx.Done()
		return ToolResult{Text: "half"}, ctx.Err()
	}
	text := a.answers[len(a.calls)-1]
	output(text[:1])
	output(text[1:])
	return ToolResult{Text: text}, a.err
}

func (a *adder) Citations(answer string) []Citation {
	if i := strings.Index(answer, "【"); i >= 0 {
		return []Citation{{Start: i, URL: "u"}}
	}
	return nil
}

// kinds reads a turn to its end and names its events.
func kinds(t *testing.T, turn Turn) (list []string, done Done) {
	t.Helper()
	for e, ok := turn.Next(); ok; e, ok = turn.Next() {
		switch e := e.(type) {
		case CallStart:
			list = append(list, fmt.Sprint("start ", e.Index))
		case CallEnd:
			list = append(list, fmt.Sprint("call ", e.Index, " ", e.Arguments))
		case ToolOutput:
			list = append(list, fmt.Sprint("output ", e.Index, " ", e.Text))
		case ToolEnd:
			list = append(list, fmt.Sprint("end ", e.Index, " ", e.Err))
		case Answer:
			list = append(list, "answer "+e.Text)
		case Done:
			list, done = append(list, "done "+string(e.Finish)), e
		}
	}
	return list, done
}

const pythonCall = "<|channel|>analysis to=python code<|message|>%s<|call|>"

func TestCallsAreRunUntilTheAnswer(t *testing.T) {
	defer goleak.VerifyNone(t)
	m, s := scripted(fmt.Sprintf(pythonCall, "1+1"),
		"<|channel|>analysis<|message|>Two.<|end|><|start|>assistant"+
			fmt.Sprintf(pythonCall, "2+2"),
		"<|channel|>final<|message|>So 4【1】.<|return|>")
	tool := &adder{answers: []string{"22", "44"}}
	turn := hosttest.Must(StartWithTools(t.Context(), m, Request{Messages: []Message{User("?")}},
		[]Tool{tool}, ToolLimits{}))(t)
	got, done := kinds(t, turn)
	want := []string{"start 0", "call 0 1+1", "output 0 2", "output 0 2", "end 0 <nil>",
		"start 1", "call 1 2+2", "output 1 4", "output 1 4", "end 1 <nil>"}
	if !slices.Equal(got[:len(want)], want) || got[len(got)-1] != "done stop" {
		t.Errorf("%q", got)
	}
	res := turn.Result()
	if res.Answer != "So 4【1】." || len(res.Calls) != 2 || res.Reasoning != "Two." ||
		len(res.Citations) != 1 || res.Citations[0].Start != 4 {
		t.Errorf("%+v", res)
	}
	var said []string
	for _, msg := range res.Messages {
		said = append(said, string(msg.Role)+msg.Name+" "+msg.Channel+": "+msg.Text())
	}
	if want := []string{"assistant analysis: 1+1", "toolpython analysis: 22",
		"assistant analysis: Two.", "assistant analysis: 2+2", "toolpython analysis: 44",
		"assistant final: So 4【1】."}; !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
	if done.Usage.Completion != len(res.Tokens) ||
		done.Usage.Prompt != len(s.prompts[0])+len(s.prompts[1])+len(s.prompts[2]) {
		t.Errorf("usage %+v", done.Usage)
	}
	if p := text(s.prompts[2]); !strings.Contains(p,
		"<|start|>python to=assistant<|channel|>analysis<|message|>44<|end|>") ||
		!strings.Contains(p, "Two.") {
		t.Errorf("the last prompt is %s", p)
	}
}

// A failing tool, one that hangs, a limit on calls: the model learns of it, the turn ends.
func TestToolsFail(t *testing.T) {
	defer goleak.VerifyNone(t)
	start := func(m *Model, tool *adder, l ToolLimits) (Turn, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		turn := hosttest.Must(StartWithTools(ctx, m, Request{Messages: []Message{User("?")}},
			[]Tool{tool}, l))(t)
		return turn, cancel
	}
	call, answer := fmt.Sprintf(pythonCall, "x"), "<|channel|>final<|message|>No.<|return|>"

	m, s := scripted(call, answer)
	turn, cancel := start(m, &adder{answers: []string{"out"}, err: errors.New("no such name")},
		ToolLimits{Calls: 1})
	defer cancel()
	if got, _ := kinds(t, turn); got[len(got)-1] != "done stop" ||
		!strings.Contains(text(s.prompts[1]), "out\nError: no such name<|end|>") {
		t.Errorf("%q, %s", got, text(s.prompts[1]))
	}

	m, s = scripted(call, answer)
	turn, cancel = start(m, &adder{block: true}, ToolLimits{Time: time.Millisecond})
	defer cancel()
	if got, _ := kinds(t, turn); got[len(got)-1] != "done stop" ||
		!strings.Contains(text(s.prompts[1]), "half\nError: stopped after 1ms") {
		t.Errorf("%q, %s", got, text(s.prompts[1]))
	}

	m, _ = scripted(call)
	turn, cancel = start(m, &adder{block: true}, ToolLimits{})
	time.AfterFunc(10*time.Millisecond, cancel)
	if got, done := kinds(t, turn); done.Finish != FinishCancelled {
		t.Errorf("cancelled: %q", got)
	}

	m, s = scripted(call, answer)
	turn, cancel = start(m, &adder{answers: []string{strings.Repeat("ä", 50)}},
		ToolLimits{Result: 10})
	defer cancel()
	if kinds(t, turn); !strings.Contains(text(s.prompts[1]),
		strings.Repeat("ä", 10)+"\n[10 of 50 characters are shown]") {
		t.Errorf("%s", text(s.prompts[1]))
	}
}

// Calls that are the caller's, or that need approval, end the turn with the call in the result.
func TestCallsOfTheCaller(t *testing.T) {
	for _, tool := range []*adder{nil, {answers: []string{"xx"}, err: ErrNeedsApproval}} {
		tools := []Tool{&adder{}}
		says := "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"
		if tool != nil {
			tools, says = []Tool{tool}, fmt.Sprintf(pythonCall, "x")
		}
		m, _ := scripted(says)
		turn, err := StartWithTools(t.Context(), m, Request{Messages: []Message{User("?")}}, tools,
			ToolLimits{})
		hosttest.Check(t, err)
		got, done := kinds(t, turn)
		if done.Finish != FinishToolCalls || len(turn.Result().Calls) != 1 {
			t.Errorf("%q", got)
		}
	}
}

// opener offers python first, and a function when python was called.
type opener struct{ adder }

func (o *opener) Offer(r *Request) {
	o.adder.Offer(r)
	if len(o.calls) > 0 {
		r.Functions = append(r.Functions, harmony.ToolDescription{Name: "more",
			Description: "Opened by a call"})
	}
}

// A tool that offers more after a call is asked again for each step, and nothing is offered twice.
func TestToolsMayOfferMore(t *testing.T) {
	m, s := scripted(fmt.Sprintf(pythonCall, "1"), fmt.Sprintf(pythonCall, "2"),
		"<|channel|>final<|message|>Done.<|return|>")
	turn := hosttest.Must(StartWithTools(t.Context(), m, Request{Messages: []Message{User("?")}},
		[]Tool{&opener{adder{answers: []string{"ab", "cd"}}}}, ToolLimits{}))(t)
	kinds(t, turn)
	for i, want := range []int{0, 1, 1} {
		if got := strings.Count(text(s.prompts[i]), "Opened by a call"); got != want {
			t.Errorf("prompt %d offers the function %d times, not %d", i, got, want)
		}
	}
}
