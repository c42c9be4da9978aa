package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// Over every transport: the tools are offered, called, and each conversation has its own session.
func TestTransports(t *testing.T) {
	t.Setenv("SECRET", "secret") // which a process is not given
	hold := func(t *testing.T, given string, server Server, little time.Duration) {
		s, notes := open(t, Options{}, server)
		if len(notes) != 1 || !strings.Contains(notes[0], "longer than 64 KiB") {
			t.Error(notes)
		}
		tool, r := conversation(t, s)
		var names []string
		for _, f := range r.Functions {
			names = append(names, strings.TrimPrefix(f.Name, server.Name+"_"))
			if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(f.Name) {
				t.Errorf("%q cannot stand in a header", f.Name)
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got !=
			"bad_schema count die echo_text fail huge long_schema slow" {
			t.Error(got)
		}
		if _, err := countTokens(r.Functions); err != nil {
			t.Error(err)
		}
		on := "functions." + server.Name + "_"
		says(t, tool, on+"echo_text", `{"text":"Grüße 😀"}`,
			"Grüße 😀\n[an image, image/png, 3 bytes: it cannot be shown]")
		says(t, tool, on+"count", `{}`, "call 1 "+given+"\n")
		says(t, tool, on+"count", `{}`, "call 2 "+given+"\n")
		says(t, tool, on+"bad_schema", `{}`, "fine")
		fails(t, tool, on+"fail", `{}`, "no such file")
		fails(t, tool, on+"fail", `[1]`, "not a JSON object")
		minutes := s.o.Time
		s.o.Time = little
		fails(t, tool, on+"slow", `{}`, fmt.Sprint("did not answer within ", little))
		s.o.Time = minutes
		says(t, tool, on+"count", `{}`, "call 3 "+given+"\n")
		other, _ := conversation(t, s)
		says(t, other, on+"count", `{}`, "call 1 "+given+"\n")
	}
	everyTransport(t, "far", func(t *testing.T, s Server) { hold(t, "secret", s, 4*time.Second) })
	hold(t, "given", ownProcess("near"), 100*time.Millisecond)
}

// A result larger than the model may be given is cut, and says so.
func TestHugeResult(t *testing.T) {
	s, _ := open(t, Options{}, ownProcess("x"))
	tool, _ := conversation(t, s)
	if got, err := call(t, tool, "functions.x_huge", `{}`); err != nil ||
		len(got) > maxResult+100 || !strings.Contains(got, "[1048576 of ") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A server that dies during a call is reported and started again by the next; one that keeps dying
// is left alone.
func TestServersThatDie(t *testing.T) {
	s, _ := open(t, Options{}, ownProcess("x"))
	tool, _ := conversation(t, s)
	says(t, tool, "functions.x_count", `{}`, "call 1")
	fails(t, tool, "functions.x_die", `{}`, "ended during the call, which may or may not")
	says(t, tool, "functions.x_count", `{}`, "call 1")
	fails(t, tool, "functions.x_die", `{}`, "the next call starts it again")
	fails(t, tool, "functions.x_die", `{}`, "do without it")
	fails(t, tool, "functions.x_count", `{}`, "has failed 2 times in a row")
	says(t, tool, "functions.x_count", `{}`, "call 1")

	// between two calls
	pid := tool.connections[s.tools[0].source].command.Process
	if err := pid.Kill(); err != nil {
		t.Fatal(err)
	}
	<-tool.connections[s.tools[0].source].done
	says(t, tool, "functions.x_count", `{}`, "call 1")

	now := handlers("far")
	port := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now.ServeHTTP(w, r)
	}))
	s, _ = open(t, Options{}, Server{Name: "far", URL: port.URL + "/mcp"})
	tool, _ = conversation(t, s)
	says(t, tool, "functions.far_count", `{}`, "call 1")
	now = handlers("far") // it has restarted
	says(t, tool, "functions.far_count", `{}`, "call 1")
	says(t, tool, "functions.far_count", `{}`, "call 2")
	port.CloseClientConnections()
	port.Close()
	fails(t, tool, "functions.far_count", `{}`, "the server far")
	fails(t, tool, "functions.far_count", `{}`, "has failed 2 times in a row")
	fails(t, tool, "functions.far_count", `{}`, "the server far cannot be reached")
}

