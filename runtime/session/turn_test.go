package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
)

// script is a scheduler with scripted tokens, one entry for each submitted request.
type script struct {
	says    []string // text with special tokens by name; "[length]" at its end cuts it there
	prompts [][]int32
	forced  [][]int32
}

type scriptStream struct {
	ctx    context.Context
	ids    []int32
	forced int
	finish sched.FinishReason
	err    error
}

func (s *script) submit(ctx context.Context, r sched.TokenRequest) (TokenStream, error) {
	n := len(s.prompts)
	forced := forcedBy(r)
	s.prompts, s.forced = append(s.prompts, r.Prompt), append(s.forced, forced)
	text, finish := s.says[n], sched.FinishStop
	if cut, ok := strings.CutSuffix(text, "[length]"); ok {
		text, finish = cut, sched.FinishLength
	}
	ids := encode(text)
	if !slices.Equal(ids[:min(len(ids), len(forced))], forced) { // forced tokens may be missing
		ids = append(slices.Clone(forced), ids...)
	}
	return &scriptStream{ctx: ctx, ids: ids, forced: len(forced), finish: finish}, nil
}

// forcedBy is what the request's constraint wants first.
func forcedBy(r sched.TokenRequest) []int32 {
	if r.Constraint == nil {
		return nil
	}
	return r.Constraint.Forced()
}

func (s *scriptStream) Next(context.Context) (sched.Token, bool) {
	if s.ctx.Err() != nil {
		s.finish = sched.FinishCancelled
		return sched.Token{}, false
	}
	if len(s.ids) == 0 {
		return sched.Token{}, false
	}
	id := s.ids[0]
	s.ids = s.ids[1:]
	return sched.Token{SampledToken: engine.SampledToken{ID: id, Logprob: -0.5}}, true
}

func (s *scriptStream) Finish() sched.FinishReason    { return s.finish }
func (s *scriptStream) Err() error                    { return s.err }
func (s *scriptStream) Prompt() []engine.SampledToken { return nil }
func (s *scriptStream) Timing() sched.Timing          { return sched.Timing{} }

func encode(text string) []int32 {
	return token.Get().EncodeSpecial(nil, text, func(string) bool { return true })
}

func scripted(says ...string) (*Model, *script) {
	s := &script{says: says}
	m := &Model{id: "script", store: records.NewStore(), submit: s.submit, gate: NewGate()}
	return m, s
}

// run plays a turn and returns its events as text.
func run(t *testing.T, m *Model, r Request) (string, Result) {
	t.Helper()
	if r.Params.Temperature == 0 {
		r.Params = sample.Defaults()
	}
	turn := hosttest.Must(m.Start(context.Background(), r))(t)
	var b strings.Builder
	dones := 0
	for e, ok := turn.Next(); ok; e, ok = turn.Next() {
		switch e := e.(type) {
		case Done:
			dones++
			fmt.Fprintf(&b, "done %s", e.Finish)
		case Reasoning:
			fmt.Fprintf(&b, "think %q\n", e.Text)
		case Answer:
			fmt.Fprintf(&b, "say %q\n", e.Text)
		case Commentary:
			fmt.Fprintf(&b, "tell %q\n", e.Text)
		case CallStart:
			fmt.Fprintf(&b, "call %d %s\n", e.Index, e.Name)
		case CallArguments:
			fmt.Fprintf(&b, "args %q\n", e.Text)
		case CallEnd:
			fmt.Fprintf(&b, "end %q\n", e.Arguments)
		}
	}
	if dones != 1 {
		t.Fatalf("%d Done events", dones)
	}
	return b.String(), turn.Result()
}

func TestReasoningThenAnswer(t *testing.T) {
	m, s := scripted("<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>It is 4.<|return|>")
	events, res := run(t, m, Request{Messages: []Message{User("2+2?")}, Effort: "low"})
	want := `think "Easy"
think "."
say "It"
say " is"
say " "
say "4"
say "."
done stop`
	if events != want {
		t.Errorf("got\n%s\nwant\n%s", events, want)
	}
	if res.Answer != "It is 4." || res.Reasoning != "Easy." || res.Done.Faults.Total() != 0 ||
		len(res.Messages) != 2 {
		t.Errorf("%+v", res)
	}
	if u := res.Done.Usage; u.Prompt != len(s.prompts[0]) || u.Completion != len(res.Tokens) ||
		u.Reasoning != 6 {
		t.Errorf("usage %+v of %d tokens", u, len(res.Tokens))
	}
	prompt := text(s.prompts[0])
	for _, piece := range []string{"Reasoning: low",
		"<|start|>user<|message|>2+2?<|end|><|start|>assistant"} {
		if !strings.Contains(prompt, piece) {
			t.Errorf("prompt lacks %q: %s", piece, prompt)
		}
	}
}

