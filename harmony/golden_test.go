package harmony

// The goldens in testdata/harmony were made with OpenAI's own Harmony library.

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/internal/goldentest"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
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
		text := hosttest.Must(json.Marshal(messages))(t)
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

// stricter are the cases that OpenAI's library accepts and the reader finds faults in, with their
// kinds. The library has special tokens and tokens of nothing as text, channels and roles of any
// name, and loses words of a header; no client could use the result.
var stricter = map[string]string{
	"call-empty-to": "header", "call-direct-empty-to": "header", "malformed-24": "channel",
	"malformed-25": "end", "malformed-26": "end", "malformed-31": "stray", "malformed-42": "role",
	"malformed-43": "header", "malformed-44": "stray", "malformed-45": "stray",
	"malformed-46": "stray", "malformed-47": "channel header", "malformed-53": "channel",
	"unknown-token-200000": "stray", "unknown-token-201088": "token",
	"unknown-token-201089": "token", "unknown-token-999999": "token", "unknown-token-eos": "token",
	"reserved-in-header": "stray", "token-max": "token", "utf8-then-special": "channel message end",
	"utf8-header": "channel", "mut-09": "role message end", "mut-17": "stray",
	"mut-21": "start message", "mut-22": "channel message", "mut-26": "stray",
	"mut-35": "header stray", "mut-36": "channel header stray", "mut-41": "stray", "mut-47": "role",
	"mut-57": "role", "mut-59": "end",
}

// A case that the library refuses has a fault, or ends in a header. An accepted one gives its
// messages, except the cases above. If the library tolerates a header without <|message|>, that is
// the fault.
func TestParseGolden(t *testing.T) {
	refused, other := 0, 0
	goldentest.Each(t, goldens+"parse.jsonl.gz", func(t testing.TB, c parseCase) {
		got, err := ReadLegal(c.ids(), c.Role)
		_, faults := ReadAll(c.ids(), c.Role)
		if !bytes.Equal(c.NonStrict, []byte(`"same"`)) && faults[FaultMessage] == 0 {
			t.Errorf("%s: a header without <|message|> is no fault, but %s", c.ID, faults)
		}
		switch kinds, ok := stricter[c.ID]; {
		case c.Strict.Error != "":
			refused++
			if err == nil || ok {
				t.Errorf("%s: %v; the library says %q", c.ID, got, c.Strict.Error)
			}
		case ok:
			other++
			if err == nil || faults.String() != kinds {
				t.Errorf("%s: %v has the faults %s", c.ID, got, faults)
			}
		case err != nil || !sameMessages(t, asTheLibrary(got), c.Strict.Messages):
			t.Errorf("%s: %v, %v; the library reads %s", c.ID, got, err, c.Strict.Messages)
		}
	})
	if refused != 82 || other != len(stricter) {
		t.Errorf("%d are refused by both, %d by the reader alone", refused, other)
	}
}

func sameMessages(t testing.TB, got []Message, want []json.RawMessage) bool {
	t.Helper()
	text := hosttest.Must(json.Marshal(got))(t)
	var a, b []any
	hosttest.Check(t, json.Unmarshal(text, &a))
	for _, m := range want {
		var v any
		hosttest.Check(t, json.Unmarshal(m, &v))
		b = append(b, v)
	}
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// asTheLibrary treats a content type that is alone as a recipient.
func asTheLibrary(messages []Message) []Message {
	for i := range messages {
		if m := &messages[i]; m.Recipient == "" && strings.HasPrefix(m.ContentType, constrainMark) {
			m.Recipient, m.ContentType = m.ContentType, ""
		}
	}
	return messages
}

// The reader is in the library's state after every token, up to the first fault.
func TestParseGoldenTrace(t *testing.T) {
	tokens, all := 0, 0
	goldentest.Each(t, goldens+"parse.jsonl.gz", func(t testing.TB, c parseCase) {
		tokens += followTrace(t, c)
		all += len(c.IDs)
	})
	t.Logf("%d of %d tokens", tokens, all)
	if tokens < 1800 {
		t.Error("too few of them are legal")
	}
}

// earlier are the cases with invalid UTF-8, after which the reader shows the text at once and the
// library a token later.
var earlier = []string{"utf8-invalid-mid", "utf8-surrogate", "invalid-token-then-text"}

func followTrace(t testing.TB, c parseCase) int {
	// text shown so far of the open message
	var text, theirs string
	r, want := NewReader(c.Role), c.Strict
	for i, id := range c.ids() {
		if r.Push(id); r.Faults().Total() > 0 || want.TraceError != nil && want.TraceError.At == i {
			return i
		}
		w := want.Trace[i]
		m := []Message{r.Current()}
		if m[0].Role == "" {
			m[0].Role = r.role
		}
		is := asTheLibrary(m)[0]
		field := func(name *string) string {
			if name == nil {
				return ""
			}
			return *name
		}
		if text += r.Delta(); r.State() != InContent {
			if n := len(r.Messages()); text != "" && r.Messages()[n-1].Text() != text+r.Rest() {
				t.Errorf("%s: deltas %q and rest %q, text %q", c.ID, text, r.Rest(),
					r.Messages()[n-1].Text())
			}
			text, theirs = "", ""
		} else {
			theirs += w.Delta
		}
		if text != theirs && slices.Contains(earlier, c.ID) && strings.HasPrefix(text, theirs) {
			continue
		}
		if r.State().String() != w.State || is.Role != w.Role || text != theirs ||
			len(r.Messages()) != w.NMessages || is.Channel != field(w.Channel) ||
			is.Recipient != field(w.Recipient) || is.ContentType != field(w.ContentType) ||
			len(text) != w.ContentBytes {
			t.Errorf("%s: token %d: %v %+v delta %q, want %+v", c.ID, i, r.State(), is, r.Delta(), w)
			return i
		}
	}
	if text != want.BeforeEOS || (r.State() == InHeader) != (want.EOSError != "") {
		t.Errorf("%s: ends in %v with %q, want %q, %q", c.ID, r.State(), text, want.BeforeEOS,
			want.EOSError)
	}
	return len(c.IDs)
}
