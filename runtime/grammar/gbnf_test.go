package grammar

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
)

// The rules of a grammar, from any position between characters, allow each text that the grammar
// does. Of the other texts they refuse those that are named here.
func TestGBNF(t *testing.T) {
	object := func(properties string) string {
		return `{"type":"object","properties":{` + properties + `},"additionalProperties":false}`
	}
	for source, refused := range map[string]string{
		object(`"a":{"type":"string","maxLength":12},"b":{"enum":["x","é\n\"",3]}`):               `{"a":"0123456789abc"}|{"b":"y"}|{"b": 3}|{"c":1}`,
		object(`"a":{"type":"string","minLength":3,"maxLength":900},"b":{"type":"integer"}`):      `{"a":"a` + "\n" + `b"}|{"b":1.5}`,
		object(`"a":{"type":"string","pattern":"^[A-Zäöü]+-[0-9]{2,4}$"}`):                        `{"a":"a-12"}|{"a":"ö-1"}`,
		`{"type":"array","items":{"type":["number","null","boolean"]},"minItems":1,"maxItems":3}`: `[]|[1,2,3,4]|["a"]`,
		`{"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true}`:                            `[4]`,
		`{"$defs":{"n":{"type":"object","properties":{"v":{"minimum":1,"maximum":99,"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false}},"$ref":"#/$defs/n"}`: `{"v":100,"next":null}|{"v":1,"next":{"v":2}}`,
		`{"type":"object"}`: `[]|{"a":}|{a:1}`,
		`{"type":"object","additionalProperties":{"format":"date","type":"string"}}`:                  `{"a":"2026-13-01"}|{"a":1}`,
		`{"anyOf":[{"type":"array","items":{"const":"aa"}},{"type":"array","items":{"const":"ab"}}]}`: `["aa","ac"]`,
		`/[a-z]+@[a-z]+\.(com|de)( ok)?/`:                          `a@b.org|@b.de`,
		`/.*日本[^a]?/`:                                              `日|日本a`,
		`root ::= "yes" | "(" root ")" | "no" [0-9é]+ ("," root)?`: `(yes|no|no1,`,
		"one\x7fa|two|\u00ad":                                      `onea`,
		`one|two|twenty`:                                           `twe|three`,
	} {
		var g *Grammar
		var err error
		switch {
		case source[0] == '{':
			g, err = schema.Compile(t.Context(), []byte(source), false)
		case source[0] == '/':
			g, err = Regex(source[1 : len(source)-1])
		case strings.Contains(source, "::="):
			g, err = Rules(source)
		default:
			g, err = TextChoice(strings.Split(source, "|"))
		}
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		rules := written(t, source, g.Matcher())
		for text := range strings.SplitSeq(refused, "|") {
			if m := rules.Matcher(); m.AcceptText([]byte(text)) && m.Done() {
				t.Errorf("the rules of %s allow %s", source, text)
			}
		}
		if m := g.Matcher(); m.AcceptText([]byte("日"[:2])) && m.GBNF() != "" {
			t.Errorf("%s has rules inside a character:\n%s", source, m.GBNF())
		}
		for seed := range uint64(6) {
			walkRules(t, source, g, rand.New(rand.NewPCG(seed, 1)))
		}
	}
}

var quoted = regexp.MustCompile(`"(?:\\.|[^"\\])*"`)

// written are the rules of a position, read again.
func written(t *testing.T, source string, m *automaton.Matcher) *Grammar {
	t.Helper()
	for _, text := range quoted.FindAllString(m.GBNF(), -1) {
		if strings.Contains(text, `\x`) {
			t.Errorf("%s: a text in its rules has \\x: %s", source, text)
		}
	}
	rules, err := Rules(m.GBNF())
	if err != nil {
		t.Fatalf("%s: %v in\n%s", source, err, m.GBNF())
	}
	return rules
}

// walkRules takes allowed tokens at random, ends the text, and reads each end of it by the rules of
// its position.
func walkRules(t *testing.T, source string, g *Grammar, r *rand.Rand) {
	t.Helper()
	m := g.Matcher()
	var text []byte
	var positions []*automaton.Matcher
	var starts []int
	for range 12 {
		here := *m
		positions, starts = append(positions, &here), append(starts, len(text))
		mask := m.Mask(token.Return)
		var ids []int32
		for id := range int32(automaton.OrdinaryTokens) {
			if automaton.Allows(mask, id) {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			break
		}
		id := ids[r.IntN(len(ids))]
		if text = append(text, token.Get().TokenBytes(id)...); !m.Accept(id) {
			t.Fatalf("%s: token %d is allowed and not accepted", source, id)
		}
	}
	text = append(text, m.Shortest()...)
	for i, p := range positions {
		if rest := text[starts[i]:]; utf8.Valid(text[:starts[i]]) {
			if m := written(t, source, p).Matcher(); !m.AcceptText(rest) || !m.Done() {
				t.Fatalf("%s: the rules after %q refuse %q:\n%s", source, text[:starts[i]], rest,
					p.GBNF())
			}
		} else if rules := p.GBNF(); rules != "" {
			t.Fatalf("%s: inside a character, after %q, there are rules:\n%s", source,
				text[:starts[i]], rules)
		}
	}
}
