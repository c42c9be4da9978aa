// Responses over a WebSocket. OpenAI's SDK, its agents and Codex are the clients of
// scripttest/testdata and of .ci/agents; here are what they cannot provoke: bounds, keys, ends.

package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// dialed is a client's end of a connection.
type dialed struct {
	*websocket.Conn
	t *testing.T
}

func dial(t *testing.T, url string, header ...string) (dialed, *http.Response, error) {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	c, r, err := websocket.Dial(t.Context(), url+"/v1/responses",
		&websocket.DialOptions{HTTPHeader: h})
	if err == nil {
		c.SetReadLimit(-1)
		t.Cleanup(func() { _ = c.CloseNow() })
	}
	return dialed{c, t}, r, err
}

// mustDial is dial for a connection that is accepted.
func mustDial(t *testing.T, url string, header ...string) dialed {
	t.Helper()
	c, _, err := dial(t, url, header...)
	hosttest.Check(t, err)
	return c
}

func (c dialed) send(message string) {
	c.t.Helper()
	hosttest.Check(c.t, c.Write(c.t.Context(), websocket.MessageText, []byte(message)))
}

func (c dialed) next() porttest.Event {
	c.t.Helper()
	_, b, err := c.Read(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	m := porttest.Decode(c.t, string(b))
	return porttest.Event{Name: m["type"].(string), Data: string(b), Json: m}
}

// ends are the events after which nothing of a response follows.
var ends = []string{"response.completed", "response.failed", "response.incomplete", "error"}

// response reads events to the end of a response, and checks them.
func (c dialed) response() (last porttest.Event) {
	c.t.Helper()
	var list []porttest.Event
	for !slices.Contains(ends, last.Name) {
		last = c.next()
		list = append(list, last)
	}
	if last.Name == "error" {
		porttest.Conform(c.t, "ErrorResponse", map[string]any{"error": last.Json["error"]})
	} else {
		porttest.ConformResponses(c.t, list)
	}
	return last
}

// ask sends a response.create with members and returns its last event.
func (c dialed) ask(members string, args ...any) porttest.Event {
	c.t.Helper()
	c.send(`{"type":"response.create",` + fmt.Sprintf(members, args...) + `}`)
	return c.response()
}

func (c dialed) closes(code websocket.StatusCode) {
	c.t.Helper()
	_, b, err := c.Read(c.t.Context())
	if got := websocket.CloseStatus(err); got != code {
		c.t.Errorf("closed with %v, %v %s, not %v", got, err, b, code)
	}
}

func idOf(e porttest.Event) string {
	id, _ := porttest.At(e.Json, "response", "id").(string)
	return id
}

// echoes answers with the conversation that it gets.
func echoes(r session.Request) ([]session.Event, error) {
	if r.PromptOnly {
		return []session.Event{sessiontest.Done(session.FinishLength)}, nil
	}
	return sessiontest.Answers("[" + sessiontest.History(r) + "]")(r)
}

// Each message is a request of its own on one connection, and each kind of fault is an event.
func TestSocketMessages(t *testing.T) {
	srv, _ := porttest.Server(t, echoes, func(o *openai.Options) { o.MaxBody = 4000 })
	c := mustDial(t, srv.URL)
	for _, m := range []struct{ message, want string }{
		{`{"type":"response.create","input":"one"}`, `[user: one]`},
		{`{"type":"response.create","input":"two","stream":false}`, `[user: two]`},
		{`{"type":"response.create","input":"x","stream_id":"a\"b"}`, `"stream_id":"a\"b"`},
		{`{"type":"response.create","input":"x","stream_id":"l","temperature":9}`,
			`{"type":"error","status":400,"stream_id":"l","error":{"message":"temperature is 9`},
		{`{"type":"response.create","input":"x","model":"llama3"}`, `"status":404`},
		{`{"type":"response.create","input":"x","background":true}`,
			"background must be false on a WebSocket"},
		{`{"type":"response.create"}`, `"param":"input"`},
		{`{"type":"response.create",`, "line 1"},
		{`[]`, "expected an object"},
		{`{"type":"response.creat"}`, `type is \"response.creat\"`},
		{`{"type":7}`, "input"},
		{`{}`, `must be response.create`},
		{`{"type":"response.processed","response_id":"resp_1"}`, ""},
		{`{"type":"response.create","input":"three"}`, `[user: three]`},
	} {
		if c.send(m.message); m.want == "" {
			continue
		}
		if got := c.response(); !strings.Contains(got.Data, m.want) {
			t.Errorf("%s: %s, not %s", m.message, got.Data, m.want)
		}
	}
	c.send(`{"type":"response.create","input":"` + strings.Repeat("x", 4000) + `"}`)
	if e := c.response(); porttest.At(e.Json, "error", "code") != "request_too_large" ||
		e.Json["status"] != 413.0 {
		t.Errorf("too large: %s", e.Data)
	}
	c.closes(websocket.StatusMessageTooBig)
}

// A connection remembers its responses that are not stored, no other one finds them, and nothing
// is left of them. A continuation that fails is forgotten.
func TestSocketRemembersWhatIsNotStored(t *testing.T) {
	folder := t.TempDir()
	store := hosttest.Must(records.Open(records.Options{File: folder + "/kept.db",
		TTL: records.RememberedFor}))(t)
	defer func() { hosttest.Check(t, store.Close()) }()
	srv, _ := porttest.Server(t, echoes, func(o *openai.Options) { o.Store = store })
	c, other := mustDial(t, srv.URL), mustDial(t, srv.URL)
	text := func(e porttest.Event) string {
		m := porttest.LastItem(e.Json["response"], "message")
		s, _ := porttest.At(m, "content", 0, "text").(string)
		return s
	}
	const unstored = `"store":false,"input":"%s","previous_response_id":"%s"`
	first := c.ask(`"store":false,"input":"one"`)
	second := c.ask(unstored, "two", idOf(first))
	const want = "[user: one\nassistant <analysis>: They ask. I answer.\n" +
		"assistant <final>: [user: one]\nuser: two]"
	if got := text(second); got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if got := text(c.ask(unstored, "fork", idOf(first))); !strings.HasSuffix(got, "user: fork]") ||
		strings.Contains(got, "two") {
		t.Errorf("a second continuation: %q", got)
	}
	warm := c.ask(`"store":false,"generate":false,"input":"warm"`)
	if warm.Name != "response.completed" ||
		len(porttest.At(warm.Json, "response", "output").([]any)) != 0 {
		t.Errorf("generate false: %s", warm.Data)
	}
	if got := text(c.ask(unstored, "go", idOf(warm))); got != "[user: warm\nuser: go]" {
		t.Errorf("after a warm-up: %q", got)
	}
	unknown := func(what string, e porttest.Event) {
		t.Helper()
		if e.Json["status"] != 400.0 ||
			porttest.At(e.Json, "error", "code") != "previous_response_not_found" {
			t.Errorf("%s: %s", what, e.Data)
		}
	}
	unknown("another connection", other.ask(unstored, "x", idOf(second)))
	unknown("the oldest of five", c.ask(unstored, "x", idOf(first)))
	for _, path := range []string{"", "/input_items"} {
		r := porttest.Ask(t, "GET", srv.URL+"/v1/responses/"+idOf(second)+path, "")
		porttest.WantFault(t, r, 404, fields.KindInvalid, "response_id", "", "not found")
	}
	latest := c.ask(`"store":false,"input":"latest"`)
	lost := c.ask(`"store":false,"input":[{"type":"function_call_output","call_id":"call_x",`+
		`"output":"y"}],"previous_response_id":"%s"`, idOf(latest))
	if lost.Name != "error" || !strings.Contains(lost.Data, "no tool call has the call_id") {
		t.Errorf("an output without its call: %s", lost.Data)
	}
	unknown("after a failure", c.ask(unstored, "x", idOf(latest)))
	// a stored one stays, also for others
	kept := c.ask(`"input":"kept"`)
	if got := text(other.ask(unstored, "x", idOf(kept))); !strings.Contains(got, "kept") {
		t.Errorf("a stored response: %q", got)
	}
	onDisk := ""
	for _, file := range hosttest.Must(os.ReadDir(folder))(t) {
		onDisk += string(hosttest.Must(os.ReadFile(filepath.Join(folder, file.Name())))(t))
	}
	if !strings.Contains(onDisk, "kept") || strings.Contains(onDisk, "latest") {
		t.Error("the disk has not the stored response alone")
	}
	hosttest.Check(t, c.Close(websocket.StatusNormalClosure, ""))
	hosttest.Check(t, other.Close(websocket.StatusNormalClosure, ""))
	hosttest.Until(t, "only the stored response is left", func() bool {
		list := store.List(records.KindResponse)
		return len(list) == 1 && list[0].Key == idOf(kept)
	})
}

// Results of calls that are in the conversation continue it, in both forms.
func TestSocketTakesResults(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Agent)
	c := mustDial(t, srv.URL)
	const tool = `"store":false,"tools":[{"type":"function","name":"f","parameters":{}}],`
	called := c.ask(tool + `"input":"go"`)
	call, _ := porttest.LastItem(called.Json["response"], "function_call")["call_id"].(string)
	result := `{"type":"function_call_output","call_id":"` + call + `","output":"3"}`
	if e := c.ask(tool+`"input":[%s],"previous_response_id":"%s"`, result, idOf(called)); e.Name !=
		"response.completed" {
		t.Errorf("the result of a call: %s", e.Data)
	}
	// one that comes with its call
	e := c.ask(tool+`"input":[{"type":"function_call","call_id":"call_2","name":"f",`+
		`"arguments":"{}"},{"type":"function_call_output","call_id":"call_2","output":"3"}],`+
		`"previous_response_id":"%s"`, idOf(called))
	if e.Name != "response.completed" {
		t.Errorf("a call with its result: %s", e.Data)
	}
}

