package harmony

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/internal/goldentest"
	"github.com/ossrun/ossrun/harmony/token"
)

// fuzzIDs makes ids of bytes: mostly the tokens that Harmony is made of, also words, single bytes,
// and what is no token.
func fuzzIDs(raw []byte) []int32 {
	special := []int32{token.Start, token.End, token.Message, token.Channel, token.Return,
		token.Call, token.Constrain, token.EndOfText}
	words := [][]int32{}
	for _, w := range []string{"assistant", "user", "tool", "functions.f", " to=functions.f",
		"analysis", "final", "commentary", " ", "json", "é", "😀"} {
		words = append(words, token.Get().Encode(nil, w))
	}
	var ids []int32
	for _, b := range raw {
		switch {
		case b < 96:
			ids = append(ids, special[int(b)%len(special)])
		case b < 192:
			ids = append(ids, words[int(b)%len(words)]...)
		case b < 250:
			ids = append(ids, int32(b)) // half characters
		default:
			ids = append(ids, []int32{-1, 200018, 201087, 201088, 201089, 1 << 30}[b-250])
		}
	}
	return ids
}

// FuzzParser: no ids make it panic or say anything that is not text; errors lose no finished
// message; what was shown as it came is the message in the end.
func FuzzParser(f *testing.F) {
	f.Add([]byte{3, 102, 2, 104, 1}, true, true)
	f.Add([]byte{0, 96, 100, 3, 103, 104, 6, 105, 2, 200, 201, 5, 0, 96, 3, 102, 2, 250, 4}, false,
		false)
	f.Fuzz(func(t *testing.T, raw []byte, prompted, strict bool) {
		role := Role("")
		if prompted {
			role = RoleAssistant
		}
		ids := fuzzIDs(raw)
		p := NewParser(role, strict)
		shown, finished, failed := "", 0, false
		check := func() {
			switch n := len(p.Messages()); {
			case n < finished || n > finished+1:
				t.Fatalf("%v: %d messages after %d", ids, n, finished)
			case n == finished+1:
				text := p.Messages()[finished].Text()
				if shown+p.rest != text && shown != "" {
					t.Fatalf("%v: showed %q and %q of %q", ids, shown, p.rest, text)
				}
				finished, shown = n, ""
			}
			if shown += p.delta; !utf8.ValidString(p.delta) || p.state == InContent &&
				string(p.content) != shown {
				t.Fatalf("%v: delta %q, text %q, shown %q", ids, p.delta, string(p.content), shown)
			}
		}
		for _, id := range ids {
			if p.Push(id) != nil {
				failed = true
			}
			check()
		}
		if p.Finish() != nil {
			failed = true
		}
		check()
		whole, err := Parse(ids, role, strict)
		if (err != nil) != failed {
			t.Fatalf("%v: error %v at once, %v step by step", ids, err, failed)
		}
		if err != nil {
			return
		}
		// What was read can be written and read again.
		for i, m := range whole {
			if i >= len(p.Messages()) || p.Messages()[i].Text() != m.Text() || !m.Role.Known() {
				t.Fatalf("%v: message %d is %+v", ids, i, m)
			}
			text, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			var again Message
			if err := json.Unmarshal(text, &again); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if m.Role == RoleTool && m.Name == "" {
				continue
			}
			a, err1 := RenderMessage(nil, m, RenderOptions{})
			b, err2 := RenderMessage(nil, again, RenderOptions{})
			if err1 != nil || err2 != nil || !slices.Equal(a, b) {
				t.Fatalf("%s renders as %v, %v and %v, %v", text, a, err1, b, err2)
			}
		}
	})
}

// FuzzRender: no JSON makes the renderer panic, and no text of others becomes a special token.
func FuzzRender(f *testing.F) {
	goldentest.Each(f, goldens+"render.jsonl.gz",
		func(t testing.TB, c renderCase) { f.Add([]byte(c.Messages)) })
	f.Add([]byte(`[{"role":"developer","content":[{"type":"developer_content","tools":{"functions":{"name":"f","tools":[{"name":"g","description":"","parameters":{"type":"object","properties":{"a":{"oneOf":[{"enum":[1e400,-0]},{}],"default":1E-7}}}}]}}}]}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var messages []Message
		if json.Unmarshal(raw, &messages) != nil {
			return
		}
		ids, err := RenderCompletion(messages, RoleAssistant, false)
		if err != nil {
			return
		}
		starts, ended := 0, 0
		for _, id := range ids {
			switch _, special := token.Get().Special(id); {
			case id == token.Start:
				starts++
			case ends(id):
				ended++
			case special && id != token.Message && id != token.Channel && id != token.Constrain:
				t.Fatalf("%s: special token %d", raw, id)
			}
		}
		if starts != len(messages)+1 || ended != len(messages) {
			t.Fatalf("%s: %d starts and %d ends of %d messages", raw, starts, ended, len(messages))
		}
		text := token.Get().Decode(nil, ids)
		if !utf8.Valid(text) || !strings.HasSuffix(string(text), "<|start|>assistant") {
			t.Fatalf("%s: rendered %q", raw, text)
		}
		if _, err := Render(messages, true); err != nil {
			t.Fatalf("%s: with dropping: %v", raw, err)
		}
	})
}

// A message of a million tokens takes no more for each token than a short one.
func TestParserIsLinear(t *testing.T) {
	word, bad := token.Get().Encode(nil, " word")[0], int32(187) // 187 is the byte ff
	for _, id := range []int32{word, bad, 1 << 20, token.Start} {
		p := NewParser(RoleAssistant, true)
		if err := p.Push(token.Message); err != nil {
			t.Fatal(err)
		}
		for range 1_000_000 {
			if err := p.Push(id); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Finish(); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkParser(b *testing.B) {
	p := NewParser(RoleAssistant, true)
	p.Push(token.Message)
	id := token.Get().Encode(nil, " word")[0]
	n := 0
	for b.Loop() {
		p.Push(id)
		if n++; n%4096 == 0 {
			p = NewParser(RoleAssistant, true)
			p.Push(token.Message)
		}
	}
}
