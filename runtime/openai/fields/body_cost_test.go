// What one body costs before it is answered or refused: processor time and memory, of bodies that
// are made of very many of one thing, and of as many as are possible.

package fields_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// What a body of counted bytes may allocate until it is answered or refused: so many times its
// size, and so many times what an eighth of it does.
const (
	counted       = 256 << 10
	mostAllocated = 400
	mostGrowth    = 10.5
)

// costlyHandler serves a model that refuses long prompts and generates nothing.
func costlyHandler(t *testing.T) *porttest.Checked {
	const most = 131072
	m := session.NewModel(noEngine{most}, session.Options{ID: "demo",
		Scheduler: sched.Options{Settings: engine.Settings{MaxModelLen: most}}})
	return porttest.NewChecked(t, openai.Options{Options: answer.Options{
		Models: sessiontest.Single(m, m.Stats, "demo")}})
}

// No body costs more than its share, for any content. The test counts allocated bytes, which do not
// depend on the machine: repeated decoding, copies for each piece, and quadratic work show in them.
func TestBodiesCostLittle(t *testing.T) {
	h := costlyHandler(t)
	for _, c := range costlyBodies() {
		little, _ := c.allocates(t, h, counted/8)
		n, text := c.allocates(t, h, counted)
		growth := float64(n) / float64(max(little, counted))
		t.Logf("%-45s %5.1f times, %4.1f of an eighth: %.90s", c.name, float64(n)/counted, growth,
			text)
		if n > mostAllocated*counted || growth > mostGrowth {
			t.Errorf("%s: %d KiB of %d are allocated, %.1f times as much as for an eighth of it",
				c.name, n>>10, mostAllocated*counted>>10, growth)
		}
	}
}

// What the largest bodies take: a second of processor time and eight times the body, with what a
// thread next to it adds.
func TestMeasureBodies(t *testing.T) {
	if os.Getenv("OSSRUN_MEASURE") == "" {
		t.Skip("a figure of a quiet machine: .ci/long measure")
	}
	const size, mostTime, mostMemory = answer.StandardBody, 3 * time.Second, 8 * answer.StandardBody
	h := costlyHandler(t)
	for _, c := range costlyBodies() {
		body := c.text(size)
		debug.FreeOSMemory()
		before := resident("VmRSS")
		// a peak from here on; without this file memory is not checked
		peaks := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil
		began, grew := hosttest.ProcessTime(), 0
		text := c.ask(t, h, body)
		took := hosttest.ProcessTime() - began
		if peaks {
			grew = resident("VmHWM") - before
		}
		t.Logf("%-45s %.2f s, %4.1f times: %.90s", c.name, took.Seconds(),
			float64(grew)/float64(len(body)), text)
		if took > mostTime || grew > mostMemory {
			t.Errorf("%s: %v of %v, %d MiB of %d", c.name, took, mostTime, grew>>20, mostMemory>>20)
		}
	}
}

