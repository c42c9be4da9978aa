package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/openai/scripttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// open is a model over fakes.
func open(t *testing.T, notes *[]string, fakes ...*fake) (*session.Model, *Pool) {
	t.Helper()
	o := Options{Model: "openai/gpt-oss-20b", Check: 10 * time.Millisecond}
	for _, f := range fakes {
		o.URLs = append(o.URLs, f.URL)
	}
	if notes != nil {
		var mu sync.Mutex
		o.Notify = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			*notes = append(*notes, text)
		}
	}
	p, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	m := session.NewModel(p, session.Options{ID: "20b",
		Scheduler: sched.Options{Settings: engine.Settings{MaxModelLen: p.Context()}}})
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, p
}

// say runs a turn to its end.
func say(t *testing.T, m session.Runner, r session.Request) session.Result {
	t.Helper()
	turn, err := m.Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := turn.Next(); !ok {
			return turn.Result()
		}
	}
}

func user(text string) session.Request {
	r := session.Request{Messages: []session.Message{session.User(text)}, Date: "2026-11-23",
		Params: sample.Params{Temperature: 1, TopP: 1, Logprobs: -1}}
	return r
}

func schemaOf(t *testing.T, text string) *grammar.Grammar {
	t.Helper()
	g, err := schema.Compile(t.Context(), []byte(text), false)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// outcome is the part of a result that must not depend on where it was computed.
func outcome(r session.Result) string {
	for i := range r.Calls {
		r.Calls[i].ID = ""
	}
	return fmt.Sprintf("%q %q %q %v %v %v %d+%d %v %v", r.Reasoning, r.Commentary, r.Answer, r.Calls,
		r.Done.Finish, r.Done.StopString, r.Done.Usage.Prompt, r.Done.Usage.Completion, r.Tokens,
		r.Done.Faults)
}

var weather = harmony.ToolDescription{Name: "get_weather", Description: "Tells the weather.",
	Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},` +
		`"days":{"type":"integer"}},"required":["city","days"],"additionalProperties":false}`)}

// requests are turns of all kinds.
func requests(t *testing.T) map[string]session.Request {
	long := "[[think " + strings.Repeat("so and so ", 50) + "]] [[say " +
		strings.Repeat("and on ", 100) + "]]"
	list := map[string]session.Request{
		"answer": user("[[say Hello there.]]"), "thought": user("[[think Hm.]] [[say Yes.]]"),
		"long": user(long), "loop": user("[[loop again ]]"), "NaN": user("[[think a b]] [[fail]]"),
	}
	with := func(name, text string, change func(*session.Request)) {
		r := user(text)
		change(&r)
		list[name] = r
	}
	offered := func(r *session.Request) { r.Functions = []harmony.ToolDescription{weather} }
	with("call", `[[think a]] [[call get_weather {"city":"Paris","days":2}]]`, offered)
	with("bad arguments", `[[call get_weather {"town":"Paris"}]]`, func(r *session.Request) {
		offered(r)
		r.Strict = []string{"get_weather"}
	})
	with("required", "[[say No.]]", func(r *session.Request) {
		offered(r)
		r.ToolChoice = grammar.Required
	})
	with("none", `[[call get_weather {"city":"Paris","days":2}]]`, func(r *session.Request) {
		offered(r)
		r.ToolChoice = grammar.None
	})
	with("form", "[[think Hm.]] [[say Certainly! It is 17.]]", func(r *session.Request) {
		r.Final = schemaOf(t, `{"type":"object","properties":{"n":{"type":"integer"},"why":`+
			`{"enum":["because","so"]}},"required":["n","why"],"additionalProperties":false}`)
	})
	with("no reasoning", "[[think Hm.]] [[say Yes.]]", func(r *session.Request) {
		r.MaxReasoning = -1
	})
	with("little reasoning", long, func(r *session.Request) { r.MaxReasoning = 20 })
	with("short", long, func(r *session.Request) { r.MaxTokens = 30 })
	with("stop", "[[say one two three]]", func(r *session.Request) { r.Stop = []string{" two"} })
	with("stop token", "[[say one two three]]", func(r *session.Request) {
		r.StopTokens = []int32{1920} // " two"
	})
	with("no end", "[[say one]]", func(r *session.Request) {
		r.Params.IgnoreEOS, r.MaxTokens = true, 40
	})
	with("logprobs", "[[think Hm.]] [[say one two]]", func(r *session.Request) {
		r.Params.Logprobs = 3
	})
	with("text", "", func(r *session.Request) {
		*r = session.Request{Prompt: []int32{1, 2, 3}, MaxTokens: 12, Params: r.Params}
	})
	return list
}

// A turn over servers is the turn that it would be here, the grammar's part included, with servers
// of both ways to say ids, and of those that sample under rules, ignore them, and refuse them.
func TestAsHere(t *testing.T) {
	here := scripttest.New(0, nil)
	defer here.Close()
	fresh, old, refusing, failing := newFake(t), newFake(t), newFake(t), newFake(t)
	old.old, old.rules, refusing.rules = true, "ignored", "refused"
	failing.rules, failing.fails = "refused", 500
	over, _ := open(t, nil, fresh)
	overOld, _ := open(t, nil, old)
	overRefusing, _ := open(t, nil, refusing)
	overFailing, _ := open(t, nil, failing)
	for name, r := range requests(t) {
		want := say(t, here, r)
		for kind, m := range map[string]session.Runner{"": over, " (old)": overOld,
			" (refusing)": overRefusing, " (failing)": overFailing} {
			got := say(t, m, r)
			if outcome(got) != outcome(want) {
				t.Errorf("%s%s:\n%s, here\n%s", name, kind, outcome(got), outcome(want))
			}
			if !reflect.DeepEqual(got.Messages, want.Messages) && len(got.Calls) == 0 {
				t.Errorf("%s%s: %v, here %v", name, kind, got.Messages, want.Messages)
			}
			if (got.Done.Err == nil) != (want.Done.Err == nil) {
				t.Errorf("%s%s: %v, here %v", name, kind, got.Done.Err, want.Done.Err)
			}
		}
	}
	named, banned := 0, 0
	for _, q := range old.requests() {
		named += min(len(q.Only), 1)
		if q.Structured.Grammar == "" {
			banned += min(len(q.Bias), 1)
		}
		if q.Max != 1 && len(q.Only) > 0 {
			t.Errorf("%d tokens are asked for among %d", q.Max, len(q.Only))
		}
	}
	for f, want := range map[*fake]int{fresh: 130, old: 229, refusing: 239, failing: 239} {
		if n := len(f.requests()); n != want {
			t.Errorf("%d requests for all turns, not %d", n, want)
		}
	}
	if named == 0 || banned == 0 {
		t.Errorf("%d places were sampled again among named tokens, %d without some", named, banned)
	}
}

// A server that samples under rules is asked once for the reasoning and once for the body: of an
// answer in a form, of a call whose token for the end is another one, and of a text.
func TestRulesSaveRequests(t *testing.T) {
	all := requests(t)
	form := `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},` +
		`"required":["n","s"],"additionalProperties":false}`
	answer := user(`[[think Hm.]] [[say {"n":17,"s":"aé"}]]`)
	answer.Final = schemaOf(t, form)
	for name, r := range map[string]session.Request{"answer": answer, "call": all["call"],
		"bad arguments": all["bad arguments"]} {
		f := newFake(t)
		m, _ := open(t, nil, f)
		opening := len(f.requests())
		got := say(t, m, r)
		if got.Answer+fmt.Sprint(got.Calls) == "[]" {
			t.Errorf("%s: %+v", name, got)
		}
		list := f.requests()[opening:]
		for _, q := range list[:len(list)-1] {
			if q.Structured.Grammar != "" {
				t.Errorf("%s: rules before the last request", name)
			}
		}
		last := list[len(list)-1]
		if len(list) > 3 || last.Structured.Grammar == "" || len(last.Stop) != 1 {
			t.Errorf("%s: %d requests, the last with stops %v and rules %s", name, len(list),
				last.Stop, last.Structured.Grammar)
		}
	}
}

// Logprobs come through, of the answer and of the prompt.
func TestLogprobs(t *testing.T) {
	for _, old := range []bool{false, true} {
		f := newFake(t)
		f.old = old
		m, _ := open(t, nil, f)
		r := user("[[say one two]]")
		r.Params.Logprobs, r.ScorePrompt, r.PromptTop = 2, true, 1
		turn, err := m.Start(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var scored []session.TokenLogprob
		var answer []session.TokenLogprob
		for {
			e, ok := turn.Next()
			if !ok {
				break
			}
			switch e := e.(type) {
			case session.PromptScored:
				scored = e.Logprobs
			case session.Answer:
				answer = append(answer, e.Logprobs...)
			}
		}
		res := turn.Result()
		if len(scored) != len(res.Prompt) || scored[0].Logprob != 0 || scored[1].Logprob != -3.5 ||
			len(scored[1].Top) != 1 || scored[1].Top[0].Logprob != -.5 {
			t.Errorf("of the prompt: %+v", scored[:2])
		}
		if len(answer) != 2 || answer[1].Token != " two" || answer[1].Logprob != -.01 ||
			len(answer[1].Top) != 2 || answer[1].Top[0].ID != answer[1].ID {
			t.Errorf("of the answer: %+v", answer)
		}
	}
}

// A server that disconnects, sends invalid answers, or fails, is replaced by another, and the turn
// continues after its tokens so far.
func TestServersThatBreakOff(t *testing.T) {
	for name, text := range map[string]string{"cut": "cut", "end": `{"choices":[]}`,
		"no JSON": "{", "no token": `{"choices":[{"token_ids":[900000]}]}`,
		"error":   `{"error":{"message":"CUDA"}}`,
		"aborted": `{"choices":[{"token_ids":[],"finish_reason":"abort"}]}`} {
		t.Run(name, func(t *testing.T) {
			bad, good := newFake(t), newFake(t)
			bad.spoil = func(tokens int) string {
				if tokens == 7 {
					return text
				}
				return ""
			}
			var notes []string
			m, p := open(t, &notes, bad, good)
			for range 4 {
				answer := strings.Repeat("and on ", 40) + "and on"
				got := say(t, m, user("[[think Well.]] [[say "+answer+"]]"))
				if got.Answer != answer || got.Done.Finish != session.FinishStop {
					t.Errorf("%q, %+v", got.Answer, got.Done)
				}
			}
			hosttest.Until(t, "the server is taken in again", func() bool { return p.up() == 2 })
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if name == "error" { // it may be the request's own
				if len(notes) > 0 {
					t.Error(notes)
				}
				return
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, bad.URL+" is no longer used: ") ||
				!strings.Contains(all, bad.URL+" answers again") || strings.Contains(all, good.URL) {
				t.Error(all)
			}
		})
	}
}

func TestBusy(t *testing.T) {
	a, b := newFake(t), newFake(t)
	m, p := open(t, nil, a, b)
	a.busy = 1
	if got := say(t, m, user("[[say Yes.]]")); got.Answer != "Yes." {
		t.Errorf("%+v", got)
	}
	a.set(func() { a.busy = 1 })
	b.set(func() { b.busy = 1 })
	_, err := m.Start(t.Context(), user("[[say Yes.]]"))
	var busy *session.BusyError
	if !errors.As(err, &busy) || busy.RetryAfter != 7*time.Second {
		t.Error(err)
	}
	if all, up := len(p.list), p.up(); all != 2 || up != 2 {
		t.Errorf("%d of %d are up", up, all)
	}
}

func TestTooLong(t *testing.T) {
	m, p := open(t, nil, newFake(t))
	if p.Context() != 16384 {
		t.Error(p.Context())
	}
	r := session.Request{Prompt: make([]int32, 16384), MaxTokens: 1,
		Params: sample.Params{Logprobs: -1}}
	_, err := m.Start(t.Context(), r)
	var long *sched.ContextLengthError
	if !errors.As(err, &long) || long.Max != 16384 || long.Needed != 16385 {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	r.Prompt = r.Prompt[:5]
	if _, err := m.Start(t.Context(), r); !errors.Is(err, sched.ErrClosed) {
		t.Error(err)
	}
}

// The turns of a conversation go where its beginning is; other conversations go elsewhere.
func TestAffinity(t *testing.T) {
	fakes := []*fake{newFake(t), newFake(t), newFake(t)}
	m, _ := open(t, nil, fakes...)
	const talks, turns = 12, 4
	histories := make([][]session.Message, talks)
	for turn := range turns {
		for talk := range histories {
			h := &histories[talk]
			*h = append(*h, session.User(fmt.Sprintf("Talk %d. %s [[say %d.]]", talk,
				strings.Repeat("More words. ", 100), turn)))
			r := user("")
			r.Messages = *h
			r.Instructions = fmt.Sprint("You are in talk ", talk, ".")
			got := say(t, m, r)
			*h = append(*h, got.Messages...)
		}
	}
	where := map[string]map[int]int{} // talk -> fake -> turns
	for i, f := range fakes {
		n := 0
		for _, q := range f.requests() {
			if !q.Stream {
				continue
			}
			n++
			key := fmt.Sprint(q.Prompt[40:120])
			if where[key] == nil {
				where[key] = map[int]int{}
			}
			where[key][i]++
		}
		if n < turns*talks/6 {
			t.Errorf("server %d got %d of %d turns", i, n, turns*talks)
		}
	}
	if len(where) != talks {
		t.Fatalf("%d talks", len(where))
	}
	for _, fakes := range where {
		if len(fakes) != 1 {
			t.Errorf("the turns of a talk went to %v", fakes)
		}
	}
}

// The servers keep prompts apart as this program does.
func TestSalt(t *testing.T) {
	f := newFake(t)
	m, _ := open(t, nil, f)
	for _, salt := range []string{"", "192.168.7.2\n", "\na"} {
		before := len(f.requests())
		r := user("[[say Fine.]]")
		r.Salt = salt
		say(t, m, r)
		say(t, m, session.Request{Prompt: []int32{1, 2, 3}, ScorePrompt: true, MaxTokens: 1,
			Salt: salt})
		list := f.requests()[before:]
		if len(list) < 2 {
			t.Errorf("%q: %d requests", salt, len(list))
		}
		for _, q := range list {
			if q.Salt != salt {
				t.Errorf("%q was sent as %q", salt, q.Salt)
			}
		}
	}
}

// One of two servers is killed under load: no turn is lost, whether it had begun to stream or not.
func TestKilledUnderLoad(t *testing.T) {
	killed, other := newFake(t), newFake(t)
	m, _ := open(t, nil, killed, other)
	var turns sync.WaitGroup
	for i := range 64 {
		turns.Go(func() {
			for round := range 3 {
				text := fmt.Sprintf("%d %d %s", i, round, strings.Repeat("and on ", 100)+".")
				turn, err := m.Start(t.Context(), user("[[slow 1ms]] [[say "+text+"]]"))
				if err != nil {
					t.Error(err)
					return
				}
				for ok := true; ok; {
					_, ok = turn.Next()
				}
				if got := turn.Result(); got.Answer != text {
					t.Errorf("%q, %+v", got.Answer, got.Done)
				}
			}
		})
	}
	hosttest.Until(t, "many run", func() bool { return len(killed.requests()) >= 40 })
	killed.set(func() { killed.down = true })
	killed.CloseClientConnections()
	turns.Wait()
}

func TestCancel(t *testing.T) {
	m, p := open(t, nil, newFake(t))
	ctx, cancel := context.WithCancel(t.Context())
	turn, err := m.Start(ctx, user("[[loop more ]]"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		turn.Next()
	}
	cancel()
	for ok := true; ok; {
		_, ok = turn.Next()
	}
	if d := turn.Result().Done; d.Finish != session.FinishCancelled {
		t.Errorf("%+v", d)
	}
	if st := p.Stats(); st.Running != 0 || st.Cancelled != 1 || st.GeneratedTokens == 0 {
		t.Errorf("%+v", st)
	}
}

// However an answer ends, it runs no longer, here and at the server, though its client stays.
func TestEndedAnswersDoNotRun(t *testing.T) {
	f := newFake(t)
	m, p := open(t, nil, f)
	list := requests(t)
	list["loop in a form"] = user("[[loop again ]]")
	list["first token"] = user("[[say one two three]]")
	for name, change := range map[string]func(*session.Request){
		"loop in a form": func(r *session.Request) { r.Final = schemaOf(t, `{"type":"string"}`) },
		"first token":    func(r *session.Request) { r.Stop = []string{"one"} },
	} {
		r := list[name]
		change(&r)
		list[name] = r
	}
	for name, r := range list {
		say(t, m, r)
		hosttest.Until(t, name+" runs no longer", func() bool {
			here, there := p.Stats(), f.sched.Stats()
			return here.Running == 0 && there.Running == 0 && there.Waiting == 0
		})
	}
	if st := p.Stats(); st.Stopped+st.Length+st.Cancelled+st.Failed < uint64(len(list)) {
		t.Errorf("%d answers, of which %+v are counted", len(list), st.Counts)
	}
}

func TestTable(t *testing.T) {
	a := newAffinity()
	first, second := &server{}, &server{}
	ids := make([]int32, 1000)
	a.add(ids[:300], first)
	a.add(ids[:600], second)
	if got := a.find(ids); got != second {
		t.Error("the last one to get the longest beginning is not found")
	}
	ids[50] = 1
	if a.find(ids) != nil {
		t.Error("another beginning is found")
	}
	for i := range int32(3 * maxBlocks) {
		a.add(slices.Repeat([]int32{i}, block), first)
	}
	if n := len(a.recent) + len(a.old); n > 2*maxBlocks || a.find(make([]int32, 1000)) != nil {
		t.Errorf("%d blocks are known", n)
	}
	a.remove(first)
	if n := len(a.recent) + len(a.old); n != 0 {
		t.Errorf("%d are left", n)
	}
}
