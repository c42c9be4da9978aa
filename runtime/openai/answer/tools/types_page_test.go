package tools

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/fields"
)

var update = flag.Bool("update", false, "write the types of tools in docs/api-fields.md again")

// TestTypesPage: docs/api-fields.md ends with every type of tool and what happens with it.
func TestTypesPage(t *testing.T) {
	want := "\nWithout the date of a version. Others are a 400.\n\n| type | what happens |\n|---|---|\n"
	for _, typ := range slices.Sorted(maps.Keys(handlings)) {
		h, what := handlings[typ], "called by the client"
		switch {
		case h.runs != "":
			what = "run here (" + h.runs + ")"
		case h.refused != "":
			what = "400: " + h.refused
		case h.api != "":
			what += ", " + h.api + " only"
		}
		want += fmt.Sprintf("| `%s` | %s |\n", typ, what)
	}
	const page, begin = "../../../../docs/api-fields.md", "\n## Types of tools\n"
	data, err := os.ReadFile(page)
	before, have, _ := strings.Cut(string(data), begin)
	if *update && err == nil {
		err = os.WriteFile(page, []byte(before+begin+want), 0o644)
		have = want
	}
	if err != nil || have != want {
		t.Errorf("%s does not end with the types of tools (%v): go test "+
			"./runtime/openai/answer/tools -run TypesPage -update", page, err)
	}
}

// TestOfferedTools: each type that the client runs has its function in offered.json.
func TestOfferedTools(t *testing.T) {
	o, _ := fields.ParseObject([]byte(`{"execution":"client"}`))
	for typ, h := range handlings {
		if h.as == nil || strings.HasPrefix(typ, "tool_search_tool_") { // those have none
			continue
		}
		if f := h.as(o, typ); f.Name == "" || f.Type != "function" || *f.Description == "" ||
			!json.Valid(f.Parameters) {
			t.Errorf("%s is offered as %+v", typ, f)
		}
	}
}
