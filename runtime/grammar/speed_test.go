// What masks cost: BenchmarkMask* report a step where the state was met before, TestMaskTimes the first meeting.

package grammar

import (
	"slices"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
)

// speedCases are a schema and a text that fulfils it.
var speedCases = []struct{ name, schema, text string }{
	{"tool", weather, `{"city":"San Francisco, California","days":12}`},
	{"free", `{"type":"object"}`, `{"query":"select a, b from \"t\"\nwhere x > 3","limit":[1,2.5,{"deep":{"er":"yes"}}],"ok":true}`},
	{"order", `{"type":"object","properties":{"id":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{3}$"},"note":{"type":"string","maxLength":200},"when":{"type":"string","format":"date-time"},"price":{"type":"number","minimum":0,"maximum":1000},"kind":{"enum":["new","old","none"]}},"required":["id","note","when","price","kind"],"additionalProperties":false}`,
		`{"id":"AB-123","note":"leave it at the door, please; the bell does not work.","when":"2026-11-21T10:43:00Z","price":12.5,"kind":"old"}`},
	{"words", `{"type":"string","pattern":"^[a-zA-Z0-9 .,;-]+$"}`, `"The quick brown fox jumps over the lazy dog, again and again."`},
	{"open", `{"type":"object","properties":{"command":{"type":"string"},"cwd":{"type":"string"}},"required":["command"]}`, `{"command":"ls -l | grep 'a' > \"out\"","cwd":"/tmp","more":[{}]}`},
}

// firstMeetings walks a text with a grammar that is new and returns what each mask cost.
func firstMeetings(t testing.TB, schema, text string) []time.Duration {
	t.Helper()
	c, err := compileSchema([]byte(schema), false)
	if err != nil {
		t.Fatal(err)
	}
	m := c.Matcher()
	var took []time.Duration
	for _, id := range token.Get().Encode(nil, text) {
		begin := time.Now()
		mask := m.Mask(token.Call)
		took = append(took, time.Since(begin))
		if !Allowed(mask, id) || !m.Accept(id) {
			t.Fatalf("%s: %q is refused", text, token.Get().TokenBytes(id))
		}
	}
	if !m.Done() {
		t.Fatalf("%s is not whole", text)
	}
	return took
}

func TestMaskTimes(t *testing.T) {
	words()
	for _, c := range speedCases {
		var all, worst []time.Duration
		for range 3 { // the best of three: other programs run on this machine
			took := firstMeetings(t, c.schema, c.text)
			if worst == nil || slices.Max(took) < slices.Max(worst) {
				worst = took
			}
		}
		all = slices.Sorted(slices.Values(worst))
		t.Logf("%-6s first meeting of %d states: median %v, 9 of 10 under %v, worst %v", c.name, len(all), all[len(all)/2], all[len(all)*9/10], all[len(all)-1])
		if all[len(all)-1] > 200*time.Millisecond {
			t.Errorf("%s: a mask takes %v", c.name, all[len(all)-1])
		}
	}
}

func BenchmarkMask(b *testing.B) {
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
	text := "<|channel|>analysis<|message|>The user wants to know what the weather will be like, so I look.<|end|><|start|>assistant<|channel|>final<|message|>It rains.<|return|>"
	ids := spell(text)
	n := 0
	for b.Loop() {
		turn, err := NewTurn(rules)
		if err != nil {
			b.Fatal(err)
		}
		for _, id := range ids {
			turn.Mask()
			if err := turn.Accept(id); err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/token")
}

// batchTurns are turns of 64 requests, each with tokens that fulfil it: calls held to each of the speedCases, answers held
// to them, and free turns, each begun at another place. met false: with grammars that nobody has used.
func batchTurns(tb testing.TB, own bool) (rules []TurnRules, texts [][]int32) {
	tb.Helper()
	for i := range 64 {
		c := speedCases[i%len(speedCases)]
		if !own && i >= len(speedCases) {
			rules, texts = append(rules, rules[i%len(speedCases)]), append(texts, texts[i%len(speedCases)])
			continue
		}
		g, err := compileSchema([]byte(c.schema), false)
		if err != nil {
			tb.Fatal(err)
		}
		think := "<|channel|>analysis<|message|>The user wants to know, so I look.<|end|><|start|>assistant"
		r := TurnRules{Functions: []FunctionRule{{Name: "get_weather", Body: g}, {Name: "search"}}}
		text := think + "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>" + c.text + "<|call|>"
		switch i % 3 {
		case 1:
			r.Final, text = g, think+"<|channel|>final<|message|>"+c.text+"<|return|>"
		case 2:
			text = think + "<|channel|>final<|message|>It rains in the whole of the north.<|return|>"
		}
		rules, texts = append(rules, r), append(texts, spell(text))
	}
	return rules, texts
}

// A step of a batch of 64: the mask of each sequence, copied to where it would be uploaded from, and its token accepted.
func BenchmarkBatch64(b *testing.B) {
	rules, texts := batchTurns(b, true)
	upload := make([]uint64, 64*maskWords)
	turns, at := make([]*Turn, 64), make([]int, 64)
	step := func(i int) {
		if turns[i] == nil || at[i] == len(texts[i]) {
			t, err := NewTurn(rules[i])
			if err != nil {
				b.Fatal(err)
			}
			turns[i], at[i] = t, 0
		}
		copy(upload[i*maskWords:(i+1)*maskWords], turns[i].Mask())
		if err := turns[i].Accept(texts[i][at[i]]); err != nil {
			b.Fatal(err)
		}
		at[i]++
	}
	for i := range 64 {
		for range 2*len(texts[i]) + i { // every state was met, every sequence is in another
			step(i)
		}
	}
	n := 0
	var worst time.Duration
	for b.Loop() {
		begin := time.Now()
		for i := range 64 {
			step(i)
		}
		worst = max(worst, time.Since(begin))
		n += 64
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/1e3, "us/sequence")
	b.ReportMetric(float64(worst.Nanoseconds())/64e3, "worst-us/sequence")
}

// The same where no state was met before: all turns of a batch from their beginning to their end, with new grammars.
func BenchmarkBatch64New(b *testing.B) {
	words()
	b.Run("shared", func(b *testing.B) { newBatches(b, false) })
	b.Run("own", func(b *testing.B) { newBatches(b, true) })
}

func newBatches(b *testing.B, own bool) {
	upload := make([]uint64, 64*maskWords)
	n := 0
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
		b.StartTimer()
		for at, going := 0, true; going; at++ {
			going = false
			for i, t := range turns {
				if at >= len(texts[i]) {
					continue
				}
				going = true
				copy(upload[i*maskWords:(i+1)*maskWords], t.Mask())
				if err := t.Accept(texts[i][at]); err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/1e3, "us/sequence")
}

func BenchmarkLoop(b *testing.B) {
	var l Loop
	for i := 0; b.Loop(); i++ {
		l.Push(int32(i * i % 1009))
	}
}

// What the first grammar of a process waits for, the vocabulary's own table aside.
func BenchmarkVocabulary(b *testing.B) {
	token.Get()
	for b.Loop() {
		newVocabulary()
	}
}
