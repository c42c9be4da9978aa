// What one body costs before it is answered or refused: processor time and memory, of bodies that
// are made of very many of one thing, and of as many as are possible.

package answer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// The goals, for each 16 MiB of a body, and what this test grants beside them: a thread beside
// another on one core takes up to twice the time. A list of as many items as there may be takes as
// much memory in a small body, which is why each may take leastMemory.
const (
	goalTime    = time.Second
	goalMemory  = 8 // times the body
	grantTime   = 3
	leastMemory = 60 << 20
)

// tries is how often it measures: another program may hold the machine up for a moment.
const tries = 3

// No body takes more than its share, whatever it is made of. With OSSRUN_LONG they are as large as
// a body can be, and -v prints what each of them took.
func TestBodiesCostLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("times say nothing under the race detector")
	}
	size := 2 << 20
	if os.Getenv("OSSRUN_LONG") != "" {
		size = answer.StandardBody
	}
	const most = 131072
	m := session.NewModel(noEngine{most}, session.Options{ID: "demo",
		Scheduler: sched.Options{Settings: engine.Settings{MaxModelLen: most}}})
	h := porttest.NewChecked(t, openai.Options{Options: answer.Options{Models: answertest.Single(m,
		m.Stats, "demo")}})
	for _, c := range costlyBodies() {
		body := c.text(size)
		mostTime := goalTime*grantTime*time.Duration(len(body))/answer.StandardBody + goalTime/4
		mostMemory := max(goalMemory*len(body), leastMemory)
		took, grew := time.Duration(0), 0
		for n := range tries {
			var answer string
			took, grew, answer = c.cost(t, h, body)
			if n == 0 {
				t.Logf("%-45s %.2f s, %4.1f times: %.90s", c.name, took.Seconds(),
					float64(grew)/float64(len(body)), answer)
			}
			if took <= mostTime && grew <= mostMemory {
				break
			}
		}
		if took > mostTime || grew > mostMemory {
			t.Errorf("%s: %v of %v, %d MiB of %d", c.name, took, mostTime, grew>>20,
				mostMemory>>20)
		}
	}
}

// What no context could hold is refused by its count, in the words that clients know.
func TestTooManyAreRefused(t *testing.T) {
	srv, _ := porttest.Server(t, answertest.Answers("ok"))
	many := func(n int, piece string) string {
		return strings.TrimSuffix(strings.Repeat(piece+",", n), ",")
	}
	call := `{"id":"c","type":"function","function":{"name":"f","arguments":""}}`
	for _, c := range []struct{ path, body, param, code string }{
		{"/v1/chat/completions", `{"messages":[` + many(answer.MostMessages+1, porttest.Hello) + `]}`, "messages",
			answer.CodeContextLength},
		{"/v1/chat/completions", `{"messages":[{"role":"assistant","tool_calls":[` +
			many(answer.MostMessages+1, call) + `]}]}`, "messages[0].tool_calls", answer.CodeContextLength},
		{"/v1/responses", `{"input":[` + many(answer.MostMessages+1, porttest.Hello) + `]}`, "input",
			answer.CodeContextLength},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[` +
			many(answer.MostItems+1, `"a"`) + `]}]}`, "messages[0].content", answer.TooLong},
		{"/v1/chat/completions", `{"messages":[` + porttest.Hello + `],"bad_words":[` +
			many(answer.MostItems, `"a"`) + `]}`, "messages", answer.TooLong},
		{"/v1/completions", `{"prompt":"` + strings.Repeat("?!<~", answer.MostPrompt/2) + `"}`, "prompt",
			answer.CodeContextLength},
	} {
		r := porttest.Ask(t, "POST", srv.URL+c.path, c.body)
		var got struct{ Error struct{ Param, Code string } }
		if err := json.Unmarshal([]byte(r.Body), &got); err != nil ||
			r.Status != http.StatusBadRequest || got.Error.Param != c.param ||
			got.Error.Code != c.code {
			t.Errorf("%s %s: %d %.300s (%v)", c.path, c.param, r.Status, r.Body, err)
		}
	}
}

// cost sends the body and returns what it took, and the answer.
func (c costlyBody) cost(t *testing.T, h *porttest.Checked, body []byte) (took time.Duration,
	grew int,
	answer string) {
	t.Helper()
	debug.FreeOSMemory()
	before := resident("VmRSS")
	// a peak from here on; where there is no such file, memory is not held
	peaks := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil && runtime.GOOS == "linux"
	began := hosttest.ProcessTime()
	w := &beginning{header: http.Header{}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // what is quadratic ends too
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", c.path, bytes.NewReader(body))
	r.Host = "127.0.0.1"
	h.Handler.ServeHTTP(w, r) // what checks answers keeps them
	took = hosttest.ProcessTime() - began
	if peaks {
		grew = resident("VmHWM") - before
	}
	if ctx.Err() != nil {
		t.Errorf("%s took more than two minutes", c.name)
	}
	return took, grew, string(w.text)
}

// beginning keeps the first bytes of an answer.
type beginning struct {
	header http.Header
	text   []byte
}

func (b *beginning) Header() http.Header { return b.header }
func (b *beginning) WriteHeader(int)     {}

func (b *beginning) Write(p []byte) (int, error) {
	const most = 100
	b.text = append(b.text, p[:min(len(p), most-len(b.text))]...)
	return len(p), nil
}

// resident is a line of this process's status, in bytes.
func resident(what string) (n int) {
	b, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(b), what+":")
	_, _ = fmt.Sscan(after, &n)
	return n << 10
}

// noEngine refuses prompts that are too long, and generates nothing.
type noEngine struct{ context int }

func (n noEngine) Submit(_ context.Context, r sched.TokenRequest) (session.TokenStream, error) {
	if asked := len(r.Prompt) + 1; asked > n.context {
		return nil, &sched.ContextLengthError{Max: n.context, Asked: asked}
	}
	return nil, sched.ErrClosed
}
func (noEngine) Stats() sched.Stats { return sched.Stats{} }
func (noEngine) Close() error       { return nil }
