// Checks the direction of imports drawn in docs/design.md: rooms may only call downwards. A package
// without a row in the table fails the test too, so that every new room gets a level.

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ossrun/ossrun"

// level orders the rooms from the program's entry (0) down. A package may import its own room and
// rooms with a larger number.
var level = map[string]int{
	"":                            0,
	"ui/cli":                      1,
	"ui/chat":                     2,
	"runtime/openai":              2,
	"runtime/openai/chat":         3,
	"runtime/openai/completions":  3,
	"runtime/openai/responses":    3,
	"runtime/openai/messages":     3,
	"runtime/openai/ollama":       3,
	"runtime/openai/answer/tools": 4,
	"runtime/openai/request":      5,
	"runtime/openai/answer":       6,
	"runtime/openai/fields":       7,
	"runtime/openai/keys":         7,
	"runtime/serve":               3,
	"runtime/session":             8,
	"runtime/records":             11,
	"runtime/quota":               13,
	"runtime/tools":               3,
	"runtime/tools/pdf":           11,
	"runtime/sched":               9,
	"harmony":                     9,
	"runtime/cpu":                 9,
	"gpu/device":                  9,
	"runtime/grammar":             10,
	"runtime/grammar/schema":      11,
	"runtime/grammar/automaton":   12,
	"harmony/token":               13,
	"harmony/internal":            12,
	"runtime/kv":                  12,
	"runtime/sample":              10,
	"runtime/remote":              2,
	"runtime/remote/local":        2,
	"runtime/remote/vllm":         4,
	"runtime/remote/pool":         4,
	"runtime/remote/client":       11,
	"runtime/measure/bench":       2,
	"runtime/measure/load":        2,
	"runtime/measure/eval":        2,
	"runtime/measure/jsonlines":   11,
	"runtime/sched/draft":         10,
	"runtime/process":             11,
	"runtime/engine":              11,
	"gpu/worker":                  10,
	"gpu":                         5,
	"gpu/multi":                   8,
	"gpu/worker/ossrun-gpu":       2,
	"gpu/kernels":                 11,
	"gpu/driver":                  12,
	"gpu/detect":                  13,
	"models":                      13,
	"harmony/jsondoc":             14,
	"assets":                      14,
}

// onlyImportedBy lists the only importers that some rooms may have.
var onlyImportedBy = map[string][]string{
	"runtime/cpu": {"runtime/serve", "gpu/multi"},
	"gpu":         {"runtime/serve", "gpu/worker/ossrun-gpu"},
	"gpu/multi":   {"gpu"},
	"gpu/device":  {"runtime/serve", "gpu", "gpu/multi"},
}

// mustNotImport lists the outside packages that a room must not import.
var mustNotImport = map[string][]string{
	"harmony":        {"net/http", "github.com/charmbracelet"},
	"runtime/engine": {"net/http", "github.com/charmbracelet"},
	"runtime/sched":  {"net/http", "github.com/charmbracelet"},
	"runtime/openai": {"github.com/charmbracelet", "github.com/urfave"},
	"runtime":        {"github.com/urfave"},
	"ui/chat":        {"net/http"},
}

// room returns the longest prefix of path in the table.
func room(path string) (string, bool) {
	for p := path; p != ""; {
		if _, ok := level[p]; ok {
			return p, true
		}
		i := strings.LastIndex(p, "/")
		if i < 0 {
			break
		}
		p = p[:i]
	}
	return "", path == ""
}

func TestImportsPointDown(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`,
		"./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	edges := 0
	for line := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		from := strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")
		fromRoom, ok := room(from)
		if !ok {
			t.Errorf("%s is in no room: give it a level in imports_test.go and a place in "+
				"docs/design.md", from)
			continue
		}
		for _, imp := range fields[1:] {
			for prefix, banned := range mustNotImport {
				for _, b := range banned {
					if (from == prefix || strings.HasPrefix(from, prefix+"/")) &&
						strings.HasPrefix(imp, b) {
						t.Errorf("%s must not import %s", from, imp)
					}
				}
			}
			if !strings.HasPrefix(imp, module+"/") {
				continue
			}
			edges++
			to := strings.TrimPrefix(imp, module+"/")
			toRoom, ok := room(to)
			if !ok {
				continue // reported where it stands as a package of its own
			}
			if toRoom != fromRoom && level[toRoom] <= level[fromRoom] {
				t.Errorf("%s imports %s, which points up or sideways", from, to)
			}
			if only := onlyImportedBy[toRoom]; only != nil && !slices.Contains(only, fromRoom) &&
				fromRoom != toRoom {
				t.Errorf("%s imports %s, which only %s may", from, to, strings.Join(only, " and "))
			}
		}
	}
	if edges < 20 {
		t.Errorf("only %d imports inside the module were seen: the list is not whole", edges)
	}
}
