package harmony

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/internal/goldentest"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// headerCase is a line of testdata/headers.jsonl: observed model output, by the issue that reports
// it.
type headerCase struct {
	Source, Text string
	Want         []struct {
		Role, Channel, Recipient, Type, Text string
		Call, Cut                            bool
	}
	Faults string // kinds that must be counted, and no others
}

func TestHeadersOfTheIssues(t *testing.T) {
	goldentest.Each(t, "testdata/headers.jsonl", func(t testing.TB, c headerCase) {
		ids := token.Get().EncodeSpecial(nil, c.Text, nil)
		got, faults := ReadAll(ids, RoleAssistant)
		checkNothingLost(t, ids, got)
		if len(got) != len(c.Want) {
			t.Errorf("%s: %d messages, want %d: %+v", c.Source, len(got), len(c.Want), got)
			return
		}
		for i, w := range c.Want {
			if w.Role == "" {
				w.Role = "assistant"
			}
			m := got[i]
			if m.Role != Role(w.Role) || m.Channel != w.Channel || m.Recipient != w.Recipient ||
				m.ContentType != w.Type ||
				m.Text() != w.Text || m.Calls() != w.Call || m.Calls() && m.Complete() == w.Cut {
				t.Errorf("%s: message %d is %+v (calls %v, complete %v), want %+v", c.Source, i, m,
					m.Calls(), m.Complete(), w)
			}
		}
		kinds, want := strings.Fields(faults.String()), strings.Fields(c.Faults)
		slices.Sort(want)
		slices.Sort(kinds)
		if !slices.Equal(kinds, want) {
			t.Errorf("%s: faults %v, want %v", c.Source, kinds, want)
		}
	})
}

// checkNothingLost checks the promise of Reader: bytes in are bytes out, without the text of
// special tokens.
func checkNothingLost(t testing.TB, ids []int32, got []ReadMessage) {
	t.Helper()
	at := 0
	ordinary := func(ids []int32) (b []byte) {
		for _, id := range ids {
			if id >= 0 && id < token.StartOfText {
				b = append(b, token.Get().TokenBytes(id)...)
			}
		}
		return b
	}
	for i, m := range got {
		if m.From != at || m.To < m.From {
			t.Fatalf("%v: message %d has the tokens %d to %d, the one before ended at %d", ids, i,
				m.From, m.To, at)
		}
		at = m.To
		if in, out := ordinary(ids[m.From:m.To]),
			string(m.Header)+string(m.Body); string(in) != out {
			t.Fatalf("%v: message %d: %q in, %q out", ids, i, in, out)
		}
		if m.Text() != token.Text(m.Body) || !m.Role.IsValid() {
			t.Fatalf("%v: message %d: role %q, text %q of %q", ids, i, m.Role, m.Text(), m.Body)
		}
		if strings.Contains(m.Recipient+m.Name+m.Channel, "<|") {
			t.Fatalf("%v: a special token's name in %+v", ids, m.Message)
		}
	}
	if rest := ordinary(ids[at:]); len(rest) > 0 {
		t.Fatalf("%v: %q is in no message", ids, rest)
	}
}

// The concatenated deltas are the message's text, for any input.
func checkStream(t testing.TB, ids []int32, role Role) {
	t.Helper()
	r := NewReader(role)
	shown, done := "", 0
	check := func() {
		if n := len(r.Messages()); n == done+1 {
			if all := r.Messages()[done].Text(); shown+r.Rest() != all {
				t.Fatalf("%v: showed %q and %q of %q", ids, shown, r.Rest(), all)
			}
			shown, done = "", n
		} else if n != done || r.Rest() != "" {
			t.Fatalf("%v: %d messages after %d, rest %q", ids, n, done, r.Rest())
		}
		shown += r.Delta()
	}
	for _, id := range ids {
		r.Push(id)
		check()
	}
	r.Finish()
	check()
	if shown != "" {
		t.Fatalf("%v: %q belongs to no message", ids, shown)
	}
}

// FuzzReader: no ids make it fail or lose a byte, and messages can be written and read again.
func FuzzReader(f *testing.F) {
	f.Add([]byte{3, 102, 2, 104, 1}, true)
	f.Add([]byte{0, 96, 100, 3, 103, 104, 6, 105, 2, 200, 201, 5, 0, 96, 3, 102, 2, 250, 4}, false)
	f.Fuzz(func(t *testing.T, raw []byte, prompted bool) {
		role := Role("")
		if prompted {
			role = RoleAssistant
		}
		ids := fuzzIDs(raw)
		got, _ := ReadAll(ids, role)
		checkNothingLost(t, ids, got)
		checkStream(t, ids, role)
		for _, m := range got {
			text, err := json.Marshal(m.Message)
			if err != nil {
				t.Fatalf("%+v: %v %s", m, err, text)
			}
			var again Message
			if err := json.Unmarshal(text, &again); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if m.Role == RoleTool && m.Name == "" {
				continue
			}
			a, err1 := RenderMessage(nil, m.Message, RenderOptions{})
			b, err2 := RenderMessage(nil, again, RenderOptions{})
			if err1 != nil || err2 != nil || !slices.Equal(a, b) {
				t.Fatalf("%s renders as %v, %v and %v, %v", text, a, err1, b, err2)
			}
		}
	})
}

// The headers of the issues, cut and combined in every way, lose nothing either.
func TestNothingIsLostOfPieces(t *testing.T) {
	raw := hosttest.Must(os.ReadFile("testdata/headers.jsonl"))(t)
	var all []int32
	for line := range strings.Lines(string(raw)) {
		var c headerCase
		hosttest.Check(t, json.Unmarshal([]byte(line), &c))
		ids := token.Get().EncodeSpecial(nil, c.Text, nil)
		for n := range ids {
			got, _ := ReadAll(ids[:n], RoleAssistant)
			checkNothingLost(t, ids[:n], got)
			checkStream(t, ids[n:], "")
		}
		all = append(all, ids...)
	}
	got, _ := ReadAll(all, RoleAssistant)
	checkNothingLost(t, all, got)
}

// A million tokens are read in any position: quadratic work would exceed a test's time limit.
func TestReaderIsLinear(t *testing.T) {
	word := token.Get().Encode(nil, " word")[0]
	for _, id := range []int32{word, 187, 1 << 20, token.Start, token.Channel, token.Constrain,
		token.Message, token.End} {
		r := NewReader(RoleAssistant)
		for range 1_000_000 {
			r.Push(id)
		}
		r.Finish()
	}
}

func BenchmarkReader(b *testing.B) {
	var ids []int32
	for len(ids) < 4096 {
		ids = token.Get().Encode(ids,
			"The quick brown fox jumps over the lazy dog; größer ist 漢字, und 1234 € sind viel. ")
	}
	open := token.Get().EncodeSpecial(nil, "<|channel|>final<|message|>", nil)
	for b.Loop() {
		r := NewReader(RoleAssistant)
		for _, id := range open {
			r.Push(id)
		}
		shown := 0
		for _, id := range ids {
			r.Push(id)
			shown += len(r.Delta())
		}
		r.Finish()
		if shown == 0 {
			b.Fatal("nothing")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/token")
}
