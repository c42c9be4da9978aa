// The names of servers' tools. People and clients allow and forbid tools by these names; the model
// calls them by names restricted to the letters that a header can have.
//
// What must stay true: a rule about a name applies to tools with exactly this name. Two servers
// that report the same name remain distinguishable.

package mcp

import (
	"slices"

	"github.com/ossrun/ossrun/harmony"
)

// Tools lists the servers' tools under the names that their servers use.
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

// Restrict restricts the tool to these names; nil: all.
func (t *Tool) Restrict(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.allowed = names
	t.chooseLazy()
}

// Trusted tells whether the configuration allows all calls for which the client sets no rule.
func (t *Tool) Trusted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !slices.ContainsFunc(t.sources, (*source).needsApproval)
}

// needsApproval tells whether a client that sets no rule must approve each call.
func (s *source) needsApproval() bool { return s.RequireApproval != approvalNever }

func (t *Tool) permitted(list []*tool) []*tool {
	return slices.DeleteFunc(slices.Clone(list), func(one *tool) bool {
		return t.allowed != nil && !slices.Contains(t.allowed, one.name)
	})
}

// disambiguate replaces a server's reported name by its address if the name is already used, by a
// configured server or an earlier one.
func disambiguate(servers []*source) {
	for i, s := range servers {
		if s.unnamed && slices.ContainsFunc(servers, func(o *source) bool {
			return o != s && (o.Name == s.label || o.label == s.label &&
				slices.Index(servers, o) < i)
		}) {
			s.label = s.Name
		}
	}
}