// TestAModelsOwnEnds: a fine-tune's end tokens end its answers; <|end|>, which ends a message in
// Harmony, ends none, whatever a file says.
func TestAModelsOwnEnds(t *testing.T) {
	ends := endsOf([]int32{token.Return, token.EndOfText, token.Call, token.End, 200013, 11, -1,
		token.VocabSize})
	if want := []int32{token.EndOfText, 200013}; !slices.Equal(ends, want) {
		t.Fatalf("%v, want %v", ends, want)
	}
	m, s := scripted("<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final"+
		"<|message|>Hi.<|endoftext|>", "<|channel|>final<|message|>So.<|return|>")
	m.ends = ends
	events, res := run(t, m, Request{Messages: []Message{User("hi")}})
	if want := "think \"Hm\"\nsay \"Hi\"\nsay \".\"\ndone stop"; events != want ||
		res.Answer != "Hi." || res.Done.Faults.Total() != 0 {
		t.Errorf("%s\n%+v", events, res)
	}
	run(t, m, Request{Messages: []Message{User("hi"), AssistantAnswer("Hi."), User("more")}})
	if again := text(s.prompts[1]); !strings.Contains(again, "Hi.<|end|><|start|>user") {
		t.Errorf("the next prompt is %s", again)
	}
	if !slices.Contains((&turn{model: m}).stopTokens(), 200013) {
		t.Error("a raw prompt does not end there")
	}
}

func text(ids []int32) string { return string(token.Get().Decode(nil, ids)) }

// An answer comes back to the model as the tokens it sampled, which need not be how its text is
// encoded.
func TestAnswerIsRememberedTokenForToken(t *testing.T) {
	m, s := scripted("<|channel|>final<|message|>PLACEHOLDER<|return|>",
		"<|channel|>final<|message|>Fine.<|return|>")
	odd := append(append(append(encode("<|channel|>final<|message|>"), token.Get().Encode(nil,
		"Hel")...), token.Get().Encode(nil, "lo")...), token.Return)
	m.submit = func(ctx context.Context, r sched.TokenRequest) (TokenStream, error) {
		if len(s.prompts) == 0 {
			s.prompts, s.forced = append(s.prompts, r.Prompt), append(s.forced, nil)
			return &scriptStream{ctx: ctx, ids: odd, finish: sched.FinishStop}, nil
		}
		return s.submit(ctx, r)
	}
	_, first := run(t, m, Request{Messages: []Message{User("hi")}})
	if first.Answer != "Hello" {
		t.Fatalf("%q", first.Answer)
	}
	run(t, m, Request{Messages: []Message{User("hi"), AssistantAnswer("Hello"), User("more")}})
	kept := append(append([]int32{}, odd[:len(odd)-1]...), token.End)
	if !contains(s.prompts[1], kept) {
		t.Errorf("the sampled tokens are not in the next prompt: %s", text(s.prompts[1]))
	}
}

func contains(ids, piece []int32) bool {
	for i := 0; i+len(piece) <= len(ids); i++ {
		equal := true
		for j := range piece {
			equal = equal && ids[i+j] == piece[j]
		}
		if equal {
			return true
		}
	}
	return false
}

const thoughtAndCall = `<|channel|>analysis<|message|>Look it up.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Bern"}<|call|>`

func TestCallAndItsReasoningComeBack(t *testing.T) {
	m, s := scripted(thoughtAndCall, "<|channel|>final<|message|>Sunny.<|return|>",
		"<|channel|>final<|message|>Ok.<|return|>", "<|channel|>final<|message|>Ok.<|return|>")
	events, res := run(t, m, Request{Messages: []Message{User("weather?")}})
	if !strings.Contains(events, "call 0 get_weather\n") || !strings.Contains(events,
		`end "{\"city\":\"Bern\"}"`) || !strings.HasSuffix(events, "done tool_calls") {
		t.Fatalf("%s", events)
	}
	id := res.Calls[0].ID
	// the client drops the reasoning and spells the arguments its own way
	history := []Message{User("weather?"), FunctionCall(id, "get_weather", `{ "city": "Bern" }`),
		FunctionResult(id, "get_weather", "sunny")}
	run(t, m, Request{Messages: history})
	if !contains(s.prompts[1], encode(thoughtAndCall)) {
		t.Errorf("thought and call are not in the prompt: %s", text(s.prompts[1]))
	}
	// once the turn has its answer, the thought is left out and the call stays
	run(t, m, Request{Messages: append(history, AssistantAnswer("Sunny."), User("thanks"))})
	if p := text(s.prompts[2]); strings.Contains(p, "Look it up") || !strings.Contains(p,
		`to=functions.get_weather <|constrain|>json<|message|>{"city":"Bern"}<|call|>`) {
		t.Errorf("%s", p)
	}
	// a client that changed the arguments gets its own words
	history[1] = FunctionCall(id, "get_weather", `{"city":"Rome"}`)
	run(t, m, Request{Messages: history})
	if p := text(s.prompts[3]); strings.Contains(p, "Bern") || !strings.Contains(p, "Rome") {
		t.Errorf("%s", p)
	}
}

