package eval

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/remote/client"
)

// sums are questions that a scripted server can answer: 0+0, 1+1, ...
func sums(n int) []Question {
	var list []Question
	for i := range n {
		list = append(list, Question{ID: fmt.Sprint(i + 1), Text: fmt.Sprintf("%d plus %d?", i, i),
			Answer: fmt.Sprint(2 * i)})
	}
	return list
}

// adds knows the first known sums; more at higher effort.
func adds(text, effort string) string {
	var a, b int
	_, _ = fmt.Sscanf(text, "%d plus %d?", &a, &b)
	known := map[string]int{"low": 3, "medium": 6, "high": 9}[effort]
	if a >= known {
		return "I do not know."
	}
	return fmt.Sprintf(`%d and %d make \boxed{%d}.`, a, b, a+b)
}

// An exact score, whatever the API; what the server is too busy for is asked again.
func TestScores(t *testing.T) {
	for _, api := range []API{Responses, Chat} {
		s := &scripted{reply: adds, busy: 5}
		r := Run{Eval: AIME25, Questions: sums(10), Efforts: []string{"low", "high"}, Attempts: 4,
			Threads: 3, Sampler: s.sampler(t, api)}
		attempts := hosttest.Must(r.Do(t.Context()))(t)
		scores := Scores(r.Efforts, attempts)
		low, high := scores[0], scores[1]
		if low.Percent != 30 || high.Percent != 90 || low.Attempts != 40 || low.Correct != 12 ||
			low.NoAnswer != 28 || low.Failed != 0 || low.OutputTokens != 7 ||
			low.ReasoningTokens != 3 || low.Questions != 10 {
			t.Errorf("%s: %+v", api, scores)
		}
		// 10 questions of which 3 are always right: 100*sqrt(.3*.7*10/9)/sqrt(10)
		if want := 1.96 * 100 * math.Sqrt(.3*.7*10/9) / math.Sqrt(10); math.Abs(
			low.HalfWidth-want) > 1e-9 {
			t.Errorf("±%v, not %v", low.HalfWidth, want)
		}
	}
}

// A journal of the release before versions is gone on with, which goes on with ours; one of a newer
// release is refused and stays as it is.
func TestJournalsOfOtherReleases(t *testing.T) {
	text := hosttest.Must(os.ReadFile("../../../testdata/versions/eval.jsonl"))(t)
	s := &scripted{reply: adds}
	r := Run{Eval: AIME25, Questions: sums(4), Efforts: []string{"low"}, Attempts: 3, Threads: 1,
		Sampler: s.sampler(t, Responses), Journal: filepath.Join(t.TempDir(), "results.jsonl")}
	hosttest.Check(t, os.WriteFile(r.Journal, text, 0o600))
	attempts, err := r.Do(t.Context())
	if err != nil || s.seen != 4 || len(attempts) != 12 || Scores(r.Efforts, attempts)[0].Percent !=
		75 {
		t.Errorf("%d asked, %v, %+v", s.seen, err, Scores(r.Efforts, attempts))
	}
	text, err = os.ReadFile(r.Journal)
	if n := bytes.Count(text, []byte(`{"version":1,"eval":`)); err != nil || n != 4 {
		t.Errorf("%d lines have a version, %v\n%s", n, err, text)
	}
	newer := string(text) + `{"version":2,"eval":["in another form"]}` + "\ncut"
	hosttest.Check(t, os.WriteFile(r.Journal, []byte(newer), 0o600))
	if _, err := r.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "line 13 is no "+
		"result of this: a newer ossrun wrote it, in version 2, and this one knows version 1") {
		t.Errorf("%v", err)
	}
	if is, err := os.ReadFile(r.Journal); err != nil || string(is) != newer {
		t.Errorf("the newer journal is another: %v", err)
	}
}

