// Built-in tools for the scripted model, with fixed results.

package scripttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/session"
)

// Tools are openai.Options.Tools: a python that prints its program, a browser that finds the same
// page for everything and whose answers cite it, and an MCP server "sums" with the function
// sums_add.
func Tools(kind, label string) ([]session.Tool, error) {
	if kind == tools.MCP && label != sums {
		return nil, nil
	}
	return []session.Tool{&tool{kind: kind}}, nil
}

// Offers are openai.Options.Offers for Tools.
func Offers() (kinds, labels []string) {
	return []string{tools.Browser, tools.Python}, []string{sums}
}

// sums is the label of the MCP server.
const sums = "sums"

type tool struct {
	kind string
	only []string // of the server's tools; nil: all
}

func (t *tool) Offer(r *session.Request) {
	r.Python = r.Python || t.kind == tools.Python
	r.Browser = r.Browser || t.kind == tools.Browser
	for _, d := range t.Tools() {
		d.Name = sums + "_" + d.Name
		r.Functions = append(r.Functions, d)
	}
}

func (t *tool) Tools() []harmony.ToolDescription {
	if t.kind != tools.MCP || t.only != nil && !slices.Contains(t.only, "add") {
		return nil
	}
	return []harmony.ToolDescription{{Name: "add", Description: "Adds.",
		Parameters: json.RawMessage(`{"type":"object","properties":` +
			`{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],` +
			`"additionalProperties":false}`)}}
}

func (t *tool) Resolve(c session.Call) (session.Call, error) {
	c.Server, c.Tool = sums, strings.TrimPrefix(c.Recipient, "functions."+sums+"_")
	return c, nil
}

func (t *tool) Trusted() bool { return false }

func (t *tool) Restrict(names []string) { t.only = names }

func (t *tool) Runs(recipient string) bool {
	return t.kind == tools.MCP && recipient == "functions."+sums+"_add" ||
		recipient == t.kind || strings.HasPrefix(recipient, t.kind+".")
}

func (t *tool) Run(_ context.Context, c session.Call, output func(string)) (session.ToolResult,
	error) {
	said := "[1] Example (https://example.org/)"
	switch t.kind {
	case tools.Python:
		said = "ran: " + c.Arguments
	case tools.MCP:
		var terms struct{ A, B int }
		if err := json.Unmarshal([]byte(c.Arguments), &terms); err != nil {
			return session.ToolResult{}, fmt.Errorf("arguments: %w", err)
		}
		said = strconv.Itoa(terms.A + terms.B)
	}
	output(said)
	result := session.ToolResult{Text: said}
	if t.kind == tools.Browser {
		result.Sources = []session.Source{{URL: "https://example.org/", Title: "Example"}}
	}
	return result, nil
}

// Citations are the marks of the page that the browser finds.
func (t *tool) Citations(answer string) (list []session.Citation) {
	const mark = "【1】"
	if t.kind != tools.Browser {
		return nil
	}
	for at := 0; ; at += len(mark) {
		next := strings.Index(answer[at:], mark)
		if next < 0 {
			return list
		}
		at += next
		start := utf8.RuneCountInString(answer[:at])
		list = append(list, session.Citation{Start: start,
			End: start + utf8.RuneCountInString(mark), URL: "https://example.org/", Title: "Example"})
	}
}

func (t *tool) Close() error { return nil }
