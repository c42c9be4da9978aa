package grammar

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestWrittenGrammars(t *testing.T) {
	for _, c := range []struct {
		rules   string
		yes, no []string
	}{
		{"start: greeting \" \" NAME (\",\" NAME)*\n\ngreeting: \"hello\" | \"hi\"i // " +
			"either\nNAME: /[A-Z][a-z]+/\n",
			[]string{"hello Ann", "HI Ann,Bob"}, []string{"Hello Ann", "hello ann", "hello Ann,",
				"hello"}},
		{"root ::= expr\nexpr ::= term ([-+] term)*\nterm ::= [0-9]+ | \"(\" expr \")\" # " +
			"numbers\n",
			[]string{"1", "12+(3-4)-5", "((7))"}, []string{"", "1+", "(1", "1++2"}},
		{"start: a\n  | b\n| c\na: \"a\"\nb: \"b\" b?\nc: /c\\/[\\/\\]]/", []string{"a", "bbb",
			"c//", "c/]"}, []string{"ab", "c"}},
		{"start: \"\" | \"x\" start", []string{"", "xx"}, []string{"y"}},
		{"// apply_patch, as Codex sends it\nstart: begin hunk+ end\nbegin: \"*** Begin\" LF\n" +
			"end: \"*** End\" LF?\nhunk: \"*** Add: \" name LF add_line+ | \"*** Update: \" name " +
			"LF change?\nname: /(.+)/\nadd_line: \"+\" /(.*)/ LF -> line\nchange: (context | " +
			"line)+ eof?\ncontext: (\"@@\" | \"@@ \" /(.+)/) LF\nline: (\"+\" | \"-\" | \" \") " +
			"/(.*)/ LF\neof: \"*** Eof\" LF\n%import common.LF\n",
			[]string{"*** Begin\n*** Add: a.go\n+x\n+\n*** End", "*** Begin\n*** Update: b\n@@ f\n" +
				" a\r\n-b\n+c\n*** Eof\n*** End\n"},
			[]string{"*** Begin\n*** End", "*** Begin\n*** Add: \n+x\n*** End",
				"*** Begin\n*** Add: a\nx\n*** End"}},
		{"start: [A] B~2 C~1..3 -> x\nA: \"a\"..\"c\" | \"0\"..\"9\"\nB: /b./s\nC: /c/i",
			[]string{"ab\nbcc", "b1b2cC", "7bbbbCCC"}, []string{"b1b2", "ab1c", "b1b2cccc", "aab1b2c"}},
		{"start: item (\",\" item)* \";\"~0..1\nitem: NUMBER | ESCAPED_STRING | WORD \"=\" item\n" +
			"%import common (NUMBER, ESCAPED_STRING)\n%import common.CNAME -> WORD\n%ignore /[ \\t]+/\n" +
			"%ignore CPP_COMMENT\n%import common.CPP_COMMENT",
			[]string{"1", "  1 , a=\"x\\\"y\" ;  ", "a = b = 1.5e3//z"}, []string{"", "1 2", "a b=1",
				"\"x", "1.e"}},
		{"?start: _x | y\n_x.1: \"x\"\n!y: \"y\"", []string{"x"}, []string{"z"}},
		{"root ::= (\n  \"a\"{2} |\n  \"b\"{1,2} .\n) [cd]{2,}\n  \"e\"{,1}", []string{"aacd", "bédcc", "bbxcce"},
			[]string{"acd", "bbbxcc", "aac", "aaccee"}},
		{`start: "é\n" /\d*/ "end"`, []string{"é\nend", "é\n12end"}, []string{"é\n12"}},
	} {
		g, err := Rules(c.rules)
		if err != nil {
			t.Errorf("%s: %v", c.rules, err)
			continue
		}
		whole := func(s string) bool {
			m := g.Matcher()
			return m.AcceptText([]byte(s)) && m.Done()
		}
		for _, s := range c.yes {
			if !whole(s) {
				t.Errorf("%s: %q is refused", c.rules, s)
			}
		}
		for _, s := range c.no {
			if whole(s) {
				t.Errorf("%s: %q is taken", c.rules, s)
			}
		}
	}
}

