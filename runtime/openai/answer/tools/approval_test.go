package tools

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/fields"
)

func TestApprovalRule(t *testing.T) {
	for filter, want := range map[string]string{
		`null`: "add drop", `"never"`: "", `"always"`: "add drop",
		`{"always":{"tool_names":["add"]}}`:                                 "add",
		`{"never":{"tool_names":["add"]}}`:                                  "drop",
		`{"never":{"tool_names":["add"]},"always":{"tool_names":["drop"]}}`: "drop",
		`{"always":{"read_only":false}}`:                                    "add drop",
		`{"never":{"read_only":true}}`:                                      "add drop",
	} {
		o, _ := fields.ParseObject([]byte(`{"require_approval":` + filter + `}`))
		rule := readApproval(o)
		var asked []string
		for _, name := range []string{"add", "drop"} {
			if rule.needs(name) {
				asked = append(asked, name)
			}
		}
		if got := strings.Join(asked, " "); got != want || o.Fault() != nil {
			t.Errorf("%s asks for %q, want %q", filter, got, want)
		}
	}
}