func TestReasoningStaysInsideAToolLoop(t *testing.T) {
	m, s := scripted("<|channel|>final<|message|>Ok.<|return|>")
	run(t, m, Request{Messages: []Message{User("a"), AssistantReasoning("old thought"),
		AssistantAnswer("b"), User("c"),
		AssistantReasoning("new thought"), FunctionCall("x", "f", "{}"), FunctionResult("x", "f",
			"1")}})
	if p := text(s.prompts[0]); strings.Contains(p, "old thought") || !strings.Contains(p,
		"new thought") {
		t.Errorf("%s", p)
	}
}

func TestStopString(t *testing.T) {
	m, _ := scripted("<|channel|>analysis<|message|>STOP is not " +
		"here<|end|><|start|>assistant<|channel|>final<|message|>one two STOP three<|return|>")
	p := sample.Defaults()
	p.Logprobs = 0
	_, res := run(t, m, Request{Messages: []Message{User("x")}, Stop: []string{" STOP"}, Params: p})
	if res.Answer != "one two" || res.Done.StopString != " STOP" || res.Done.Finish != FinishStop {
		t.Errorf("%q %+v", res.Answer, res.Done)
	}
	if last := res.Messages[len(res.Messages)-1]; !isFinal(last) || last.Text() != "one two" {
		t.Errorf("history %+v", res.Messages)
	}
}

// A stop token ends the turn without its text, wherever it comes, and the turn is not remembered.
func TestStopToken(t *testing.T) {
	stop := encode("two")
	m, s := scripted("<|channel|>final<|message|>one two three<|return|>",
		"<|channel|>analysis<|message|>two")
	_, res := run(t, m, Request{Messages: []Message{User("hi")}, StopTokens: encode(" two")})
	if res.Answer != "one" || res.Done.StopString != " two" || res.Done.Finish != FinishStop ||
		res.Done.Usage.Completion != 5 || len(m.store.List(records.KindTurn)) != 0 {
		t.Errorf("%q, %+v", res.Answer, res.Done)
	}
	_, res = run(t, m, Request{Messages: []Message{User("hi")}, StopTokens: stop})
	if res.Answer != "" || res.Done.Finish != FinishStop || len(s.prompts) != 2 ||
		len(m.store.List(records.KindTurn)) != 0 {
		t.Errorf("in the reasoning: %+v, %d tries", res.Done, len(s.prompts))
	}
	m, _ = scripted("one two three")
	_, res = run(t, m, Request{Prompt: []int32{1}, StopTokens: encode(" two")})
	if res.Answer != "one" || res.Done.StopString != " two" {
		t.Errorf("text: %q, %+v", res.Answer, res.Done)
	}
}

func TestStopStringInCommentary(t *testing.T) {
	m, _ := scripted("<|channel|>commentary<|message|>one two STOP " +
		"three<|end|><|start|>assistant<|channel|>final<|message|>four<|return|>")
	_, res := run(t, m, Request{Messages: []Message{User("x")}, Stop: []string{" STOP"}})
	if res.Commentary != "one two" || res.Answer != "" || res.Done.StopString != " STOP" {
		t.Errorf("%+v", res)
	}
}

func TestLogprobsComeOneAToken(t *testing.T) {
	m, _ := scripted("<|channel|>final<|message|>a \U0001F9D1\u200D\U0001F680 b<|return|>")
	p := sample.Defaults()
	p.Logprobs = 0
	turn := hosttest.Must(m.Start(context.Background(),
		Request{Messages: []Message{User("x")}, Params: p}))(t)
	var bytes []byte
	for e, ok := turn.Next(); ok; e, ok = turn.Next() {
		if a, is := e.(Answer); is {
			for _, l := range a.Logprobs {
				bytes = append(bytes, l.Bytes...)
			}
		}
	}
	if string(bytes) != turn.Result().Answer {
		t.Errorf("%q of %q", bytes, turn.Result().Answer)
	}
}