// Responses of one lane run in turn, those of two at once; a message beyond the bound is refused.
// Each connection has its bound.
func TestSocketLanes(t *testing.T) {
	gates := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
	srv, _ := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
		if gate := gates[r.Messages[0].Text()]; gate != nil {
			<-gate
		}
		return sessiontest.Answers("ok")(r)
	})
	c, full := mustDial(t, srv.URL), mustDial(t, srv.URL)
	create := func(c dialed, lane, input string) {
		c.send(`{"type":"response.create","store":false,"input":"` + input + `","stream_id":"` +
			lane + `"}`)
	}
	create(c, "one", "a")
	create(c, "one", "second of one")
	create(c, "two", "b")
	create(c, "three", "free")
	if e := c.response(); e.Json["stream_id"] != "three" {
		t.Errorf("%s ended first", e.Data)
	}
	close(gates["b"])
	if e := c.response(); e.Json["stream_id"] != "two" {
		t.Errorf("%s ended second", e.Data)
	}
	create(full, "one", "a")
	for range 15 {
		create(full, "one", "x")
	}
	create(full, "two", "one too many")
	if e := full.next(); e.Json["status"] != 429.0 || e.Json["stream_id"] != "two" {
		t.Errorf("the 17th: %s", e.Data)
	}
	close(gates["a"])
	for range 2 {
		if e := c.response(); e.Name != "response.completed" || e.Json["stream_id"] != "one" {
			t.Errorf("%s", e.Data)
		}
	}
	for range 16 {
		if e := full.response(); e.Name != "response.completed" {
			t.Errorf("%s", e.Data)
		}
	}
}

