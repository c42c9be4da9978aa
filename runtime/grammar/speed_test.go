// What masks cost: BenchmarkMask* report a step where the state was met before, TestMaskTimes the
// first meeting.

package grammar

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// speedCases are a schema and a text that fulfils it.
var speedCases = []struct{ name, schema, text string }{
	{"tool", weather, `{"city":"San Francisco, California","days":12}`},
	{"free", `{"type":"object"}`,
		`{"query":"select a, b from \"t\"\nwhere x > 3","limit":[1,2.5,{"deep":{"er":"yes"}}],"ok":true}`},
	{"order", `{"type":"object","properties":{"id":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{3}$"},"note":{"type":"string","maxLength":200},"when":{"type":"string","format":"date-time"},"price":{"type":"number","minimum":0,"maximum":1000},"kind":{"enum":["new","old","none"]}},"required":["id","note","when","price","kind"],"additionalProperties":false}`,
		`{"id":"AB-123","note":"leave it at the door, please; the bell does not work.","when":"2026-11-21T10:43:00Z","price":12.5,"kind":"old"}`},
	{"words", `{"type":"string","pattern":"^[a-zA-Z0-9 .,;-]+$"}`,
		`"The quick brown fox jumps over the lazy dog, again and again."`},
	{"open", `{"type":"object","properties":{"command":{"type":"string"},"cwd":{"type":"string"}},"required":["command"]}`, `{"command":"ls -l | grep 'a' > \"out\"","cwd":"/tmp","more":[{}]}`},
}

// wideCases are strings that take nearly any text, or text in many states: what costs the most to
// walk.
var wideCases = []struct{ name, schema, text string }{
	{"not <>", `{"type":"string","pattern":"^[^<>]*$"}`,
		`"The quick brown fox, \"jumps\" over été 漢字."`},
	{"foo.*bar", `{"type":"string","pattern":"^(?i)foo.*bar$"}`, `"foot and the lazy dog: barbar"`},
	{"letters", `{"type":"string","pattern":"^[\\p{L} ]+$"}`, `"The quick brown fox été 漢字 слово"`},
	{"latin", `{"type":"string","pattern":"^[A-Za-zÀ-ÿ' -]{1,80}$"}`, `"Jean-François d'Été"`},
	{"counted", `{"type":"string","pattern":"^[a-zA-Z0-9 ,.'-]{1,100}$"}`,
		`"The quick brown fox, jumps over"`},
	{"short", `{"type":"string","pattern":"^[^\\n]+$","maxLength":40}`,
		`"The quick brown fox jumps over the lazy"`},
	{"tags", `{"type":"string","pattern":"^[^<>]*(<[a-z]+>[^<>]*)*$"}`,
		`"The <b>quick brown <i>fox"`},
	{"no a", `{"type":"string","pattern":"^[^a]*$"}`,
		`"The quick brown fox jumps over the lzy dog"`},
	{"path", `{"type":"string","pattern":"^(/[^/\u0000]+)+$"}`, `"/home/user/my project/été.txt"`},
	{"lines", `{"type":"string","pattern":"^- .*(\\n- .*)*$"}`,
		`"- one thing\n- another thing\n- third"`},
	{"key=value", `{"type":"string","pattern":"^[A-Za-z_]+=.*$"}`,
		`"PATH=/usr/bin:/bin and so on"`},
	{"url", `{"type":"string","pattern":"^https?://.+$"}`, `"https://example.org/a/b?c=d"`},
	{"not words", `{"type":"string","pattern":"^\\W*$"}`, `"... --- !!! 漢字"`},
	{"ends in .py", `{"type":"string","pattern":"\\.py$"}`, `"src/some_file.py"`},
	{"between", `{"type":"string","minLength":10,"maxLength":200}`, `"The quick brown fox"`},
	{"two kinds", `{"anyOf":[{"type":"string","pattern":"^[^<>]*$"},{"type":"string","pattern":"^x.*$"}]}`, `"x and the lazy dog"`},
}