// What no context could hold is refused by its count, in the words that clients know.
func TestTooManyAreRefused(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	many := func(n int, piece string) string {
		return strings.TrimSuffix(strings.Repeat(piece+",", n), ",")
	}
	call := `{"id":"c","type":"function","function":{"name":"f","arguments":""}}`
	for _, c := range []struct{ path, body, param, code string }{
		{"/v1/chat/completions", `{"messages":[` + many(fields.MostMessages+1, porttest.Hello) +
			`]}`, "messages", fields.CodeContextLength},
		{"/v1/chat/completions", `{"messages":[{"role":"assistant","tool_calls":[` +
			many(fields.MostMessages+1, call) + `]}]}`, "messages[0].tool_calls",
			fields.CodeContextLength},
		{"/v1/responses", `{"input":[` + many(fields.MostMessages+1, porttest.Hello) + `]}`,
			"input", fields.CodeContextLength},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[` +
			many(fields.MostItems+1, `"a"`) + `]}]}`, "messages[0].content", fields.TooLong},
		{"/v1/chat/completions", `{"messages":[` + porttest.Hello + `],"bad_words":[` +
			many(fields.MostItems, `"a"`) + `]}`, "messages", fields.TooLong},
		{"/v1/completions", `{"prompt":"` + strings.Repeat("?!<~", fields.MaxPrompt/2) + `"}`,
			"prompt", fields.CodeContextLength},
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

// allocates sends a body of size bytes, and returns the bytes that were allocated and the answer's
// beginning.
func (c costlyBody) allocates(t *testing.T, h *porttest.Checked, size int) (n int, text string) {
	t.Helper()
	body, before := c.text(size), allocated()
	text = c.ask(t, h, body)
	return allocated() - before, text
}

// novelties make each of hostileBodies new to the caches.
var novelties int

// hostileBodies cost much before they are admitted.
func hostileBodies() (all []costlyBody) {
	novelties++
	n := novelties
	list := func(count int, one func(i int) string) string {
		all := make([]string, count)
		for i := range all {
			all[i] = one(i)
		}
		return strings.Join(all, ",")
	}
	add := func(name, member string) {
		all = append(all, costlyBody{name: name, path: "/v1/chat/completions",
			begin: `{"model":"demo","max_tokens":1,` + member + `}`, piece: func(int) string {
				return strings.Repeat(" ", counted)
			}})
	}
	schema := func(name, s string) {
		add(name, `"messages":[`+porttest.Hello+`],"response_format":{"type":"json_schema",`+
			`"json_schema":{"name":"x","schema":`+s+`}}`)
	}
	user := func(name, content string) {
		add(name, `"messages":[{"role":"user","content":`+content+`}]`)
	}
	schema("enum", `{"enum":[`+list(90_000, func(i int) string {
		return fmt.Sprintf(`"v%d-%d"`, n, i)
	})+`]}`)
	add("tools", `"messages":[`+porttest.Hello+`],"tools":[`+list(4000, func(i int) string {
		return fmt.Sprintf(`{"type":"function","function":{"name":"f%d_%d","parameters":`+
			`{"type":"object","properties":{"a":{"type":"string","maxLength":%d}}}}}`, n, i, i+1)
	})+`]`)
	user("parts", `[`+list(100_000, func(int) string {
		return `{"type":"text","text":"abcdefgh "}`
	})+`]`)
	user("text", `"`+strings.Repeat(fmt.Sprintf("w%d ", n), 1<<18)+`"`)
	schema("patterns", fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string","pattern":`+
		`"(a|b)*a(a|b){12}%d"},"b":{"type":"string","pattern":"(a|b)*b(a|b){12}%d"}}}`, n, n))
	return all
}

// The work for a request ends with its client: almost nothing is allocated if the client
// disconnects after its body, and less than all if it does so halfway.
func TestPreparationEndsWithItsClient(t *testing.T) {
	if testing.Short() {
		t.Skip("allocations are counted, and -short runs go with the race detector")
	}
	h := costlyHandler(t)
	for i, c := range hostileBodies() {
		whole, want := c.allocates(t, h, counted)
		for n, most := range []int{whole / 10, whole * 11 / 20} {
			c := hostileBodies()[i]
			ctx, leave := context.WithCancel(t.Context())
			body := io.Reader(bytes.NewReader(c.text(counted)))
			before, left := allocated(), 0
			goes := func() { leave(); left = allocated() }
			var client sync.WaitGroup
			if n == 0 {
				body = io.MultiReader(body, atEnd(goes))
			} else {
				client.Go(func() {
					for ctx.Err() == nil && allocated()-before < whole*4/10 {
						time.Sleep(100 * time.Microsecond)
					}
					goes()
				})
			}
			got := c.serve(ctx, h, body)
			leave()
			end := allocated()
			client.Wait()
			if more := end - left; more > most || n == 0 && got == want {
				t.Errorf("%s: %d of %d KiB were allocated for a client that had left, who got %s",
					c.name, more>>10, whole>>10, got)
			}
		}
	}
}

// atEnd calls it where a body ends.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) { f(); return 0, io.EOF }

// ask sends the body and returns the answer's beginning.
func (c costlyBody) ask(t *testing.T, h *porttest.Checked, body []byte) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // quadratic work ends too
	defer cancel()
	text := c.serve(ctx, h, bytes.NewReader(body))
	if ctx.Err() != nil {
		t.Errorf("%s took more than two minutes", c.name)
	}
	return text
}

func (c costlyBody) serve(ctx context.Context, h *porttest.Checked, body io.Reader) string {
	w := &beginning{header: http.Header{}}
	r := httptest.NewRequestWithContext(ctx, "POST", c.path, body)
	r.Host = "127.0.0.1"
	h.Handler.ServeHTTP(w, r) // what checks answers keeps them
	return string(w.text)
}

// allocated is how many bytes this process has allocated so far.
func allocated() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.TotalAlloc)
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
		return nil, &sched.ContextLengthError{Max: n.context, Needed: asked}
	}
	return nil, sched.ErrClosed
}
func (noEngine) Stats() sched.Stats { return sched.Stats{} }
func (noEngine) Close() error       { return nil }
