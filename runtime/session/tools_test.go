package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
		[]Tool{tool}, ToolOptions{}))(t)
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
	start := func(m *Model, tool *adder, o ToolOptions) (Turn, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		turn := hosttest.Must(StartWithTools(ctx, m, Request{Messages: []Message{User("?")}},
			[]Tool{tool}, o))(t)
		return turn, cancel
	}
	call, answer := fmt.Sprintf(pythonCall, "x"), "<|channel|>final<|message|>No.<|return|>"

	m, s := scripted(call, answer)
	turn, cancel := start(m, &adder{answers: []string{"out"}, err: errors.New("no such name")},
		ToolOptions{Calls: 1})
	defer cancel()
	if got, _ := kinds(t, turn); got[len(got)-1] != "done stop" ||
		!strings.Contains(text(s.prompts[1]), "out\nError: no such name<|end|>") {
		t.Errorf("%q, %s", got, text(s.prompts[1]))
	}

	m, s = scripted(call, answer)
	turn, cancel = start(m, &adder{block: true}, ToolOptions{Time: time.Millisecond})
	defer cancel()
	if got, _ := kinds(t, turn); got[len(got)-1] != "done stop" ||
		!strings.Contains(text(s.prompts[1]), "half\nError: stopped after 1ms") {
		t.Errorf("%q, %s", got, text(s.prompts[1]))
	}

	m, _ = scripted(call)
	turn, cancel = start(m, &adder{block: true}, ToolOptions{})
	time.AfterFunc(10*time.Millisecond, cancel)
	if got, done := kinds(t, turn); done.Finish != FinishCancelled {
		t.Errorf("cancelled: %q", got)
	}

	m, s = scripted(call, answer)
	turn, cancel = start(m, &adder{answers: []string{strings.Repeat("ä", 50)}},
		ToolOptions{Result: 10})
	defer cancel()
	if kinds(t, turn); !strings.Contains(text(s.prompts[1]),
		strings.Repeat("ä", 10)+"\n[10 of 50 characters are shown]") {
		t.Errorf("%s", text(s.prompts[1]))
	}
}

// Calls that are the caller's end the turn with the call in the result.
func TestCallsOfTheCaller(t *testing.T) {
	m, _ := scripted("<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>")
	turn := hosttest.Must(StartWithTools(t.Context(), m, Request{Messages: []Message{User("?")}},
		[]Tool{&adder{}}, ToolOptions{}))(t)
	got, done := kinds(t, turn)
	if done.Finish != FinishToolCalls || len(turn.Result().Calls) != 1 {
		t.Errorf("%q", got)
	}
}

// served is an adder whose calls a server runs, all but "bad".
type served struct {
	adder
	ran []Call
}

func (s *served) Resolve(c Call) (Call, error) {
	if c.Arguments == "bad" {
		return c, errors.New("not readable")
	}
	c.Server, c.Tool = "far", "add "+c.Arguments
	return c, nil
}

func (s *served) Run(ctx context.Context, c Call, output func(string)) (ToolResult, error) {
	s.ran = append(s.ran, c)
	return s.adder.Run(ctx, c, output)
}

// Two calls of one turn, each asked about before it runs, with the names of its server's tool.
func TestApproval(t *testing.T) {
	refusal, needs := errors.New("refused"), fmt.Errorf("wrapped: %w", ErrNeedsApproval)
	hangs := errors.New("the question is not answered before the turn is cancelled")
	for name, c := range map[string]struct {
		calls  [2]string
		says   []error // to each question; nil: nothing asks
		ran    []string
		told   []string // what the model reads of each call
		finish Finish
	}{
		"without a hook": {[2]string{"1", "2"}, nil, []string{"1", "2"}, []string{"aa", "bb"},
			FinishStop},
		"approved": {[2]string{"1", "2"}, []error{nil, nil}, []string{"1", "2"},
			[]string{"aa", "bb"}, FinishStop},
		"the first is refused": {[2]string{"1", "2"}, []error{refusal, nil}, []string{"2"},
			[]string{"Error: refused", "aa"}, FinishStop},
		"both are refused": {[2]string{"1", "2"}, []error{refusal, refusal}, nil,
			[]string{"Error: refused", "Error: refused"}, FinishStop},
		"the first needs approval": {[2]string{"1", "2"}, []error{ErrNeedsApproval}, nil, nil,
			FinishToolCalls},
		"the second needs approval": {[2]string{"1", "2"}, []error{nil, needs}, []string{"1"},
			[]string{"aa"}, FinishToolCalls},
		"one cannot be asked about": {[2]string{"bad", "2"}, []error{nil}, []string{"2"},
			[]string{"Error: not readable", "aa"}, FinishStop},
		"cancelled while asked": {[2]string{"1", "2"}, []error{nil, hangs}, []string{"1"},
			[]string{"aa", "Error: context canceled"}, FinishCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				m, s := scripted("<|channel|>final<|message|>Done.<|return|>")
				runner := WithStart(m, func(ctx context.Context, r Request) (Turn, error) {
					if len(r.Messages) > 1 {
						return m.Start(ctx, r)
					}
					var calls []Call
					for i, arguments := range c.calls {
						calls = append(calls, Call{ID: fmt.Sprint("call_", i), Name: "python",
							Recipient: "python", Arguments: arguments})
					}
					done := Done{Finish: FinishToolCalls}
					return Finished(Result{Calls: calls, Done: done}, done), nil
				})
				tool := &served{adder: adder{answers: []string{"aa", "bb"}}}
				o, asked := ToolOptions{Time: time.Minute}, 0
				if c.says != nil {
					o.Approve = func(ctx context.Context, call Call) error {
						if call.Server != "far" || call.Tool != "add "+call.Arguments {
							t.Errorf("asked about %+v", call)
						}
						says := c.says[asked]
						if asked++; says == hangs {
							time.AfterFunc(time.Hour, cancel)
							<-ctx.Done()
							return ctx.Err()
						}
						<-time.After(time.Hour) // a person's time is not the call's
						return says
					}
				}
				turn := hosttest.Must(StartWithTools(ctx, runner,
					Request{Messages: []Message{User("?")}}, []Tool{tool}, o))(t)
				var told, ran []string
				for e, ok := turn.Next(); ok; e, ok = turn.Next() {
					if end, ok := e.(ToolEnd); ok && end.Took != 0 {
						t.Errorf("call %d took %v", end.Index, end.Took)
					}
				}
				for _, m := range turn.Result().Messages {
					if m.Role == harmony.RoleTool {
						told = append(told, m.Text())
					}
				}
				for _, call := range tool.ran {
					ran = append(ran, call.Arguments)
					if call.Tool != "add "+call.Arguments {
						t.Errorf("%+v ran, which is not what was approved", call)
					}
				}
				if got := turn.Result().Done.Finish; got != c.finish || asked != len(c.says) ||
					!slices.Equal(ran, c.ran) || !slices.Equal(told, c.told) {
					t.Errorf("%s after %d questions; ran %q; the model read %q", got, asked, ran, told)
				}
				if n := len(turn.Result().Calls); n != 2 || (len(s.prompts) == 1) != (c.finish ==
					FinishStop) {
					t.Errorf("%d calls, %d prompts", n, len(s.prompts))
				}
			})
		})
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
		[]Tool{&opener{adder{answers: []string{"ab", "cd"}}}}, ToolOptions{}))(t)
	kinds(t, turn)
	for i, want := range []int{0, 1, 1} {
		if got := strings.Count(text(s.prompts[i]), "Opened by a call"); got != want {
			t.Errorf("prompt %d offers the function %d times, not %d", i, got, want)
		}
	}
}
