// Turns: the automaton only allows legal Harmony.

package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// over tells that the turn has ended: its last token was <|return|> or <|call|>.
func (t *Turn) over() bool { return t.place == finished }

// spell encodes text with special tokens.
func spell(text string) []int32 { return token.Get().EncodeSpecial(nil, text, nil) }

func schemaOf(t testing.TB, raw string) *Grammar {
	t.Helper()
	c, err := schema.CompileWithin(t.Context(), []byte(raw), false)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return c
}

var weather = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"],"additionalProperties":false}`

// fresh is an unused grammar.
func fresh(t testing.TB, raw string) *Grammar {
	t.Helper()
	g, err := schema.Compile(t.Context(), []byte(raw), false)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return g
}

// allows tells whether a mask allows id; a nil mask allows all.
func allows(mask []uint64, id int32) bool { return mask == nil || automaton.Allows(mask, id) }

func turnOf(t testing.TB, r TurnRules) *Turn {
	t.Helper()
	turn := hosttest.Must(NewTurn(r))(t)
	return turn
}

// feed gives a turn tokens; it returns how many were allowed.
func feed(turn *Turn, ids []int32) int {
	for i, id := range ids {
		if turn.place == finished || !allows(turn.Mask(), id) {
			return i
		}
		if !turn.Accept(id) {
			return i
		}
	}
	return len(ids)
}

func TestLegalAndIllegalTurns(t *testing.T) {
	functions := []FunctionRule{{Name: "get_weather", Body: schemaOf(t, weather)}, {Name: "get"}}
	auto := TurnRules{Functions: functions}
	all := TurnRules{Functions: functions, Python: true, Browser: true}
	for _, c := range []struct {
		rules TurnRules
		text  string
		bad   string // the text from the first token that must be refused; "" if all is legal
	}{
		{auto, "<|channel|>final<|message|>Hello<|return|>", ""},
		{auto, "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>", ""},
		{auto, `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Paris"}<|call|>`, ""},
		{auto, ` to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>{"city":"Paris","days":3}<|call|>`, ""},
		{auto, ` to=functions.get<|channel|>commentary<|constrain|>json<|message|>{"x":[1,2,{"y":null}]}<|call|>`, ""},
		{auto, `<|channel|>commentary to=functions.get<|message|>{}<|call|>`, ""},
		{all, `<|channel|>analysis to=python code<|message|>print(1)<|call|>`, ""},
		{all, `<|channel|>analysis to=browser.search code<|message|>{"query":"x"}<|call|>`, ""},
		{all, ` to=browser.open<|channel|>commentary <|constrain|>json<|message|>{"id":1}<|call|>`,
			""},
		{auto, "<|channel|>commentary<|message|>First I look.<|end|><|start|>assistant " +
			"to=functions.get<|channel|>commentary<|message|>{}<|call|>", ""},

		{TurnRules{Ends: []int32{token.EndOfText}},
			"<|channel|>final<|message|>Hello<|endoftext|>", ""},
		{TurnRules{Ends: []int32{token.EndOfText}},
			"<|channel|>final<|message|><|endoftext|>", "<|endoftext|>"},
		{TurnRules{Ends: []int32{token.EndOfText}},
			"<|channel|>analysis<|message|>Hm<|endoftext|>", "<|endoftext|>"},
		{auto, "<|channel|>final<|message|>Hello<|endoftext|>", "<|endoftext|>"},

		{auto, "<|channel|>final<|message|><|return|>", "<|return|>"},
		{auto, "<|channel|>final<|message|>a<|end|>", "<|end|>"},
		{auto, "<|channel|>analysis<|message|>a<|return|>", "<|return|>"},
		{auto, "<|channel|>analysis<|message|>a<|channel|>", "<|channel|>"},
		{auto, "<|message|>", "<|message|>"},
		{auto, "<|channel|>commentary to=functions.nothing", "nothing"},
		{auto, "<|channel|>analysis to=functions.get", " to=functions.get"},
		{auto, "<|channel|>commentary to=python", "python"},
		{TurnRules{}, " to=", " to="},
		{TurnRules{}, "<|channel|>commentary to=", " to="},
		{TurnRules{Functions: functions, ToolChoice: None}, "<|channel|>commentary to=", " to="},
		{TurnRules{Functions: functions, ToolChoice: Required}, "<|channel|>final", "final"},
		{TurnRules{Functions: functions, ToolChoice: Required}, "<|channel|>commentary<|message|>",
			"<|message|>"},
		{TurnRules{Functions: functions, ToolChoice: Named, Name: "get"},
			"<|channel|>commentary to=functions.get_weather", "_weather"},
		{auto, `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Paris"}<|end|>`, "<|end|>"},
		{auto, `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"days":3`, `days":3`},
		{auto, `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Paris","days":15}<|call|>`, `15}<|call|>`},
	} {
		ids := spell(c.text)
		n := feed(turnOf(t, c.rules), ids)
		rest := string(token.Get().Decode(nil, ids[n:]))
		if c.bad == "" && rest != "" || c.bad != "" && (rest == "" || !strings.HasSuffix(c.text,
			rest) || len(rest) < len(c.bad)-2 || len(rest) > len(c.bad)+2) {
			t.Errorf("%s: stopped before %q, want %q", c.text, rest, c.bad)
		}
	}
}

