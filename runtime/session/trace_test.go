// Agents' conversations through the real scheduler over a simulated engine: the model's part is
// fixed, so the counters depend on the prompts and the cache only.

package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// acted is a model whose turns are given, on a scheduler that computes them.
type acted struct {
	*Model
	sched  *sched.Scheduler
	says   string // of the next turn
	prompt []int32
	cached int
	// prompt and answer of the turn before; all of it is computed, since the answer is fed
	last []int32
}

func act(t *testing.T, pages int) *acted {
	t.Helper()
	const rows = 512
	eng := simtest.New(pages, rows, token.VocabSize, 128)
	a := &acted{sched: sched.New(eng, sched.Options{Settings: engine.Settings{Pages: pages,
		MaxNumBatchedTokens: rows}})}
	t.Cleanup(func() {
		if st := a.sched.Stats(); st.PagesUsed != 0 {
			t.Errorf("%d pages are in use at the end", st.PagesUsed)
		}
		a.sched.Close()
	})
	a.Model = &Model{id: "acted", store: records.NewStore(), gate: NewGate()}
	a.submit = func(ctx context.Context, r sched.TokenRequest) (TokenStream, error) {
		a.prompt = r.Prompt
		r.Cuts = cuts(r.Prompt)
		r.Constraint = &simtest.Constraint{First: encode(a.says)}
		return a.sched.Submit(ctx, r)
	}
	return a
}

// turn plays one turn and counts what of its prompt was cached.
func (a *acted) turn(t *testing.T, history []Message, says string) Result {
	t.Helper()
	a.says = says
	_, res := run(t, a.Model, Request{Messages: history,
		Instructions: strings.Repeat("Be helpful to everyone. ", 20), Date: "2026-11-21"})
	a.cached = res.Done.Usage.Cached
	return res
}

// common is how much of the prompt the sequence of the turn before begins with too, as it is
// counted: in whole pages.
func (a *acted) common() int {
	n := 0
	for n < min(len(a.last), len(a.prompt)) && a.last[n] == a.prompt[n] {
		n++
	}
	return kv.WholePages(n)
}

func (a *acted) keep(res Result) {
	a.last = slices.Concat(a.prompt, res.Tokens)
}

func callOf(i int) string {
	return fmt.Sprintf(`<|channel|>analysis<|message|>Step %d needs a look at file %d.<|end|><|start|>assistant<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"file":%d}<|call|>`, i, i, i)
}

// Fifty calls and their results: no token is prefilled twice, though the client drops all
// reasoning.
func TestToolLoopPrefillsNothingTwice(t *testing.T) {
	a := act(t, 1024)
	history := []Message{User("Read the files, all of them.")}
	for i := range 50 {
		res := a.turn(t, history, callOf(i))
		if res.Done.Finish != FinishToolCalls || len(res.Calls) != 1 {
			t.Fatalf("turn %d ended %q with %d calls", i, res.Done.Finish, len(res.Calls))
		}
		if a.cached != kv.WholePages(len(a.last)) {
			t.Fatalf("turn %d: %d of a prompt of %d tokens are cached, %d were computed before", i,
				a.cached, len(a.prompt), len(a.last))
		}
		a.keep(res)
		id := res.Calls[0].ID
		history = append(history, FunctionCall(id, "read", fmt.Sprintf(`{"file":%d}`, i)),
			FunctionResult(id, "read", strings.Repeat(fmt.Sprint("line ", i, "\n"), i%7+1)))
	}
	st := a.sched.Stats()
	if got, want := st.Rows, uint64(len(a.last)); got != want || st.Rebuilt+st.Recomputed != 0 {
		t.Errorf("%d rows were computed for %d tokens, %+v", got, want, st.Counts)
	}
	if st.PrefixHits+st.Prefilled != st.PromptTokens || st.PrefixQueries != st.PromptTokens {
		t.Errorf("hits and prefilled tokens are not the prompts': %+v", st.Counts)
	}
}

