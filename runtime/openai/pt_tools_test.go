// Built-in tools that say what a test tells them to, and a model that calls them.

package openai

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/session"
)

// scriptedTool is a built-in tool that answers "42", or fails.
type scriptedTool struct {
	kind, label string
	open, ran   *atomic.Int64
	err         error
}

func (s *scriptedTool) Offer(r *session.Request) {
	switch s.kind {
	case ToolPython:
		r.Python = true
	case ToolBrowser:
		r.Browser = true
	case ToolMCP:
		for _, name := range []string{"add", "drop"} {
			r.Functions = append(r.Functions, harmony.ToolDescription{Name: s.label + "_" + name})
		}
	}
}

func (s *scriptedTool) Runs(recipient string) bool {
	switch s.kind {
	case ToolMCP:
		return strings.HasPrefix(recipient, "functions."+s.label+"_")
	case ToolBrowser:
		return strings.HasPrefix(recipient, "browser.")
	}
	return recipient == s.kind
}

func (s *scriptedTool) Run(_ context.Context, _ session.Call, output func(string)) (
	session.ToolResult, error) {
	s.ran.Add(1)
	output("4")
	return session.ToolResult{Text: "42"}, s.err
}

func (s *scriptedTool) Close() error {
	s.open.Add(-1)
	return nil
}

func (s *scriptedTool) Citations(answer string) []session.Citation {
	before, _, ok := strings.Cut(answer, "【")
	if s.kind != ToolBrowser || !ok {
		return nil
	}
	at := len([]rune(before))
	return []session.Citation{{Start: at, End: at + 6, URL: "https://example.org/", Title: "T"}}
}

// toolServer is a port with tools of all kinds; the model calls each of them once, then answers.
func toolServer(t *testing.T, s script, err error) (*httptest.Server, *fakeRunner) {
	srv, f, _ := countedTools(t, s, err)
	return srv, f
}

// countedTools is toolServer that tells how many calls were run.
func countedTools(t *testing.T, s script, err error) (*httptest.Server, *fakeRunner,
	*atomic.Int64) {
	t.Helper()
	var open, ran atomic.Int64
	t.Cleanup(func() { // after the port is closed
		if n := open.Load(); n != 0 {
			t.Errorf("%d tools were not closed", n)
		}
	})
	srv, f := server(t, s, func(o *Options) {
		o.Tools = func(kind, label string) ([]session.Tool, error) {
			if label == "unknown" {
				return nil, nil
			}
			open.Add(1)
			return []session.Tool{&scriptedTool{kind, label, &open, &ran, err}}, nil
		}
	})
	return srv, f, &ran
}

// toolUser calls what it is offered, one call a turn: python, the browser, a server's function,
// then a function of the client; then it answers.
func toolUser(r session.Request) ([]session.Event, error) {
	results := map[string]bool{}
	for _, m := range r.Messages {
		if m.Role == harmony.RoleTool {
			results[m.Name] = true
		}
	}
	call := func(recipient, arguments string) ([]session.Event, error) {
		half := len(arguments) / 2
		return []session.Event{session.Reasoning{Text: "I call."}, session.CallStart{
			ID:   fmt.Sprintf("call_%d", len(results)+1),
			Name: strings.TrimPrefix(recipient, "functions."), Recipient: recipient},
			session.CallArguments{Text: arguments[:half]},
			session.CallArguments{Text: arguments[half:]},
			session.CallEnd{Arguments: arguments}, done(session.FinishToolCalls)}, nil
	}
	switch {
	case r.ToolChoice == grammar.None:
		return answers("ok")(r)
	case r.Python && !results["python"]:
		return call("python", "print(42)")
	case r.Browser && !results["browser.search"]:
		return call("browser.search", `{"query":"the answer"}`)
	}
	for _, f := range r.Functions {
		if !results["functions."+f.Name] {
			return call("functions."+f.Name, `{"city":"Paris"}`)
		}
	}
	return []session.Event{session.Answer{Text: "Tö 42 【1†L2】."}, done(session.FinishStop)}, nil
}

const builtinTools = `"tools":[{"type":"code_interpreter","container":{"type":"auto"}},{"type":"web_search"},` +
	`{"type":"mcp","server_label":"sums","server_url":"https://example.org/","allowed_tools":["add"]}]`