// firstMeetings walks a text with a grammar that is new and returns what each mask cost, in
// processor time.
func firstMeetings(t testing.TB, schema, text string) []time.Duration {
	t.Helper()
	c := fresh(t, schema)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := c.Matcher()
	var took []time.Duration
	for _, id := range token.Get().Encode(nil, text) {
		begin := hosttest.ThreadTime()
		mask := m.Mask(token.Call)
		took = append(took, hosttest.ThreadTime()-begin)
		if !allows(mask, id) || !m.Accept(id) {
			t.Fatalf("%s: %q is refused", text, token.Get().TokenBytes(id))
		}
	}
	if !m.Done() {
		t.Fatalf("%s is not whole", text)
	}
	return took
}

// TestMaskTimes reports for each state its best and its median time of several meetings, each with
// a new grammar.
func TestMaskTimes(t *testing.T) {
	Prepare()
	const rounds = 7
	for _, c := range slices.Concat(speedCases, wideCases) {
		var states [][]time.Duration
		for range rounds {
			for i, took := range firstMeetings(t, c.schema, c.text) {
				if i == len(states) {
					states = append(states, nil)
				}
				states[i] = append(states[i], took)
			}
		}
		var best, median []time.Duration
		for _, s := range states {
			slices.Sort(s)
			best, median = append(best, s[0]), append(median, s[rounds/2])
		}
		slices.Sort(best)
		slices.Sort(median)
		last := len(best) - 1
		t.Logf("%-12s %2d states: best of %d: median %v, 9 of 10 under %v, worst %v; their "+
			"medians: %v, %v, %v", c.name, len(best), rounds,
			best[len(best)/2], best[len(best)*9/10], best[last], median[len(best)/2],
			median[len(best)*9/10], median[last])
		if best[last] > 100*time.Millisecond {
			t.Errorf("%s: a mask takes %v", c.name, best[last])
		}
	}
}