// Who may connect is decided at the upgrade, as for any request.
func TestSocketAdmits(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"),
		func(o *openai.Options) { o.APIKey, o.Origins = "secret", []string{"https://app.example"} })
	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{"Authorization", "Bearer secret"}, 101},
		{[]string{"Authorization", "Bearer secret", "Origin", "https://app.example"}, 101},
		{[]string{"Authorization", "Bearer secret", "Origin", "https://evil.example"}, 403},
		{[]string{"Authorization", "Bearer wrong"}, 401},
		{nil, 401},
	} {
		conn, r, err := dial(t, srv.URL, c.header...)
		if r == nil || r.StatusCode != c.status || (err == nil) != (c.status == 101) {
			t.Errorf("%v: %v %v", c.header, r, err)
		} else if err == nil {
			if e := conn.ask(`"input":"x"`); e.Name != "response.completed" {
				t.Errorf("%v: %s", c.header, e.Data)
			}
		}
	}
}

// A removed key ends its connection after an event that says so, and no other one.
func TestSocketOfARemovedKey(t *testing.T) {
	var n named
	var ring *keys.Ring
	p := live(t, engine.Settings{}, withKeys(t, &n, records.NewStore()),
		func(o *openai.Options) { ring = o.Keys })
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { ring.Watch(ctx); close(watched) }()
	defer func() { cancel(); <-watched }()
	n.add(t, "alice", nil)
	n.add(t, "bob", nil)
	idle := mustDial(t, p.URL, "Authorization", "Bearer "+n.keys["alice"])
	runs := mustDial(t, p.URL, "Authorization", "Bearer "+n.keys["alice"])
	bobs := mustDial(t, p.URL, "Authorization", "Bearer "+n.keys["bob"])
	idle.ask(`"store":false,"input":"x","max_output_tokens":16`)
	p.stage.hold()
	runs.send(`{"type":"response.create","input":"x"}`)
	hosttest.Until(t, "one runs", func() bool { return p.model.Stats().Running == 1 })
	hosttest.Check(t, keys.Change(n.path, func(all []keys.Key) ([]keys.Key, error) {
		i := keys.Index(all, "alice")
		return slices.Delete(all, i, i+1), nil
	}))
	idle.closes(websocket.StatusPolicyViolation)
	p.stage.free()
	if e := runs.response(); e.Name != "response.failed" ||
		!strings.Contains(e.Data, "this API key was removed") {
		t.Errorf("what ran: %s", e.Data)
	}
	runs.closes(websocket.StatusPolicyViolation)
	if e := bobs.ask(`"input":"x","max_output_tokens":16`); e.Name == "error" {
		t.Errorf("bob: %s", e.Data)
	}
}

