// The cost of masks: BenchmarkMask* report a step in a visited state, TestMeasureMasks the first
// visit.

package grammar

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// speedCases are a schema and a text that satisfies it.
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

// wideCases are strings that accept nearly any text, or text in many states: the most expensive to
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

// cost is the cost of a mask: bytes of allocations, and processor time.
type cost struct {
	bytes uint64
	took  time.Duration
}

// firstMeetings gives a turn, or a grammar's matcher, allowed tokens and returns the cost of each
// mask.
func firstMeetings(t *testing.T, ids []int32, mask func() []uint64,
	accept func(int32) bool) (all []cost) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i, id := range ids {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := hosttest.ThreadTime()
		m := mask()
		took := hosttest.ThreadTime() - begin
		runtime.ReadMemStats(&after)
		all = append(all, cost{after.TotalAlloc - before.TotalAlloc, took})
		if !allows(m, id) || !accept(id) {
			t.Fatalf("token %d, %q, is refused", i, token.Get().TokenBytes(id))
		}
	}
	return all
}

// newMeetings are those of each case and of the header of a request with 300 functions, with new
// grammars.
func newMeetings(t *testing.T) map[string][]cost {
	Prepare()
	all := map[string][]cost{}
	for _, c := range slices.Concat(speedCases, wideCases) {
		m := fresh(t, c.schema).Matcher()
		all[c.name] = firstMeetings(t, token.Get().Encode(nil, c.text),
			func() []uint64 { return m.Mask(token.Call) }, m.Accept)
		if !m.Done() {
			t.Errorf("%s is not whole", c.text)
		}
	}
	var rules TurnRules
	for i := range 300 {
		rules.Functions = append(rules.Functions, FunctionRule{Name: fmt.Sprintf("%s_the_%s_%d",
			[]string{"get", "list", "delete"}[i%3], []string{"file", "user", "order",
				"report"}[i%4], i)})
	}
	headerTables = automaton.Cache[string, *headerTable]{Most: maxHeaderTables}
	turn := turnOf(t, rules)
	all["header"] = firstMeetings(t, spell("<|channel|>commentary to=functions.list_the_order_130 "+
		"<|constrain|>json<|message|>"), turn.Mask, turn.Accept)
	return all
}

// The first mask of any state has bounded allocations.
func TestMasksAreCheap(t *testing.T) {
	const most = 256 << 10
	for name, list := range newMeetings(t) {
		worst := slices.MaxFunc(list, func(a, b cost) int { return cmp.Compare(a.bytes, b.bytes) })
		t.Logf("%-12s %2d states, %d KiB at most", name, len(list), worst.bytes>>10)
		if worst.bytes > most {
			t.Errorf("%s: a mask allocates %d KiB", name, worst.bytes>>10)
		}
	}
}

// TestMeasureMasks reports for each case the best of several first visits of each state.
func TestMeasureMasks(t *testing.T) {
	if os.Getenv("OSSRUN_MEASURE") == "" {
		t.Skip("a figure of a quiet machine: .ci/long measure")
	}
	best := map[string][]cost{}
	const rounds = 7
	for range rounds {
		for name, list := range newMeetings(t) {
			if best[name] == nil {
				best[name] = list
			}
			for i := range list {
				best[name][i].took = min(best[name][i].took, list[i].took)
			}
		}
	}
	for name, list := range best {
		slices.SortFunc(list, func(a, b cost) int { return cmp.Compare(a.took, b.took) })
		worst := list[len(list)-1].took
		t.Logf("%-12s %2d states, best of %d: median %v, worst %v", name, len(list), rounds,
			list[len(list)/2].took, worst)
		if worst > 100*time.Millisecond {
			t.Errorf("%s: a mask takes %v", name, worst)
		}
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
		turn := hosttest.Must(NewTurn(rules))(b)
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

// batchTurns are turns of 64 requests, each with tokens that satisfy it: calls and answers
// restricted to each of the speedCases, and free turns, each begun at another place. met false:
// with new grammars.
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

// A step of a batch of 64: the mask of each sequence, copied to its upload buffer, and its token
// accepted.
func BenchmarkBatch64(b *testing.B) {
	rules, texts := batchTurns(b, true)
	upload := make([]uint64, 64*automaton.MaskWords)
	turns, at := make([]*Turn, 64), make([]int, 64)
	step := func(i int) {
		if turns[i] == nil || at[i] == len(texts[i]) {
			t := hosttest.Must(NewTurn(rules[i]))(b)
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

// The same without visited states: all turns of a batch from beginning to end, with new grammars.
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
			t := hosttest.Must(NewTurn(rules[i]))(b)
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