// TestHeaderMaskTimes reports the same for the header of a request that offers 300 functions.
func TestHeaderMaskTimes(t *testing.T) {
	Prepare()
	var rules TurnRules
	for i := range 300 {
		rules.Functions = append(rules.Functions, FunctionRule{Name: fmt.Sprintf("%s_the_%s_%d",
			[]string{"get", "list", "delete"}[i%3], []string{"file", "user", "order",
				"report"}[i%4], i)})
	}
	ids := spell("<|channel|>commentary to=functions.list_the_order_130 " +
		"<|constrain|>json<|message|>")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := make([]time.Duration, len(ids))
	for round := range 7 {
		headerTables = automaton.Cache[string, *headerTable]{Most: keptHeaderTables}
		turn := turnOf(t, rules)
		for i, id := range ids {
			begin := hosttest.ThreadTime()
			mask := turn.Mask()
			took := hosttest.ThreadTime() - begin
			if !allows(mask, id) || !turn.Accept(id) {
				t.Fatalf("token %d of the header is refused", i)
			}
			if round == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	slices.Sort(best)
	t.Logf("300 functions, %d states of a header: best of 7: median %v, worst %v", len(ids),
		best[len(ids)/2], best[len(ids)-1])
	if best[len(ids)-1] > 100*time.Millisecond {
		t.Errorf("a mask takes %v", best[len(ids)-1])
	}
}

func BenchmarkMask(b *testing.B) {
	Prepare()
	for _, c := range speedCases {
		b.Run(c.name, func(b *testing.B) {
			g := schemaOf(b, c.schema)
			ids := token.Get().Encode(nil, c.text)
			n := 0
			for b.Loop() {
				m := g.Matcher()
				for _, id := range ids {
					m.Mask(token.Call)
					m.Accept(id)
					n++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/token")
		})
	}
}

// A token outside bodies with a grammar.
func BenchmarkFreeTurn(b *testing.B) {
	rules := TurnRules{Functions: []FunctionRule{{Name: "get_weather"}, {Name: "search"}}}
	text := "<|channel|>analysis<|message|>The user wants to know what the weather will be like, " +
		"so I look.<|end|><|start|>assistant<|channel|>final<|message|>It rains.<|return|>"
	ids := spell(text)
	n := 0
	for b.Loop() {
		turn, err := NewTurn(rules)
		if err != nil {
			b.Fatal(err)
		}
		for _, id := range ids {
			turn.Mask()
			if !turn.Accept(id) {
				b.Fatalf("token %d is refused", id)
			}
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/token")
}

// batchTurns are turns of 64 requests, each with tokens that fulfil it: calls held to each of the
// speedCases, answers held to them, and free turns, each begun at another place. met false: with
// grammars that nobody has used.
func batchTurns(tb testing.TB, own bool) (rules []TurnRules, texts [][]int32) {
	tb.Helper()
	for i := range 64 {
		c := speedCases[i%len(speedCases)]
		if !own && i >= len(speedCases) {
			rules, texts = append(rules, rules[i%len(speedCases)]),
				append(texts, texts[i%len(speedCases)])
			continue
		}
		g := fresh(tb, c.schema)
		think := "<|channel|>analysis<|message|>The user wants to know, so I " +
			"look.<|end|><|start|>assistant"
		r := TurnRules{Functions: []FunctionRule{{Name: "get_weather", Body: g}, {Name: "search"}}}
		text := think + "<|channel|>commentary to=functions.get_weather " +
			"<|constrain|>json<|message|>" + c.text + "<|call|>"
		switch i % 3 {
		case 1:
			r.Final, text = g, think+"<|channel|>final<|message|>"+c.text+"<|return|>"
		case 2:
			text = think + "<|channel|>final<|message|>It rains in the whole of the " +
				"north.<|return|>"
		}
		rules, texts = append(rules, r), append(texts, spell(text))
	}
	return rules, texts
}

// A step of a batch of 64: the mask of each sequence, copied to where it would be uploaded from,
// and its token accepted.
func BenchmarkBatch64(b *testing.B) {
	rules, texts := batchTurns(b, true)
	upload := make([]uint64, 64*automaton.MaskWords)
	turns, at := make([]*Turn, 64), make([]int, 64)
	step := func(i int) {
		if turns[i] == nil || at[i] == len(texts[i]) {
			t, err := NewTurn(rules[i])
			if err != nil {
				b.Fatal(err)
			}
			turns[i], at[i] = t, 0
		}
		copy(upload[i*automaton.MaskWords:(i+1)*automaton.MaskWords], turns[i].Mask())
		if !turns[i].Accept(texts[i][at[i]]) {
			b.Fatal("a token is refused")
		}
		at[i]++
	}
	for i := range 64 {
		for range 2*len(texts[i]) + i { // every state was met, every sequence is in another
			step(i)
		}
	}
	n, begin := 0, hosttest.ProcessTime()
	for b.Loop() {
		for i := range 64 {
			step(i)
		}
		n += 64
	}
	b.ReportMetric(float64((hosttest.ProcessTime()-begin).Nanoseconds())/float64(n)/1e3, "cpu-us/sequence")
}

// The same where no state was met before: all turns of a batch from their beginning to their end,
// with new grammars.
func BenchmarkBatch64New(b *testing.B) {
	Prepare()
	b.Run("shared", func(b *testing.B) { newBatches(b, false) })
	b.Run("own", func(b *testing.B) { newBatches(b, true) })
}

func newBatches(b *testing.B, own bool) {
	upload := make([]uint64, 64*automaton.MaskWords)
	var rounds []float64
	for b.Loop() {
		b.StopTimer()
		rules, texts := batchTurns(b, own)
		turns := make([]*Turn, 64)
		for i := range turns {
			t, err := NewTurn(rules[i])
			if err != nil {
				b.Fatal(err)
			}
			turns[i] = t
		}
		runtime.GC() // what the compiler left behind is not of the steps
		b.StartTimer()
		n, begin := 0, hosttest.ProcessTime()
		for at, going := 0, true; going; at++ {
			going = false
			for i, t := range turns {
				if at >= len(texts[i]) {
					continue
				}
				going = true
				copy(upload[i*automaton.MaskWords:(i+1)*automaton.MaskWords], t.Mask())
				if !t.Accept(texts[i][at]) {
					b.Fatal("a token is refused")
				}
				n++
			}
		}
		took := hosttest.ProcessTime() - begin
		rounds = append(rounds, float64(took.Nanoseconds())/float64(n)/1e3)
	}
	slices.Sort(rounds)
	b.ReportMetric(rounds[0], "best-cpu-us/sequence")
	b.ReportMetric(rounds[len(rounds)/2], "median-cpu-us/sequence")
}

func BenchmarkLoop(b *testing.B) {
	var l Loop
	for i := 0; b.Loop(); i++ {
		l.Push(int32(i * i % 1009))
	}
}