// An interrupted run that is started again ends with the same scores, and asks nothing twice.
func TestResume(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "results.jsonl")
	s := &scripted{reply: adds}
	r := Run{Eval: AIME25, Questions: sums(10), Efforts: []string{"low", "medium"}, Attempts: 3,
		Threads: 2, Sampler: s.sampler(t, Responses), Journal: journal}
	ctx, stop := context.WithCancel(t.Context())
	r.Progress = func(done, total, _ int) {
		if total != 60 {
			t.Errorf("%d attempts", total)
		}
		if done == 17 {
			stop()
		}
	}
	if _, err := r.Do(ctx); err == nil {
		t.Fatal("it was not interrupted")
	}
	text, err := os.ReadFile(journal)
	kept := bytes.Count(text, []byte("\n"))
	if err != nil || kept < 17 || kept > 20 {
		t.Fatalf("%d attempts are kept, %v", kept, err)
	}
	// as a power cut leaves it
	hosttest.Check(t, os.WriteFile(journal, append(text, `{"eval":"ai`...), 0o600))
	// another server: a request that was cancelled may still be on its way to the first
	next := &scripted{reply: adds}
	r.Progress, r.Sampler = nil, next.sampler(t, Responses)
	attempts, err := r.Do(t.Context())
	if err != nil || next.seen != 60-kept {
		t.Fatalf("%v; %d asked after %d kept", err, next.seen, kept)
	}
	fresh := r
	fresh.Journal = ""
	again := hosttest.Must(fresh.Do(t.Context()))(t)
	timeless := func(list []Score) []Score {
		for i := range list {
			list[i].Seconds = 0
		}
		return list
	}
	got, want := timeless(Scores(r.Efforts, attempts)), timeless(Scores(r.Efforts, again))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, in one go %+v", got, want)
	}
	hosttest.Check(t, os.WriteFile(journal, []byte("what?\n"), 0o600))
	if _, err := r.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Error(err)
	}
}

// What a server refuses is no answer, is in no figure, and is asked again by the next run.
func TestRefusals(t *testing.T) {
	s := &scripted{reply: adds, spoil: func(m *client.Message) {
		if strings.Contains(m.Content, "know") {
			m.Role = "refuse"
		}
	}}
	r := Run{Eval: AIME25, Questions: sums(4), Efforts: []string{"low"}, Attempts: 1, Threads: 1,
		Sampler: s.sampler(t, Chat), Journal: filepath.Join(t.TempDir(), "r")}
	for range 2 {
		attempts := hosttest.Must(r.Do(t.Context()))(t)
		score := Scores(r.Efforts, attempts)[0]
		if score.Failed != 1 || score.Attempts != 3 || score.Percent != 100 {
			t.Errorf("%+v", score)
		}
	}
	if s.seen != 5 {
		t.Errorf("%d requests", s.seen)
	}
}

func TestReadQuestions(t *testing.T) {
	const table = "\ufeffRecord ID,Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2," +
		"Incorrect Answer 3\nx,\"Which,\nof these?\",yes,no 1,no 2,no 3\n"
	list, err := ReadQuestions(GPQA, []byte(table))
	want := Question{ID: "1", Text: "Which,\nof these?", Choices: []string{"yes", "no 1", "no 2",
		"no 3"}, Answer: "yes"}
	if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], want) {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, text := range []string{`{"question":"1+1?","answer":"2"}` + "\n" +
		`{"problem":"2+2?","answer":4}`, `[{"question":"1+1?","answer":2},{"Problem":"2+2?",` +
		`"Answer":"004"}]`, "problem,answer\n1+1?,2\n2+2?,4\n"} {
		list, err := ReadQuestions(AIME25, []byte(text))
		if err != nil || len(list) != 2 || list[0].Answer != "2" || list[1].Text != "2+2?" ||
			list[1].Answer != "4" {
			t.Errorf("%s: %+v, %v", text, list, err)
		}
	}
	for text, want := range map[string]string{"": "no questions", "a,b\n1,2\n": "question 1",
		`{"question":"x","answer":"y"}`: "integer", "{": "JSON", "\"": "CSV"} {
		if list, err := ReadQuestions(AIME25, []byte(text)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", text, list, err)
		}
	}
}

