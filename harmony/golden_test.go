package harmony

// The goldens in testdata/harmony were made with OpenAI's own Harmony library.

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/harmony/internal/goldentest"
	"github.com/ossrun/ossrun/harmony/token"
)

const goldens = "../testdata/harmony/"

type renderCase struct {
	ID       string
	Messages json.RawMessage
	Next     Role `json:"next_turn_role"`
	Runs     []struct {
		Fn       string
		AutoDrop bool `json:"auto_drop_analysis"`
		IDs      []int32
		Text     string
		Error    string
	}
}

func TestRenderGolden(t *testing.T) {
	runs, failures := 0, 0
	goldentest.Each(t, goldens+"render.jsonl.gz", func(t testing.TB, c renderCase) {
		if c.Next == "" {
			c.Next = RoleAssistant
		}
		var messages []Message
		invalid := json.Unmarshal(c.Messages, &messages)
		for _, r := range c.Runs {
			runs++
			var ids []int32
			err := invalid
			if err == nil {
				switch r.Fn {
				case "render_conversation_for_completion":
					ids, err = RenderCompletion(messages, c.Next, r.AutoDrop)
				case "render_conversation":
					ids, err = Render(messages, r.AutoDrop)
				case "render_conversation_for_training":
					ids, err = RenderTraining(messages, r.AutoDrop)
				default:
					t.Fatalf("unknown function %q", r.Fn)
				}
			}
			text := string(token.Get().Decode(nil, ids))
			if (err != nil) != (r.Error != "") || err == nil && (!slices.Equal(ids, r.IDs) ||
				text != r.Text) {
				t.Errorf("%s: %s, auto drop %v:\ngot  %v %q\nwant %q %q", c.ID, r.Fn, r.AutoDrop,
					err, text, r.Error, r.Text)
			}
			if err != nil {
				failures++
			}
		}
	})
	t.Logf("%d runs, of them %d errors as in the golden", runs, failures)
}

// Messages survive their JSON form: written and read again, they render to the same tokens.
func TestMessageJSONRoundTrip(t *testing.T) {
	goldentest.Each(t, goldens+"render.jsonl.gz", func(t testing.TB, c renderCase) {
		var messages, again []Message
		if json.Unmarshal(c.Messages, &messages) != nil {
			return
		}
		text, err := json.Marshal(messages)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%s: %v in %s", c.ID, err, text)
		}
		want, err1 := Render(messages, false)
		got, err2 := Render(again, false)
		if !slices.Equal(got, want) || (err1 != nil) != (err2 != nil) {
			t.Errorf("%s: %s renders differently", c.ID, text)
		}
	})
}

type parseResult struct {
	Messages []json.RawMessage
	Error    string
	Trace    []struct {
		T            uint32
		State        string
		Role         Role
		Channel      *string
		Recipient    *string
		ContentType  *string `json:"content_type"`
		Delta        string
		ContentBytes int `json:"content_bytes"`
		NMessages    int `json:"n_messages"`
	}
	TraceError *struct{ At int } `json:"trace_error"`
	BeforeEOS  string            `json:"content_before_eos"`
	EOSError   string            `json:"eos_error"`
	FinalState string            `json:"final_state"`
	AtEnd      []json.RawMessage `json:"trace_messages"`
}

type parseCase struct {
	ID        string
	Role      Role
	IDs       []uint32
	Strict    parseResult
	NonStrict json.RawMessage `json:"non_strict"`
}

func (c parseCase) ids() []int32 {
	ids := make([]int32, len(c.IDs))
	for i, id := range c.IDs {
		ids[i] = int32(id)
	}
	return ids
}

// results are those for strict and not strict.
func (c parseCase) results(t testing.TB) map[bool]parseResult {
	r := map[bool]parseResult{true: c.Strict, false: c.Strict}
	if !bytes.Equal(c.NonStrict, []byte(`"same"`)) {
		var other parseResult
		if err := json.Unmarshal(c.NonStrict, &other); err != nil {
			t.Fatal(err)
		}
		r[false] = other
	}
	return r
}