// Servers that do not start cost a note, not the others. One that hangs is in the zoo.
func TestServersThatDoNotStart(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, notes := Open(t.Context(), []Server{{Name: "none", Command: "/no/such"},
		{Name: "nobody", URL: "http://127.0.0.1:1/mcp"}, ownProcess("good"),
		{Name: "crash", Command: "sh", Args: []string{"-c", "echo why >&2; exit 1"}}},
		Options{Start: 2 * time.Minute})
	text := strings.Join(notes, "\n")
	for _, want := range []string{`"none" was skipped: command not found: /no/such.`,
		`"nobody" was skipped: `, `"crash" was skipped: `, "why"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if len(s.tools) != 8 || len(s.Lines()) != 1 || s.Lines()[0] != "good: 8 tools" {
		t.Error(len(s.tools), s.Lines())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// What is asked about a call is what runs, and a call that reaches no server is not asked about.
// The turn can be cancelled.
func TestResolveAndCancel(t *testing.T) {
	s, _ := open(t, Options{}, ownProcess("x"))
	tool, _ := conversation(t, s)
	c := session.Call{Recipient: "functions.x_count", Arguments: "{"}
	if c, err := tool.Resolve(c); c.Tool != "count" || err == nil ||
		!strings.Contains(err.Error(), "the arguments are not a JSON object") {
		t.Errorf("%+v, %v", c, err)
	}
	c.Arguments = "{}"
	for _, approved := range [][2]string{{"x", "count"}, {"x", "echo.text"}, {"y", "count"}} {
		c.Server, c.Tool = approved[0], approved[1]
		result, err := tool.Run(t.Context(), c, func(string) {})
		if right := c.Server+" "+c.Tool == "x count"; right != strings.HasPrefix(result.Text, "call 1 ") ||
			right == (err != nil && err.Error() == "there is no function x_count") {
			t.Errorf("%v approved: %+v, %v", approved, result, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := tool.Run(ctx, session.Call{Recipient: "functions.x_slow", Arguments: "{}"},
		func(string) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	says(t, tool, "functions.x_count", `{}`, "call 2")
}

// While a call runs, other callers of the tool do not wait: listing the callable functions needs no
// server.
func TestOthersDoNotWaitForACall(t *testing.T) {
	s, _ := open(t, Options{}, ownProcess("x"))
	tool, _ := conversation(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan error, 1)
	go func() {
		_, err := tool.Run(ctx, session.Call{Recipient: "functions.x_slow", Arguments: "{}"},
			func(string) {})
		over <- err
	}()
	hosttest.Until(t, "the call runs", func() bool {
		if tool.busy.TryLock() {
			tool.busy.Unlock()
			return false
		}
		return true
	})
	done := make(chan bool, 1)
	go func() {
		var r session.Request
		tool.Offer(&r)
		done <- len(r.Functions) == 8 && tool.Runs("functions.x_count") &&
			len(tool.Citations("nothing")) == 0
	}()
	select {
	case right := <-done:
		if !right {
			t.Error("not all is offered")
		}
	case <-time.After(2 * time.Minute): // the call does not end
		cancel()
		t.Fatal("what the model may call is not told")
	}
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Tools that would fill the prompt are described when the model asks.
func TestDescribedOnDemand(t *testing.T) {
	s, _ := open(t, Options{Context: func() int { return 1000 }}, ownProcess("x"))
	tool, r := conversation(t, s)
	if len(r.Functions) != 1 || r.Functions[0].Name != describeTool ||
		!strings.Contains(r.Functions[0].Description, "\nx_count: count of x\n") {
		t.Fatalf("%+v", r.Functions)
	}
	if tool.Runs("functions.x_count") {
		t.Error("a tool is run that is not offered")
	}
	fails(t, tool, "functions.describe_tool", `{"name":"y"}`, `no function "y"`)
	says(t, tool, "functions.describe_tool", `{"name":"functions.x_count"}`,
		"functions.x_count can be called now.\ncount of x\nand more\nParameters: {")
	r = session.Request{Functions: []harmony.ToolDescription{{Name: "own"}}}
	tool.Offer(&r)
	if len(r.Functions) != 3 || r.Functions[1].Name != "x_count" {
		t.Errorf("%+v", r.Functions)
	}
	says(t, tool, "functions.x_count", `{}`, "call 1")
	s, _ = open(t, Options{Context: func() int { return 131072 }}, ownProcess("x"))
	if _, r = conversation(t, s); len(r.Functions) != 8 {
		t.Errorf("%d functions", len(r.Functions))
	}
}

// A server with 41 tools, whose schemas are 30,000 tokens, costs a fraction of that until the model
// asks for one; the rest is never in the prompt.
func TestFortyOneTools(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "large", Version: "1"}, nil)
	for i := range 41 {
		fields := map[string]any{}
		for j := range 30 {
			fields[fmt.Sprintf("field_%d", j)] = map[string]any{"type": "string",
				"description": fmt.Sprintf("The %dth value of thing %d, which says a lot.", j, i)}
		}
		server.AddTool(&sdk.Tool{Name: fmt.Sprintf("thing_%d", i),
			Description: fmt.Sprintf("Does thing %d.", i),
			InputSchema: map[string]any{"type": "object", "properties": fields}},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{
					Text: fmt.Sprint("did ", i)}}}, nil
			})
	}
	port := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		return server
	}, nil))
	t.Cleanup(port.Close)
	s, _ := open(t, Options{Context: func() int { return 131072 }},
		Server{Name: "large", URL: port.URL, Type: "http"})
	var all []harmony.ToolDescription
	for _, one := range s.tools {
		all = append(all, one.description)
	}
	whole, err := countTokens(all)
	if err != nil || len(all) != 41 || whole < 20_000 {
		t.Fatalf("%d tools of %d tokens, %v", len(all), whole, err)
	}
	tool, r := conversation(t, s)
	if n, err := countTokens(r.Functions); err != nil || len(r.Functions) != 1 || n > 1000 {
		t.Errorf("%d functions of %d tokens are offered, %v", len(r.Functions), n, err)
	}
	for i := range 41 {
		if !strings.Contains(r.Functions[0].Description,
			fmt.Sprintf("\nlarge_thing_%d: Does thing %d.", i, i)) {
			t.Errorf("thing %d is not named", i)
		}
	}
	says(t, tool, "functions.describe_tool", `{"name":"large_thing_40"}`,
		"functions.large_thing_40 can be called now.\nDoes thing 40.\nParameters: {")
	r = session.Request{}
	tool.Offer(&r)
	if n, err := countTokens(r.Functions); err != nil || len(r.Functions) != 2 || n > 2000 {
		t.Errorf("%d functions of %d tokens are offered, %v", len(r.Functions), n, err)
	}
	says(t, tool, "functions.large_thing_40", `{}`, "did 40")
	if tool.Runs("functions.large_thing_39") {
		t.Error("a tool is run that was not described")
	}
}

