package tools_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// A built-in tool that tool_choice names.

func TestHostedToolIsChosen(t *testing.T) {
	for choice, only := range map[string][]string{
		`{"type":"web_search"}`:                             {"browser.search"},
		`{"type":"web_search_preview"}`:                     {"browser.search"},
		`{"type":"code_interpreter"}`:                       {"python"},
		`{"type":"mcp","server_label":"sums"}`:              {"functions.sums_add"},
		`{"type":"mcp","server_label":"sums","name":"add"}`: {"functions.sums_add"},
	} {
		srv, f := porttest.ToolServer(t, porttest.ToolUser, nil)
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","tool_choice":`+choice+`,`+
			porttest.BuiltinTools+`}`).Body)
		porttest.Conform(t, "Response", m)
		if want := porttest.Decode(t, strings.Replace(choice, `h"`, `h_preview"`, 1)); !reflect.DeepEqual(m["tool_choice"], any(want)) {
			t.Errorf("%s came back as %v", choice, m["tool_choice"])
		}
		for i, r := range f.Requests {
			want := session.Request{}
			if i == 0 {
				want.ToolChoice, want.Only = grammar.Required, only
			}
			if r.ToolChoice != want.ToolChoice || !reflect.DeepEqual(r.Only, want.Only) ||
				!r.Browser || !r.Python || len(r.Functions) != 1 {
				t.Errorf("%s, turn %d: %v, only %v of %+v", choice, i, r.ToolChoice, r.Only, r)
			}
		}
		porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`],"tool_choice":`+choice+`,`+
			porttest.BuiltinTools+`}`)
	}
}

func TestHostedToolThatCannotBeChosen(t *testing.T) {
	for _, c := range []struct{ choice, tools, param, message string }{
		{`{"type":"web_search"}`, `[]`, "tool_choice", "not among the tools"},
		{`{"type":"code_interpreter"}`, `[{"type":"web_search"}]`, "tool_choice",
			"not among the tools"},
		{`{"type":"mcp","server_label":"other"}`, `[{"type":"mcp","server_label":"sums"}]`,
			"tool_choice", `"other", which is not among`},
		{`{"type":"mcp"}`, `[{"type":"mcp","server_label":"sums"}]`, "tool_choice.server_label",
			"missing"},
		{`{"type":"mcp","server_label":"sums","name":"multiply"}`,
			`[{"type":"mcp","server_label":"sums"}]`, "tool_choice", "no such tool"},
		{`{"type":"mcp","server_label":"sums","name":"sums_add"}`,
			`[{"type":"mcp","server_label":"sums"}]`, "tool_choice", "no such tool"},
		{`{"type":"mcp","server_label":"unknown"}`, `[{"type":"mcp","server_label":"unknown"}]`,
			"tools", "cannot be used"},
		{`{"type":"file_search"}`, `[{"type":"file_search","vector_store_ids":[]}]`,
			"tools[0].type", "no vector stores"},
		{`{"type":"custom","name":"f"}`, `[]`, "tool_choice", "not among the tools"},
		{`{"type":"robot"}`, `[]`, "tool_choice", "not among the tools"},
	} {
		srv, f := porttest.ToolServer(t, porttest.ToolUser, nil)
		r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"x","tool_choice":`+c.choice+
			`,"tools":`+c.tools+`}`)
		m := porttest.Decode(t, r.Body)
		if r.Status != 400 || porttest.At(m, "error", "param") != c.param || len(f.Requests) != 0 {
			t.Errorf("%s: %d %s", c.choice, r.Status, r.Body)
		}
		code, _ := porttest.At(m, "error", "code").(string)
		porttest.WantFault(t, r, 400, fields.KindInvalid, c.param, code, c.message)
	}
	srv, _ := porttest.Server(t, sessiontest.Answers("ok")) // without tools of its own
	r := porttest.Ask(t, "POST", srv.URL+"/v1/responses",
		`{"input":"x","tool_choice":{"type":"web_search"},"tools":[{"type":"web_search"}]}`)
	porttest.WantFault(t, r, 400, fields.KindInvalid, "tools", "unsupported_parameter",
		"--tools browser")
}

// Of two servers, allowed_tools names one.
func TestAllowedToolsNameAServer(t *testing.T) {
	srv, f := porttest.ToolServer(t, porttest.ToolUser, nil)
	porttest.Post(t, srv, "/v1/responses", `{"input":"x","tools":[{"type":"mcp","server_label":"sums"},`+
		`{"type":"mcp","server_label":"other"}],"tool_choice":{"type":"allowed_tools",`+
		`"mode":"auto","tools":[{"type":"mcp","server_label":"other"}]}}`)
	for _, r := range f.Requests {
		for _, function := range r.Functions {
			if !strings.HasPrefix(function.Name, "other_") {
				t.Errorf("%s is offered", function.Name)
			}
		}
		if len(r.Functions) != 2 {
			t.Errorf("%d functions are offered", len(r.Functions))
		}
	}
}