func TestWrittenGrammarsThatCannotBe(t *testing.T) {
	for rules, want := range map[string]string{
		"":                                 "no rule named start",
		"x: \"a\"":                         "no rule named start",
		"start: other":                     "other is used but not written",
		"start: start \"a\" | \"b\"":       "before it reads",
		"start: /a*/ start":                "can never be finished",
		"start: x* \nx: \"a\"?":            "before it reads",
		"start: \"a\" start":               "can never be finished",
		"start: (\"a\"":                    "no end",
		"start: \"a":                       "no text",
		"start: \"a\"\nstart: \"b\"":       "twice",
		"start: A\n%import other.WS":       "line 2: ",
		"start: A\n%import common.XX":      "no terminal XX",
		"start: A\n\n%declare A":           "line 3: %declare is not supported",
		"start: /a/x":                      "line 1: rule start: the flag x",
		"start: \"a\"..\"zz\"":             "one character",
		"start: \"z\"..\"a\"":              "empty",
		"start: \"a\"~2..1":                "empty",
		"start: \"a\"~2000":                "more than 1000",
		"start: \"a\"\n  | other\nx: z":    "is used but not written",
		"start: \"a\"\ne: e \"+\" e | /1/": "line 2: the rule e calls itself",
		"t{a}: a\nstart: t{\"x\"}":         "line 1: ",
		"start: /(?=a)/":                   "expression",
		"start: \"a\"~x":                   "needs a number",
		"root ::= \"a\"~3":                 "not supported",
		"root ::= \"a\"{}":                 "needs a number",
		"root ::= \"a\"{3,2}":              "is empty",
		"root ::= \"a\"{9999}":             "more than",
		"start: \"a\"{2}":                  "not supported",
		"start: a\na: b\nb: a | \"x\"":     "before it reads",
		"start: /[/":                       "no end",
		strings.Repeat("a", 1<<18) + "b":   "longer",
	} {
		if _, err := Rules(rules); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", rules, err, want)
		}
	}
}

func TestRegexAndChoice(t *testing.T) {
	r := hosttest.Must(Regex(`[a-z]{2,4}\d`))(t)
	c := hosttest.Must(TextChoice([]string{"red", "red wine", "blue"}))(t)
	for _, k := range []struct {
		g   *Grammar
		s   string
		yes bool
	}{{r, "abc1", true}, {r, "abc", false}, {r, "xabcd1", false}, {c, "red", true}, {c, "red wine",
		true}, {c, "red ", false}, {c, "green", false}} {
		m := k.g.Matcher()
		if (m.AcceptText([]byte(k.s)) && m.Done()) != k.yes {
			t.Errorf("%q", k.s)
		}
	}
	m := c.Matcher()
	if !m.Accept(token.Get().Encode(nil, "red")[0]) || !allows(m.Mask(token.Return),
		token.Return) || allows(m.Mask(token.Return), token.Call) {
		t.Error("the ender after red")
	}
	if _, err := Regex(`(`); err == nil {
		t.Error("( is accepted")
	}
	if _, err := TextChoice(nil); err == nil {
		t.Error("no choice is accepted")
	}
}

func FuzzRules(f *testing.F) {
	f.Add("start: \"a\" | b*\nb: /[0-9]+/ \"x\"?")
	f.Add("root ::= [a-z] (root | \"\")")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 500 {
			return
		}
		g, err := Rules(text)
		if err != nil {
			return
		}
		at := g.Matcher()
		for range 100 { // no dead end on the way of the lowest bytes
			read := false
			for b := range 256 {
				if next := *at; next.AcceptText([]byte{byte(b)}) {
					at, read = &next, true
					break
				}
			}
			if !read {
				if !at.Done() {
					t.Fatalf("%q: a dead end", text)
				}
				return
			}
		}
	})
}
