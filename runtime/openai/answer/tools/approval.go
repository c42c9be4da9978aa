// require_approval: which calls of an MCP server's tools wait for the client's word.

package tools

import (
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer"
)

// approvalRule says which functions of a server need approval for each call.
type approvalRule struct {
	always, never []string
	others        bool // those in neither list
}

// readApproval reads require_approval. Servers are configured by who runs this process, so their
// calls are allowed unless the client says otherwise.
func readApproval(t *answer.Object) (rule approvalRule) {
	v := t.Get("require_approval")
	switch v.Kind() {
	case jsondoc.Null:
	case jsondoc.Object:
		filter := v.Object()
		always, never := filter.Object("always"), filter.Object("never")
		rule = approvalRule{answer.TextsOf(always.List("tool_names")),
			answer.TextsOf(never.List("tool_names")), always == nil || never != nil ||
				!always.Has("tool_names")} // what read_only says of a tool is not known here
	default:
		switch v.Text() {
		case "never":
		case "always":
			rule.others = true
		default:
			v.Must("always, never or an object")
		}
	}
	return rule
}

func (r approvalRule) asks(function string) bool {
	switch {
	case listed(r.always, function):
		return true
	case listed(r.never, function):
		return false
	}
	return r.others
}

// listed tells whether a list of a server's tools has a function, which may carry the server's name
// in front of the tool's.
func listed(names []string, function string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return function == name || strings.HasSuffix(function, "_"+name)
	})
}
