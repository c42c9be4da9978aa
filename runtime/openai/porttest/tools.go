// Scripted built-in tools, and a model that calls them.

package porttest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// ScriptedTool is a built-in tool that answers "42", or fails.
type ScriptedTool struct {
	Kind, label string
	Open, ran   *atomic.Int64
	err         error
	only        []string // of an MCP server's tools; nil: all
}

// Offer offers the tool.
func (s *ScriptedTool) Offer(r *session.Request) {
	switch s.Kind {
	case tools.Python:
		r.Python = true
	case tools.Browser:
		r.Browser = true
	case tools.MCP:
		for _, d := range s.Tools() {
			r.Functions = append(r.Functions, harmony.ToolDescription{Name: s.label + "_" + d.Name})
		}
	}
}

// Tools are the tools of an MCP server.
func (s *ScriptedTool) Tools() (list []harmony.ToolDescription) {
	if s.Kind == tools.MCP {
		for _, name := range []string{"add", "drop"} {
			if s.only == nil || slices.Contains(s.only, name) {
				list = append(list, harmony.ToolDescription{Name: name})
			}
		}
	}
	return list
}

// Resolve names the server and its tool.
func (s *ScriptedTool) Resolve(c session.Call) (session.Call, error) {
	c.Server, c.Tool = s.label, strings.TrimPrefix(c.Recipient, "functions."+s.label+"_")
	return c, nil
}

// Trusted is true for the server with this label.
func (s *ScriptedTool) Trusted() bool { return s.label == "trusted" }

// Restrict keeps to these tools.
func (s *ScriptedTool) Restrict(names []string) { s.only = names }

// Runs tells whether a call is the tool's.
func (s *ScriptedTool) Runs(recipient string) bool {
	switch s.Kind {
	case tools.MCP:
		return slices.ContainsFunc(s.Tools(), func(d harmony.ToolDescription) bool {
			return recipient == "functions."+s.label+"_"+d.Name
		})
	case tools.Browser:
		return strings.HasPrefix(recipient, "browser.")
	}
	return recipient == s.Kind
}

// Run returns the fixed result.
func (s *ScriptedTool) Run(_ context.Context, _ session.Call, output func(string)) (
	session.ToolResult, error) {
	s.ran.Add(1)
	output("4")
	result := session.ToolResult{Text: "42"}
	if s.Kind == tools.Browser {
		result.Sources = []session.Source{{URL: "https://example.org/", Title: "T"}}
	}
	return result, s.err
}

// Close counts the tool as closed.
func (s *ScriptedTool) Close() error {
	s.Open.Add(-1)
	return nil
}

// Citations name one page.
func (s *ScriptedTool) Citations(answer string) []session.Citation {
	before, _, ok := strings.Cut(answer, "【")
	if s.Kind != tools.Browser || !ok {
		return nil
	}
	at := len([]rune(before))
	return []session.Citation{{Start: at, End: at + 6, URL: "https://example.org/", Title: "T"}}
}

// ToolServer is a port with tools of all kinds; the model calls each of them once, then answers.
func ToolServer(t *testing.T, s sessiontest.Script, err error, change ...func(*openai.Options)) (
	*httptest.Server, *sessiontest.Model) {
	srv, f, _ := CountedTools(t, s, err, change...)
	return srv, f
}

// CountedTools is ToolServer that counts the calls that were run.
func CountedTools(t *testing.T, s sessiontest.Script, err error, change ...func(*openai.Options)) (
	*httptest.Server, *sessiontest.Model, *atomic.Int64) {
	t.Helper()
	var open, ran atomic.Int64
	t.Cleanup(func() { // after the port is closed
		if n := open.Load(); n != 0 {
			t.Errorf("%d tools were not closed", n)
		}
	})
	srv, f := Server(t, s, append(change, func(o *openai.Options) {
		o.Tools = func(kind, label string) ([]session.Tool, error) {
			if label == "unknown" {
				return nil, nil
			}
			open.Add(1)
			return []session.Tool{&ScriptedTool{Kind: kind, label: label, Open: &open, ran: &ran,
				err: err}}, nil
		}
	})...)
	return srv, f, &ran
}

// ToolUser calls what it is offered, one call a turn: python, the browser, a server's function,
// then a function of the client; then it answers.
func ToolUser(r session.Request) ([]session.Event, error) {
	results := map[string]bool{}
	for _, m := range r.Messages {
		if m.Role == harmony.RoleTool {
			results[m.Name] = true
		}
	}
	call := func(recipient, arguments string) ([]session.Event, error) {
		return append([]session.Event{session.Reasoning{Text: "I call."}}, sessiontest.Call(
			fmt.Sprintf("call_%d", len(results)+1), recipient, arguments)...), nil
	}
	switch {
	case r.ToolChoice == grammar.None:
		return sessiontest.Answers("ok")(r)
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
	return []session.Event{session.Answer{Text: "Tö 42 【1†L2】."}, sessiontest.Done(session.FinishStop)}, nil
}

// BuiltinTools are one of each kind.
const BuiltinTools = `"tools":[{"type":"code_interpreter","container":{"type":"auto"}},{"type":"web_search"},` +
	`{"type":"mcp","server_label":"sums","server_url":"https://example.org/","allowed_tools":["add"],` +
	`"require_approval":"never"}]`
