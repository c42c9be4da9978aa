package remote

import (
	"slices"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/session"
)

// A port is offered only what may be called: it knows no other way to choose a tool of several.
func TestOffered(t *testing.T) {
	for _, c := range []struct{ only, want []string }{
		{nil, []string{"browser_search", "browser_open", "browser_find", "python", "a", "b"}},
		{[]string{"python"}, []string{"python"}},
		{[]string{"functions.b", "browser"},
			[]string{"browser_search", "browser_open", "browser_find", "b"}},
		{[]string{}, nil},
	} {
		var names []string
		for _, o := range callableTools(session.Request{Browser: true, Python: true, Only: c.only,
			Functions: []harmony.ToolDescription{{Name: "a"}, {Name: "b"}}}) {
			names = append(names, o.Function.Name)
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%v: %v, not %v", c.only, names, c.want)
		}
	}
}