// With finished turns between the loops, only what follows a dropped analysis is prefilled again.
func TestFinishedTurnsCostTheirAnswersAlone(t *testing.T) {
	a := act(t, 2048)
	var history []Message
	for i := range 12 {
		history = append(history, User(fmt.Sprintf("Question %d: what is in the files? %s", i,
			strings.Repeat("Please. ", i%5))))
		for j := range i % 3 {
			res := a.turn(t, history, callOf(10*i+j))
			a.check(t, res)
			id := res.Calls[0].ID
			history = append(history, FunctionCall(id, "read", fmt.Sprintf(`{"file":%d}`, 10*i+j)),
				FunctionResult(id, "read", "nothing"))
		}
		answer := fmt.Sprintf("Answer %d: %s", i, strings.Repeat("nothing at all. ", 10))
		res := a.turn(t, history, "<|channel|>analysis<|message|>"+strings.Repeat("Hm, let me "+
			"see. ", 20)+"<|end|><|start|>assistant<|channel|>final<|message|>"+answer+"<|return|>")
		a.check(t, res)
		history = append(history, AssistantAnswer(answer))
	}
	if st := a.sched.Stats(); st.Rebuilt+st.Recomputed != 0 {
		t.Errorf("window pages at the cuts were not kept: %+v", st.Counts)
	}
}

// check holds a turn to it that everything it shares with the one before was cached.
func (a *acted) check(t *testing.T, res Result) {
	t.Helper()
	if want := a.common(); a.cached != want {
		t.Fatalf("%d tokens are cached, %d of %d are those of the turn before: %q", a.cached, want,
			len(a.prompt), text(a.prompt[min(a.cached, want):]))
	}
	a.keep(res)
}

// Two conversations share the system and developer messages' pages, and no more pages are used for
// them.
func TestConversationsShareTheirBeginning(t *testing.T) {
	a := act(t, 1024)
	a.turn(t, []Message{User("The first one.")}, "<|channel|>final<|message|>Yes.<|return|>")
	first := slices.Clone(a.prompt)
	a.turn(t, []Message{User("Another one.")}, "<|channel|>final<|message|>Yes.<|return|>")
	a.last = first
	if want := a.common(); a.cached != want || want < 96 {
		t.Errorf("%d tokens are shared, %d are cached", want, a.cached)
	}
}

// A header that a client changes with every request does not change the prompt.
func TestBillingHeaderIsNotSeen(t *testing.T) {
	a := act(t, 1024)
	ask := func(header string) {
		a.says = "<|channel|>final<|message|>Yes.<|return|>"
		_, res := run(t, a.Model, Request{Messages: []Message{Developer(header + "More rules."),
			User("Hello")}, Date: "2026-11-21",
			Instructions: header + "You are a coding agent. " + strings.Repeat("Rules. ", 50)})
		a.cached = res.Done.Usage.Cached
	}
	ask("x-anthropic-billing-header: cc_version=2.1.15.abc; cc_entrypoint=cli; cch=00001;\n")
	ask("x-anthropic-billing-header: cc_version=2.1.15.abd; cc_entrypoint=cli; cch=fe00f;\n")
	if a.cached != kv.WholePages(len(a.prompt)) {
		t.Errorf("%d of %d tokens are cached", a.cached, len(a.prompt))
	}
	if p := text(a.prompt); strings.Contains(p, "billing") || !strings.Contains(p,
		"You are a coding agent. Rules.") || !strings.Contains(p, "More rules.") {
		t.Errorf("the prompt is %s", p)
	}
	for in, want := range map[string]string{
		"x-anthropic-billing-header: cc_version=1; cch=1;You are": "You are",
		"X-Anthropic-Billing-Header: cch=1\nrest":                 "rest",
		"a\nx-anthropic-billing-header: cc_version=1; cch=2;\nb":  "a\nb",
		"what does x-anthropic-billing-header: cch=1; mean?": "what does " +
			"x-anthropic-billing-header: cch=1; mean?",
		"x-anthropic-billing-header:\n\nrest": "\nrest",
		"nothing here":                        "nothing here",
		"x-anthropic-billing-header: cc_version=1.2; cch=ab cd; rest": " cd; rest",
	} {
		if got := withoutBilling(in); got != want && !(strings.HasPrefix(want, " ") &&
			got == strings.TrimLeft(want, " ")) {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}

func TestCuts(t *testing.T) {
	p := encode("<|start|>system<|message|>a<|end|><|start|>developer<|message|>b<|end|><|start|>user<|message|>c<|end|>" +
		"<|start|>assistant<|channel|>analysis<|message|>d<|end|><|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>" +
		"<|start|>functions.f " +
		"to=assistant<|channel|>commentary<|message|>e<|end|><|start|>assistant")
	var got []string
	for _, at := range cuts(p) {
		got = append(got, text(p[:at])[max(0, len(text(p[:at]))-20):])
	}
	want := []string{"m<|message|>a<|end|>", "r<|message|>b<|end|>", "r<|message|>c<|end|>",
		"y<|message|>e<|end|>"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if cuts(nil) != nil || cuts(encode("<|start|>")) != nil {
		t.Error("cuts in nothing")
	}
}