// Names are unique, and a function of the caller stays the caller's.
func TestNames(t *testing.T) {
	s, _ := open(t, Options{}, ownProcess("a.b"), ownProcess("a_b"))
	tool, r := conversation(t, s)
	seen := map[string]bool{}
	for _, f := range r.Functions {
		if seen[f.Name] {
			t.Errorf("%s twice", f.Name)
		}
		seen[f.Name] = true
	}
	if len(seen) != 16 || !seen["a_b_count"] || !seen["a_b_count_2"] {
		t.Error(seen)
	}
	r = session.Request{Functions: []harmony.ToolDescription{{Name: "a_b_count"}}}
	if tool.Offer(&r); tool.Runs("functions.a_b_count") || !tool.Runs("functions.a_b_count_2") ||
		len(r.Functions) != 16 {
		t.Error("the caller's function was taken over")
	}
}

// fake is a tool that says how often it was called, and whether it is open.
type fake struct {
	calls  int
	opened *atomic.Int32
}

func (f *fake) Offer(*session.Request) {}
func (f *fake) Runs(string) bool       { return true }
func (f *fake) Close() error           { f.opened.Add(-1); return nil }

func (f *fake) Run(_ context.Context, c session.Call, _ func(string)) (session.ToolResult, error) {
	f.calls++
	if strings.Contains(c.Arguments, "fail") {
		return session.ToolResult{Text: "half"}, errors.New("it failed")
	}
	if c.Recipient == "browser.open" {
		return session.ToolResult{Text: "[3] A page (of two) (https://example.org/a)\n**viewing"}, nil
	}
	return session.ToolResult{Text: fmt.Sprint(c.Recipient, " ", f.calls, " ", c.Arguments)}, nil
}