// Every order of the choices comes about equally often, and the right letter goes with it.
func TestShuffle(t *testing.T) {
	q := Question{ID: "7", Text: "Which?", Choices: []string{"right", "w1", "w2", "w3"}}
	orders, letter := map[string]int{}, map[string]int{}
	for n := range 4800 {
		text, wanted := q.ask(1, n)
		if !strings.Contains(text, "\n"+wanted+") right\n") &&
			!strings.Contains(text, "\n"+wanted+") right\n\n") {
			t.Fatalf("%s is said to be right in\n%s", wanted, text)
		}
		orders[text]++
		letter[wanted]++
		if again, _ := q.ask(1, n); again != text {
			t.Fatal("another order for the same attempt")
		}
	}
	if len(orders) != 24 {
		t.Errorf("%d orders", len(orders))
	}
	for l, n := range letter {
		if n < 1050 || n > 1350 {
			t.Errorf("%s is right %d times of 4,800", l, n)
		}
	}
}

func TestReadLetters(t *testing.T) {
	q := Question{Choices: []string{"1", "2", "3", "4"}}
	for reply, want := range map[string]string{
		"Answer: C": "C", "**Answer:** B": "B", "Answer: **D**": "D", "answer is (a).": "A",
		"The answer is option B, since A is wrong.": "B", "Answer: $\\boxed{\\text{C}}$": "C",
		"so \\boxed{D}": "D", "\\boxed{(B)}": "B", "I choose option A": "A",
		"A) is wrong, B) is right.\nAnswer: B": "B", "reasoning\n\nC": "C", "**C**": "C",
		"C) 5 metres": "C", "Answer: A\nNo, wait.\nAnswer: D": "D", "Answer - C": "",
		"All Because Cats Dance": "", "": "", "The final answer is: $\\boxed{A}$": "A",
		"A good question. Final answer: D": "D",
	} {
		if got := q.read(reply); got != want {
			t.Errorf("%q: %q, not %q", reply, got, want)
		}
	}
}

func TestReadIntegers(t *testing.T) {
	var q Question
	for reply, want := range map[string]string{
		`\boxed{204}`: "204", `first \boxed{3}, then \boxed{\text{ 17 }}`: "17",
		`\boxed{1,024}`: "1024", "The answer is 042.": "42", "12 apples and 7": "7",
		"none": "", `\boxed{x} 5`: "", `\fbox{9}`: "9", "-5": "-5",
		"99999999999999999999999": "",
	} {
		if got := q.read(reply); got != want {
			t.Errorf("%q: %q, not %q", reply, got, want)
		}
	}
}

func TestPublished(t *testing.T) {
	n := 0
	for _, model := range []string{"20b", "120b"} {
		for _, eval := range []string{GPQA, AIME25} {
			last := 0.0
			for _, effort := range []string{"low", "medium", "high"} {
				p, ok := Published[model][eval][effort]
				if !ok || p <= last {
					t.Errorf("%s %s %s: %v", model, eval, effort, p)
				}
				last = p
				n++
			}
		}
	}
	if _, ok := Published["demo"][GPQA]["low"]; ok || n != 12 {
		t.Error(n)
	}
}

func TestCompat(t *testing.T) {
	if len(cases().Tasks) != 30 || len(cases().Tools) != 6 {
		t.Fatalf("%d tasks, %d tools", len(cases().Tasks), len(cases().Tools))
	}
	for _, stream := range []bool{false, true} {
		for _, api := range []API{Responses, Chat} {
			s := &scripted{}
			row := Compat(t.Context(), s.sampler(t, api), stream, 2, 4, func() {})
			if row.Passed != 60 || row.Invalid != 0 || row.PassAtK < .9999 ||
				row.PassAllK < .9999 || s.seen != 120 {
				t.Errorf("%+v after %d requests", row, s.seen)
			}
		}
	}
}

