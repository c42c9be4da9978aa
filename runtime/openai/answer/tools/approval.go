// A client's permissions for an MCP server: allowed_tools lists the tools that may be called,
// require_approval the calls that wait for the client's approval.
//
// What must stay true: clients and this server name a tool exactly as its MCP server does; a rule
// applies to the tool of that name and to no other.

package tools

import (
	"slices"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/session"
)

// approvalRule says which of a server's tools need approval for each call. It uses the server's own
// names.
type approvalRule struct {
	always, never []string
	byDefault     bool // those in neither list
	unset         bool // by the client: the server's configuration may allow all
}

// readApproval reads require_approval. If it is unset, each call needs approval, as at OpenAI,
// unless the operator has allowed the server's calls.
func readApproval(t *fields.Object) (rule approvalRule) {
	v := t.Get("require_approval")
	switch v.Kind() {
	case jsondoc.Null:
		rule.byDefault, rule.unset = true, true
	case jsondoc.Object:
		filter := v.Object()
		always, never := filter.Object("always"), filter.Object("never")
		rule = approvalRule{fields.TextsOf(always.List("tool_names")),
			fields.TextsOf(never.List("tool_names")), always == nil || never != nil ||
				!always.Has("tool_names"), false} // read_only of a tool is not known here
	default:
		switch v.Text() {
		case "never":
		case "always":
			rule.byDefault = true
		default:
			v.MustBe("always, never or an object")
		}
	}
	return rule
}

func (r approvalRule) needsAny() bool { return r.byDefault || len(r.always) > 0 }

func (r approvalRule) needs(tool string) bool {
	switch {
	case slices.Contains(r.always, tool):
		return true
	case slices.Contains(r.never, tool):
		return false
	}
	return r.byDefault
}

// allowedNames reads allowed_tools of an MCP server: a list, or an object with tool_names.
func allowedNames(t *fields.Object) []string {
	v := t.Get("allowed_tools")
	switch v.Kind() {
	case jsondoc.Array:
		return append([]string{}, fields.TextsOf(v.List())...)
	case jsondoc.Object:
		return append([]string{}, fields.TextsOf(v.Object().List("tool_names"))...)
	case jsondoc.Null:
	default:
		v.WrongType("an array or an object")
	}
	return nil
}

// Server is the tool of kind MCP. Its tools have the server's own names, which clients use; the
// model calls them as functions with other names.
type Server interface {
	session.Resolver
	// Tools lists the callable tools, under the server's own names.
	Tools() []harmony.ToolDescription
	// Restrict restricts the tool to these names of the server; nil: all.
	Restrict(names []string)
	// Trusted tells that all its calls are allowed if the client sets no rule.
	Trusted() bool
}

// ServerName returns the server's own name of the called tool, or "" for other calls.
func (t *Tool) ServerName(recipient string) string {
	if server, ok := t.Tool.(Server); ok && t.Kind == MCP {
		c, _ := server.Resolve(session.Call{Recipient: recipient}) // its arguments are unknown
		return c.Tool
	}
	return ""
}

// Tools lists the callable tools of the server, under its own names.
func (t *Tool) Tools() []harmony.ToolDescription {
	if server, ok := t.Tool.(Server); ok {
		return server.Tools()
	}
	return nil
}

// applyRules allows only the tools that the client allows. A name that the server lacks is a fault:
// the client relies on a rule that would never apply.
func (t *Tool) applyRules() *fields.Fault {
	server, ok := t.Tool.(Server)
	if !ok {
		return nil
	}
	if t.approval.unset {
		t.approval.byDefault = !server.Trusted()
	}
	server.Restrict(nil)
	has := server.Tools()
	for _, list := range []struct {
		path  string
		names []string
	}{{t.path + ".allowed_tools", t.allowed}, {t.path + ".require_approval",
		slices.Concat(t.approval.always, t.approval.never)}} {
		for _, name := range list.names {
			if !slices.ContainsFunc(has, func(d harmony.ToolDescription) bool {
				return d.Name == name
			}) {
				return fields.Invalid(list.path, "%s names the tool %q, which the MCP server %q "+
					"does not have; mcp_list_tools items list its tools", list.path,
					fields.Brief(name), t.Label)
			}
		}
	}
	server.Restrict(t.allowed)
	return nil
}

// NeedsApproval tells whether the client must approve this call of a server's tool.
func (t *Tool) NeedsApproval(id, recipient string) bool {
	tool := t.ServerName(recipient)
	return tool != "" && id != t.Approved && t.approval.needs(tool)
}
