// The names that servers give their tools. People and clients allow and forbid by them, and the
// model calls other ones: those may only have the letters that a header takes.
//
// What must stay true: a rule about a name holds for the tools that have exactly this name, and for
// no other; of two servers that say the same name of themselves, each can be told from the other.

package mcp

import (
	"slices"

	"github.com/ossrun/ossrun/harmony"
)

// Tools are the servers' tools, each under its server's own name.
func (t *Tool) Tools() (list []harmony.ToolDescription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.permitted(t.tools) {
		d := one.description
		d.Name = one.name
		list = append(list, d)
	}
	return list
}

// Own is the server's own name of the tool that a function calls; "": it calls none.
func (t *Tool) Own(function string) string {
	if one, _ := t.function(function); one != nil {
		return one.name
	}
	return ""
}

// Only keeps to the tools with these names; nil: all.
func (t *Tool) Only(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.only = names
	t.chooseLazy()
}

// Trusted tells that the configuration allows all calls where a client says nothing of them.
func (t *Tool) Trusted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !slices.ContainsFunc(t.sources, func(s *source) bool {
		return s.RequireApproval != approvalNever
	})
}

func (t *Tool) permitted(list []*tool) []*tool {
	return slices.DeleteFunc(slices.Clone(list), func(one *tool) bool {
		return t.only != nil && !slices.Contains(t.only, one.name)
	})
}

// apart names servers by their addresses that say of themselves the name that another has: one of
// the configuration, or one that came first.
func apart(servers []*source) {
	for i, s := range servers {
		if s.unnamed && slices.ContainsFunc(servers, func(other *source) bool {
			return other != s && (other.Name == s.shown || other.shown == s.shown &&
				slices.Index(servers, other) < i)
		}) {
			s.shown = s.Name
		}
	}
}