// A server's faults are found over both APIs, streamed or not.
func TestCompatFaults(t *testing.T) {
	first := func(change func(c *client.Call)) func(m *client.Message) {
		return func(m *client.Message) {
			if len(m.Calls) > 0 {
				change(&m.Calls[0])
			}
		}
	}
	for want, spoil := range map[string]func(m *client.Message){
		"mark of Harmony in the text":      func(m *client.Message) { m.Content = "x<|call|>" },
		"mark of Harmony in the reasoning": func(m *client.Message) { m.Reasoning = "assistantcommentary" },
		"no reasoning":                     func(m *client.Message) { m.Reasoning = "" },
		"no tool was called":               func(m *client.Message) { m.Calls, m.Content = nil, "hi" },
		"neither text nor a call":          func(m *client.Message) { m.Calls = nil; m.Content = "" },
		"not offered":                      first(func(c *client.Call) { c.Function.Name += "<|channel|>" }),
		"not JSON":                         first(func(c *client.Call) { c.Function.Arguments = `{"a":` }),
		"break the schema":                 first(func(c *client.Call) { c.Function.Arguments = `{}` }),
		"without an id":                    first(func(c *client.Call) { c.ID = "" }),
		"the first request: ":              func(m *client.Message) { m.Role = "refuse" },
		"the second request: ": func(m *client.Message) {
			if len(m.Calls) == 0 {
				m.Role = "refuse"
			}
		},
		"the second turn: ": func(m *client.Message) {
			if len(m.Calls) == 0 {
				m.Content = "<|end|>"
			}
		},
	} {
		for _, stream := range []bool{false, true} {
			for _, api := range []API{Responses, Chat} {
				s := &scripted{spoil: spoil}
				row := Compat(t.Context(), s.sampler(t, api), stream, 1, 4, func() {})
				why := ""
				for text := range row.Why {
					why = text
				}
				if row.Passed != 0 || !strings.Contains(why, want) ||
					(row.Invalid == 30) != strings.Contains(want, "request") {
					t.Errorf("%s, %s, stream %v: %+v", want, api, stream, row)
				}
			}
		}
	}
}

func TestJudge(t *testing.T) {
	at := slices.IndexFunc(cases().Tasks, func(k task) bool {
		return k.Tool == "query_orders" &&
			k.Expected["filter"] != nil
	})
	k := cases().Tasks[at]
	for arguments, want := range map[string]string{
		`{"status":"paid","filter":{"field":"total","above":500}}`:            "",
		`{"status":"PAID","filter":{"field":"total","above":500}}`:            "does not equal any of",
		`{"status":"paid","filter":{"field":"total","above":"500"}}`:          `has type "string", want "number"`,
		`{"status":"paid","filter":{"field":"total","above":400}}`:            "asked for: filter",
		`{"status":"paid","filter":{"above":500}}`:                            `missing properties: ["field"]`,
		`{"status":"paid","filter":{"field":"total","above":500,"x":1}}`:      `additional properties ["x"]`,
		`{"status":"paid","limit":1.5,"filter":{"field":"total","above":5}}`:  `want "integer"`,
		`{"status":"paid","limit":2e39,"filter":{"field":"total","above":5}}`: "asked for: filter",
		`{"status":"paid"}`: "asked for: filter", `[]`: "not a JSON object", `{"filter":{}}`: `["field"]`,
	} {
		if got := k.judge(arguments); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, not %q", arguments, got, want)
		}
	}
}

func TestCountFaults(t *testing.T) {
	n := 0
	s := &scripted{}
	s.spoil = func(m *client.Message) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n++; n%10 == 0 {
			m.Calls[0].Function.Name = "python<|constrain|>"
		}
	}
	f := CountFaults(t.Context(), s.sampler(t, Chat), true, 200, 5, func() {})
	if f.Turns != 200 || f.Faulty != 20 || f.PerMille != 100 || f.Failed != 0 || len(f.Why) != 1 {
		t.Errorf("%+v", f)
	}
}
