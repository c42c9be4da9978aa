package session

import (
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
)

func TestTextIsContinued(t *testing.T) {
	m, s := scripted("and peace<|channel|>, 1\U0001F9D1 more STOP no<|return|>", "cut[length]")
	p := sample.Defaults()
	p.Logprobs = 0
	events, res := run(t, m, Request{Prompt: []int32{1, 2}, Params: p, Stop: []string{" STOP"}})
	if want := "and peace, 1\U0001F9D1 more"; res.Answer != want ||
		res.Done.StopString != " STOP" || res.Done.Faults.Total() != 0 {
		t.Errorf("%q of %s", res.Answer, events)
	}
	if len(s.prompts[0]) != 2 || res.Done.Usage.Prompt != 2 || res.Done.Usage.Completion == 0 {
		t.Errorf("prompt %v, usage %+v", s.prompts[0], res.Done.Usage)
	}
	if _, res = run(t, m, Request{Prompt: []int32{1}}); res.Answer != "cut" ||
		res.Done.Finish != FinishLength {
		t.Errorf("%+v", res)
	}
}

func TestTextIsMaskedOnlyWhenAsked(t *testing.T) {
	q, err := submitted(t, Request{Prompt: []int32{1}})
	if err != nil || q.Constraint != nil {
		t.Fatalf("%v %+v", err, q)
	}
	q = hosttest.Must(submitted(t, Request{Prompt: []int32{1}, Final: schema.AnyObject()}))(t)
	if n, whole := legalSoFar(q, `{"a":1}<|return|>`); !whole {
		t.Errorf("JSON is refused at token %d", n)
	}
	q = hosttest.Must(submitted(t, Request{Prompt: []int32{1}, Final: schema.AnyObject()}))(t)
	for _, id := range token.Get().Encode(nil, `{"a":1}`) {
		q.Constraint.Accept(id)
	}
	if allows(q.Constraint.Mask(), token.End) {
		t.Error("an end that is none")
	}
}