// Every tokenization of a name is allowed.
func TestNamesInEveryTokenization(t *testing.T) {
	rules := TurnRules{Functions: []FunctionRule{{Name: "get_weather"}}}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		turn := turnOf(t, rules)
		if feed(turn, []int32{token.Channel}) != 1 {
			t.Fatal("no channel")
		}
		rest := []byte("commentary to=functions.get_weather")
		for len(rest) > 0 {
			ids := token.Get().EncodeBytes(nil, rest[:1+rng.IntN(len(rest))])
			if feed(turn, ids[:1]) != 1 {
				t.Fatalf("%q is refused before %q", token.Get().TokenBytes(ids[0]), rest)
			}
			rest = rest[len(token.Get().TokenBytes(ids[0])):]
		}
		if feed(turn, spell(" <|constrain|>json<|message|>{}<|call|>")) == 0 || !turn.over() {
			t.Fatal("the call does not end")
		}
	}
}

func TestForcedCallAndBudget(t *testing.T) {
	turn := turnOf(t, TurnRules{Functions: []FunctionRule{{Name: "a"}, {Name: "b"}},
		ToolChoice: Named,
		Name:       "b", MaxReasoning: -1})
	want := spell("<|channel|>commentary to=functions.b <|constrain|>json<|message|>")
	if got := turn.Forced(); !slices.Equal(got, want) {
		t.Errorf("forced %q, want %q", token.Get().Decode(nil, got), token.Get().Decode(nil, want))
	}
	if feed(turn, want) != len(want) {
		t.Fatal("the forced header is refused")
	}

	turn = turnOf(t, TurnRules{MaxReasoning: -1})
	if got := turn.Forced(); !slices.Equal(got, spell("<|channel|>final<|message|>")) {
		t.Errorf("without reasoning and tools %q is forced, want the answer",
			token.Get().Decode(nil, got))
	}
	turn = turnOf(t, TurnRules{MaxReasoning: 3})
	if n := feed(turn, spell("<|channel|>analysis<|message|>one two three four five")); n != 6 {
		t.Fatalf("%d tokens were allowed, want 6", n)
	}
	turn = turnOf(t, TurnRules{MaxReasoning: 3})
	feed(turn, spell("<|channel|>analysis<|message|>one two three"))
	for !turn.over() {
		ids := turn.Forced()
		if len(ids) == 0 {
			break
		}
		if feed(turn, ids) != len(ids) {
			t.Fatal("forced tokens are refused")
		}
	}
	if turn.channel != Final || turn.place != inBody || turn.reasoning != 3 {
		t.Fatalf("after the budget: channel %q, place %d, reasoning %d", turn.channel, turn.place,
			turn.reasoning)
	}
}

