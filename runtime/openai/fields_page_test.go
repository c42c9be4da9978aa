// docs/api-fields.md is made of the table of routes that /docs and /openapi.json are made of:
// go test ./runtime/openai -run FieldsPage -update writes it, but for the types of tools
// (answer/tools).

package openai_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
)

func TestFieldsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# API fields\n\nMade by `go test ./runtime/openai -run FieldsPage -update`: not " +
		"to be edited.\n[API](port.md) explains them. A type may be followed by its least and its " +
		"greatest value.\n")
	table := func(head string, fields []openai.Parameter) {
		for i, p := range fields {
			if i == 0 {
				fmt.Fprintf(&b, "\n| %s | type | needed |\n|---|---|---|\n", head)
			}
			needed := ""
			if p.Required {
				needed = "yes"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, strings.ReplaceAll(p.Type, "|", " or "),
				needed)
		}
	}
	routes := 0
	for _, o := range openai.Document() {
		routes++
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", o.Route, o.Summary)
		table("query", o.Query)
		table("field", o.Body)
		if o.Answer != "" {
			fmt.Fprintf(&b, "\nThe answer has `%s`.\n", strings.Join(strings.Fields(o.Answer), "`, `"))
		}
	}
	if routes < 30 {
		t.Errorf("%d routes", routes)
	}
	// its end is that of package tools
	const page, end = "../../docs/api-fields.md", "\n## Types of tools\n"
	data, err := os.ReadFile(page)
	now, types, _ := strings.Cut(string(data), end)
	if *update && err == nil {
		err = os.WriteFile(page, []byte(b.String()+end+types), 0o644)
		now = b.String()
	}
	if err != nil || now != b.String() {
		t.Errorf("%s is not what the routes say (%v): go test ./runtime/openai -run FieldsPage "+
			"-update", page, err)
	}
}
