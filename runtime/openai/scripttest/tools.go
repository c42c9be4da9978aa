// Built-in tools for the scripted model: what they answer is as fixed as what it says.

package scripttest

import (
	"context"
	"strings"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/session"
)

// Tools are openai.Options.Tools: a python that prints its program, and a browser that finds the
// same page for everything; of MCP servers there is none.
func Tools(kind, _ string) ([]session.Tool, error) {
	if kind == openai.ToolMCP {
		return nil, nil
	}
	return []session.Tool{tool{kind}}, nil
}

type tool struct{ kind string }

func (t tool) Offer(r *session.Request) {
	r.Python = r.Python || t.kind == openai.ToolPython
	r.Browser = r.Browser || t.kind == openai.ToolBrowser
}

func (t tool) Runs(recipient string) bool {
	return recipient == t.kind || strings.HasPrefix(recipient, t.kind+".")
}

func (t tool) Run(_ context.Context, c session.Call, output func(string)) (session.ToolResult,
	error) {
	said := "[1] Example (https://example.org/)"
	if t.kind == openai.ToolPython {
		said = "ran: " + c.Arguments
	}
	output(said)
	return session.ToolResult{Text: said}, nil
}

func (t tool) Close() error { return nil }