// Our tools, as servers over every transport, replace the built-in ones; each session has its own,
// which ends with it.
func TestHostedTools(t *testing.T) {
	var opened atomic.Int32
	host := func(n harmony.ToolNamespace) *Host {
		h := NewHost(n, "1", func() (session.Tool, error) {
			opened.Add(1)
			return &fake{opened: &opened}, nil
		})
		t.Cleanup(func() { h.Close() })
		return h
	}
	browser := httptest.NewServer(host(harmony.BuiltinBrowser()).Handler())
	defer browser.Close()
	python := httptest.NewServer(host(harmony.BuiltinPython()).Handler())
	defer python.Close()
	address, err := Address(strings.TrimPrefix(browser.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Address(python.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	s, notes := open(t, Options{}, address, other)
	if len(notes) > 0 || s.browser == nil || s.python == nil || len(s.tools) > 0 {
		t.Fatal(notes, s.Lines())
	}
	tool, r := conversation(t, s)
	if !r.Browser || !r.Python || len(r.Functions) > 0 {
		t.Errorf("%+v", r)
	}
	says(t, tool, "browser.search", `{"query":"x"}`, `browser.search 1 {"query":"x"}`)
	says(t, tool, "browser.open", `{}`, "[3] A page")
	if got := tool.Citations("ä 【3†L1-L2】, 【4†L1】"); len(got) != 1 || got[0] != (session.Citation{
		Start: 2, End: 11, URL: "https://example.org/a", Title: "A page (of two)"}) {
		t.Errorf("%+v", got)
	}
	says(t, tool, "python", `print("ä")`, `python 1 print("ä")`)
	says(t, tool, "python", "2", "python 2 2")
	fails(t, tool, "python", "fail", "half\nit failed")
	second, _ := conversation(t, s)
	says(t, second, "python", "1", "python 1 1")
	if n := opened.Load(); n != 3 {
		t.Errorf("%d tools are open", n)
	}
	tool.Close()
	second.Close()
	hosttest.Until(t, "all tools end", func() bool { return opened.Load() == 0 })
	only := s.Tool(true, false, every)
	if only.Runs("python") || !only.Runs("browser.open") {
		t.Error("the wrong tools were taken")
	}

	// over pipes
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- host(harmony.BuiltinPython()).Stdio(t.Context(), in, out) }()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "python",
		Arguments: map[string]any{"code": "7"}})
	if err != nil || result.Content[0].(*sdk.TextContent).Text != "python 1 7" {
		t.Errorf("%+v, %v", result, err)
	}
	result, err = client.CallTool(t.Context(), &sdk.CallToolParams{Name: "python"})
	if err != nil || !result.IsError {
		t.Errorf("%+v, %v", result, err)
	}
	client.Close()
	toServer.Close()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Error("the server goes on without its client")
	}
}
