package harmony

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/internal/goldentest"
	"github.com/ossrun/ossrun/harmony/token"
)

// fuzzIDs makes ids from bytes: mostly Harmony's special tokens, also words, single bytes, and
// invalid ids.
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

// FuzzRender: no JSON makes the renderer panic, and no external text becomes a special token.
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
			case isEnd(id):
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