func sameMessages(t testing.TB, got []Message, want []json.RawMessage) bool {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var a, b []any
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	for _, m := range want {
		var v any
		if err := json.Unmarshal(m, &v); err != nil {
			t.Fatal(err)
		}
		b = append(b, v)
	}
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

func TestParseGolden(t *testing.T) {
	goldentest.Each(t, goldens+"parse.jsonl.gz", func(t testing.TB, c parseCase) {
		for strict, want := range c.results(t) {
			got, err := Parse(c.ids(), c.Role, strict)
			if (err != nil) != (want.Error != "") || err == nil &&
				!sameMessages(t, got, want.Messages) {
				t.Errorf("%s: strict %v: %v, error %v; want %s, error %q", c.ID, strict, got, err,
					want.Messages, want.Error)
			}
		}
	})
}

// The parser is in the library's state after every token.
func TestParseGoldenTrace(t *testing.T) {
	tokens := 0
	goldentest.Each(t, goldens+"parse.jsonl.gz", func(t testing.TB, c parseCase) {
		for strict, want := range c.results(t) {
			tokens += followTrace(t, c, strict, want)
		}
	})
	t.Logf("%d tokens", tokens)
}

func followTrace(t testing.TB, c parseCase, strict bool, want parseResult) int {
	p := NewParser(c.Role, strict)
	deltas := ""
	for i, id := range c.ids() {
		err := p.Push(id)
		if failed := want.TraceError != nil && want.TraceError.At == i; failed || err != nil {
			if !failed || err == nil {
				t.Errorf("%s: strict %v: token %d: error %v, want %v", c.ID, strict, i, err,
					want.TraceError)
			}
			checkEnd(t, c, p, strict, want)
			return i
		}
		w := want.Trace[i]
		m := p.message
		field := func(f headerFields, value string) *string {
			if m.has(f, value) {
				return &value
			}
			return nil
		}
		if p.state.String() != w.State || p.Role() != w.Role || p.delta != w.Delta ||
			len(p.Messages()) != w.NMessages ||
			!reflect.DeepEqual(field(fieldChannel, p.message.Channel), w.Channel) ||
			!reflect.DeepEqual(field(fieldRecipient, p.message.Recipient), w.Recipient) ||
			!reflect.DeepEqual(field(fieldContentType, p.message.ContentType), w.ContentType) ||
			p.state == InContent && len(string(p.content)) != w.ContentBytes {
			t.Errorf("%s: strict %v: token %d: %v %+v delta %q, want %+v", c.ID, strict, i,
				p.state, m, p.delta, w)
			return i
		}
		// What was shown as it came is the text in the end.
		if deltas += p.delta; p.state == ExpectStart && string(p.content) == "" && deltas != "" {
			if all := p.Messages()[len(p.Messages())-1].Text(); all != deltas+p.rest {
				t.Errorf("%s: deltas %q and rest %q, text %q", c.ID, deltas, p.rest, all)
			}
			deltas = ""
		}
	}
	if string(p.content) != want.BeforeEOS {
		t.Errorf("%s: content %q at the end, want %q", c.ID, string(p.content), want.BeforeEOS)
	}
	if err := p.Finish(); (err != nil) != (want.EOSError != "") {
		t.Errorf("%s: strict %v: finish: %v, want %q", c.ID, strict, err, want.EOSError)
	}
	checkEnd(t, c, p, strict, want)
	return len(c.IDs)
}

func checkEnd(t testing.TB, c parseCase, p *Parser, strict bool, want parseResult) {
	if p.state.String() != want.FinalState {
		t.Errorf("%s: strict %v: ends in %v, want %s", c.ID, strict, p.state, want.FinalState)
	}
	messages := want.AtEnd
	if messages == nil {
		messages = want.Messages
	}
	if !sameMessages(t, p.Messages(), messages) {
		t.Errorf("%s: strict %v: ends with %v, want %s", c.ID, strict, p.Messages(), messages)
	}
}