// A client that leaves ends what it runs; a stopping server ends connections after their responses.
func TestSocketEnds(t *testing.T) {
	p := live(t, engine.Settings{}, func(o *openai.Options) { o.Silence = time.Hour })
	c := mustDial(t, p.URL)
	p.stage.hold()
	c.send(`{"type":"response.create","input":"x","ignore_eos":true}`)
	id := idOf(c.next())
	hosttest.Until(t, "one runs", func() bool { return p.model.Stats().Running == 1 })
	hosttest.Check(t, c.CloseNow())
	hosttest.Until(t, "it is stored as cancelled, although no step ends", func() bool {
		r := porttest.Ask(t, "GET", p.URL+"/v1/responses/"+id, "")
		return r.Status == 200 && porttest.Decode(t, r.Body)["status"] == "cancelled"
	})
	p.stage.free()
	hosttest.Until(t, "none runs", func() bool { return p.model.Stats().Running == 0 })

	gate := make(chan struct{})
	f := &sessiontest.Model{Script: porttest.Slowly(gate)}
	o := openai.Options{}
	o.Models = sessiontest.Single(f, f.Now)
	handler := porttest.NewChecked(t, o)
	defer handler.Close()
	srv := httptest.NewServer(handler)
	defer srv.Close()
	idle, runs := mustDial(t, srv.URL), mustDial(t, srv.URL)
	runs.send(`{"type":"response.create","input":"x"}`)
	hosttest.Until(t, "one runs", func() bool { return f.Active() == 1 })
	handler.GiveUp()
	idle.closes(websocket.StatusGoingAway)
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	handler.Await(cut) // it returns though one is open
	close(gate)
	if e := runs.response(); e.Name != "response.completed" {
		t.Errorf("what ran: %s", e.Data)
	}
	runs.closes(websocket.StatusGoingAway)
	handler.Await(t.Context())
	late, _, err := dial(t, srv.URL)
	if err == nil {
		late.closes(websocket.StatusGoingAway)
	}
}

// A turn that cannot start is a fault's event with its status.
func TestSocketFault(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Fails(errors.New("broken")))
	c := mustDial(t, srv.URL)
	e := c.ask(`"input":"x"`)
	if e.Name != "error" || e.Json["status"] != 500.0 {
		t.Errorf("%s", e.Data)
	}
}