func TestRulesThatCannotBe(t *testing.T) {
	for _, r := range []TurnRules{
		{ToolChoice: Required},
		{ToolChoice: Named, Name: "x"},
		{ToolChoice: 9},
		{Functions: []FunctionRule{{Name: ""}}},
		{Functions: []FunctionRule{{Name: "a b"}}},
		{Functions: []FunctionRule{{Name: "a<|"}}},
		{Functions: []FunctionRule{{Name: "a"}, {Name: "a"}}},
	} {
		if _, err := NewTurn(r); err == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
	turn := turnOf(t, TurnRules{})
	if turn.Accept(token.Return) || turn.Mask() != nil {
		t.Errorf("after a token that is not allowed everything is")
	}
}

func TestLoop(t *testing.T) {
	var l Loop
	for i := range 4000 { // no period
		if l.Push(int32(i * i % 3989)) {
			t.Fatalf("token %d: no loop", i)
		}
	}
	at := 0
	for ; at < 5000 && !l.Push(int32(at%40)); at++ {
	}
	if at < loopTokens || at > loopTokens+80 {
		t.Errorf("a loop of 40 tokens is seen after %d", at)
	}
}

// pick samples from a mask like a random model, with part of the probability on enders and
// structure.
func pick(rng *rand.Rand, mask []uint64, likely []int32) int32 {
	if rng.IntN(5) == 0 {
		for range 4 {
			if id := likely[rng.IntN(len(likely))]; allows(mask, id) {
				return id
			}
		}
	}
	if mask == nil {
		return int32(rng.IntN(automaton.OrdinaryTokens))
	}
	n := 0
	for _, w := range mask {
		n += bits.OnesCount64(w)
	}
	if n == 0 {
		return -1
	}
	k := rng.IntN(n)
	for i, w := range mask {
		if c := bits.OnesCount64(w); k >= c {
			k -= c
			continue
		}
		for ; k > 0; k-- {
			w &= w - 1
		}
		return int32(i*64 + bits.TrailingZeros64(w))
	}
	return -1
}

func likelyTokens() []int32 {
	ids := []int32{token.End, token.Return, token.Call, token.Channel, token.Message,
		token.Constrain, token.Start}
	for _, s := range []string{`"`, `"}`, `}`, `]`, `":"`, `","`, `"]`, "final", "analysis",
		"commentary", "json", "1", " to", "=", "e", "]}", `"}]`, `}}`, `}]`} {
		ids = append(ids, spell(s)...)
	}
	return ids
}

// Turns of a random model: strictly legal, and finished arguments and answers satisfy the request.
func TestRandomTurns(t *testing.T) {
	turns := 200
	if os.Getenv("OSSRUN_LONG") != "" {
		turns = 10_000
	}
	order := `{"type":"object","properties":{"id":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{3}$"},"lines":{"type":"array","items":{"$ref":"#/$defs/line"},"minItems":1,"maxItems":3},"note":{"type":["string","null"],"maxLength":20}},"required":["id","lines","note"],"additionalProperties":false,"$defs":{"line":{"type":"object","properties":{"sku":{"enum":["a","b","c"]},"count":{"type":"integer","minimum":1,"maximum":99}},"required":["sku","count"],"additionalProperties":false}}}`
	answer := `{"type":"object","properties":{"ok":{"type":"boolean"},"reason":{"anyOf":[{"type":"string","format":"date"},{"type":"number","minimum":-5,"maximum":5}]}},"required":["ok","reason"],"additionalProperties":false}`
	text := hosttest.Must(Rules("start: /[a-z]{1,9}/ (\",\" start)? \"!\""))(t)
	functions := []FunctionRule{{Name: "get_weather", Body: schemaOf(t, weather)},
		{Name: "order", Body: schemaOf(t, order)}, {Name: "anything"},
		{Name: "text", Body: text, Text: true}}
	bodies := map[string]*Grammar{"functions.get_weather": schemaOf(t, weather),
		"functions.text":  text,
		"functions.order": schemaOf(t, order), "functions.anything": schema.AnyObject()}
	mix := []TurnRules{
		{},
		{Functions: functions},
		{Functions: functions, ToolChoice: Required},
		{Functions: functions, ToolChoice: Named, Name: "order"},
		{Functions: functions, ToolChoice: None, Final: schemaOf(t, answer)},
		{Functions: functions, Final: schemaOf(t, answer), Python: true, Browser: true},
		{Final: schema.AnyObject(), MaxReasoning: 20},
		{Functions: functions, Python: true, Browser: true, ToolChoice: Required, MaxReasoning: -1},
		{Final: schemaOf(t, answer), MaxReasoning: 5},
	}
	likely := likelyTokens()
	rng := rand.New(rand.NewPCG(4, 4))
	ended, cut, calls, structured := 0, 0, 0, 0
	for i := range turns {
		rules := mix[i%len(mix)]
		turn := turnOf(t, rules)
		reader := harmony.NewReader(harmony.RoleAssistant)
		var ids []int32
		for len(ids) < 1500 && !turn.over() {
			mask := turn.Mask()
			id := pick(rng, mask, likely)
			if id < 0 {
				t.Fatalf("turn %d: nothing is allowed after %q", i, token.Get().Decode(nil, ids))
			}
			if !turn.Accept(id) {
				t.Fatalf("turn %d: the mask allows what the turn refuses after %q", i,
					token.Get().Decode(nil, ids))
			}
			ids = append(ids, id)
			if reader.Push(id); reader.Faults().Total() > 0 {
				t.Fatalf("turn %d: %q: %v", i, token.Get().Decode(nil, ids), reader.Faults())
			}
		}
		if !turn.over() {
			cut++
			continue
		}
		ended++
		messages := reader.Messages()
		for k, m := range messages {
			if err := legal(m.Message, rules, k == len(messages)-1); err != nil {
				t.Fatalf("turn %d: %v in %q", i, err, token.Get().Decode(nil, ids))
			}
			text := m.Text()
			var g *Grammar
			switch {
			case m.Recipient != "" && strings.HasPrefix(m.Recipient, "functions."):
				g = bodies[m.Recipient]
				calls++
			case m.Recipient == "" && m.Channel == Final && rules.Final != nil:
				g = rules.Final
				structured++
			}
			if g == nil {
				continue
			}
			if g != bodies["functions.text"] && !json.Valid([]byte(text)) {
				t.Fatalf("turn %d: %q is no JSON", i, text)
			}
			if m := g.Matcher(); !m.AcceptText([]byte(text)) || !m.Done() {
				t.Fatalf("turn %d: %q does not fulfil its schema", i, text)
			}
		}
	}
	if ended < turns/2 || calls == 0 || structured == 0 {
		t.Errorf("of %d turns %d ended, %d calls, %d structured answers: too few to tell anything",
			turns, ended, calls, structured)
	}
	t.Logf("%d turns ended, %d were cut by the limit, %d calls, %d structured answers", ended, cut,
		calls, structured)
}

// legal returns the fault of a message of a finished turn.
func legal(m harmony.Message, r TurnRules, last bool) error {
	offered := map[string]bool{}
	if r.ToolChoice != None {
		for _, f := range r.Functions {
			offered["functions."+f.Name] = r.ToolChoice != Named || f.Name == r.Name
		}
		if r.Python {
			offered["python"] = true
		}
		if r.Browser {
			offered["browser.search"], offered["browser.open"], offered["browser.find"] = true,
				true, true
		}
	}
	switch {
	case m.Role != harmony.RoleAssistant:
		return fmt.Errorf("role %q", m.Role)
	case m.Channel != Analysis && m.Channel != Commentary && m.Channel != Final:
		return fmt.Errorf("channel %q", m.Channel)
	case m.Recipient != "" && !offered[m.Recipient]:
		return fmt.Errorf("recipient %q", m.Recipient)
	case m.ContentType != "" && m.ContentType != "<|constrain|>json" && m.ContentType != "code":
		return fmt.Errorf("content type %q", m.ContentType)
	case last && m.Recipient == "" && m.Channel != Final:
		return fmt.Errorf("the turn ends in %s", m.Channel)
	case last && m.Recipient == "" && (r.ToolChoice == Required || r.ToolChoice == Named):
		return errors.New("the turn ends without the call that was demanded")
	case last && m.Text() == "":
		return errors.New("the last message is empty")
	}
	return nil
}

// Concurrent turns share grammars and tables; the race detector checks this test.
func TestTurnsAtTheSameTime(t *testing.T) {
	rules := TurnRules{Functions: []FunctionRule{{Name: "get_weather",
		Body: schemaOf(t, weather)},
		{Name: "anything"}}, Final: schemaOf(t, `{"type":"array","items":{"type":"string"}}`)}
	likely := likelyTokens()
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 8 {
				turn, err := NewTurn(rules)
				if err != nil {
					t.Error(err)
					return
				}
				for n := 0; n < 100 && !turn.over(); n++ {
					if !turn.Accept(pick(rng, turn.Mask(), likely)) {
						t.Error("a token that the mask allows is refused")
						return
					}
				}
			}
		})
	}
	group.Wait()
}