func TestIllegalTokensLoseNothingAndLeakNothing(t *testing.T) {
	for _, says := range []string{
		"<|channel|>nonsense header with words<|message|>kept<|return|>",
		"kept without any header<|return|>",
		"<|channel|> final<|message|>kept<|return|>",
		"<|channel|>analysis<|message|>hm<|end|>kept " +
			"stray<|start|>assistant<|channel|>final<|message|>kept<|return|>",
		"<|message|>kept<|return|>",
		"<|channel|>final<|message|>kept<|channel|>kept too<|return|>",
	} {
		m, _ := scripted(says, "kept<|return|>")
		events, res := run(t, m, Request{Messages: []Message{User("x")}})
		if all := res.Answer + res.Reasoning + res.Commentary; !strings.Contains(all, "kept") ||
			strings.Contains(events, "<|") {
			t.Errorf("%s\ngave %s", says, events)
		}
	}
}

func TestTurnWithoutAnswerIsRescuedOnce(t *testing.T) {
	m, s := scripted("<|channel|>analysis<|message|>Just thinking.<|return|>", "At last.<|return|>")
	_, res := run(t, m, Request{Messages: []Message{User("x")}})
	if res.Answer != "At last." || len(s.prompts) != 2 ||
		text(s.forced[1]) != "<|channel|>final<|message|>" {
		t.Fatalf("%+v, prompts %d", res, len(s.prompts))
	}
	if p := text(s.prompts[1]); !strings.HasSuffix(p, "Just thinking.<|end|><|start|>assistant") {
		t.Errorf("%s", p)
	}
	m, s = scripted("<|channel|>analysis<|message|>Just thinking.<|return|>", "<|return|>")
	if _, res = run(t, m, Request{Messages: []Message{User("x")}}); len(s.prompts) != 2 ||
		res.Done.Finish != FinishStop {
		t.Errorf("%d prompts, %+v", len(s.prompts), res.Done)
	}
}

func TestCutAnswerKeepsWhatWasSaid(t *testing.T) {
	m, _ := scripted("<|channel|>final<|message|>half an[length]")
	_, res := run(t, m, Request{Messages: []Message{User("x")}})
	if res.Done.Finish != FinishLength || res.Answer != "half an" || len(res.Messages) != 1 ||
		res.Messages[0].Text() != "half an" {
		t.Errorf("%+v", res)
	}
}

func TestCancelledTurn(t *testing.T) {
	m, _ := scripted("<|channel|>final<|message|>a b c d e f<|return|>")
	ctx, cancel := context.WithCancel(context.Background())
	turn := hosttest.Must(m.Start(ctx,
		Request{Messages: []Message{User("x")}, Params: sample.Defaults()}))(t)
	turn.Next()
	cancel()
	for _, ok := turn.Next(); ok; _, ok = turn.Next() {
	}
	if f := turn.Result().Done.Finish; f != FinishCancelled {
		t.Errorf("%s", f)
	}
}

func TestBadEffortIsRefused(t *testing.T) {
	m, _ := scripted()
	_, err := m.Start(context.Background(), Request{Effort: "huge"})
	if e, ok := err.(*RequestError); !ok || e.Param != "effort" {
		t.Errorf("%v", err)
	}
}

// Whatever ids come, a turn ends in one Done and shows no special token.
func FuzzTurn(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	f.Add([]byte{2, 12, 4, 9, 3, 1, 2, 13, 4, 9, 5})
	ids := []int32{token.Start, token.End, token.Channel, token.Constrain, token.Message,
		token.Return, token.Call, token.EndOfText, 200017, 201087}
	for _, w := range []string{"assistant", "analysis", "final", "commentary", " to=functions.f",
		"json", "{}", " ", "é", "hello"} {
		ids = append(ids, token.Get().Encode(nil, w)...)
	}
	f.Fuzz(func(t *testing.T, seq []byte) {
		m, _ := scripted()
		tries := 0
		m.submit = func(ctx context.Context, r sched.TokenRequest) (TokenStream, error) {
			tries++
			out := append([]int32{}, forcedBy(r)...)
			for _, b := range seq {
				out = append(out, ids[int(b)%len(ids)])
			}
			return &scriptStream{ctx: ctx, ids: out, finish: sched.FinishStop}, nil
		}
		events, _ := run(t, m, Request{Messages: []Message{User("x")},
			Stop: []string{"hellohello"}})
		if strings.Contains(events, "<|") || tries > 2 {
			t.Errorf("%d tries, events %s", tries, events)
		}
	})
}
