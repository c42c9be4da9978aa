// Holds the direction of imports that docs/design.md draws: rooms may only call downwards. A package that is in no row
// of the table fails the test too, so that a new room must be given its place.

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ossrun/ossrun"

// level orders the rooms from the program's entry (0) down. A package may import its own room and rooms with a larger
// number.
var level = map[string]int{
	"":                      0,
	"ui/cli":                1,
	"ui/chat":               2,
	"runtime/openai":        2,
	"runtime/join":          2,
	"runtime/vllm":          2,
	"runtime/bench":         2,
	"runtime/eval":          2,
	"runtime/session":       3,
	"runtime/tools":         4,
	"runtime/sched":         4,
	"harmony":               5,
	"runtime/cpu":           5,
	"gpu/device":            6,
	"runtime/grammar":       6,
	"harmony/token":         7,
	"harmony/internal":      8,
	"runtime/kv":            6,
	"runtime/sample":        6,
	"runtime/engine":        7,
	"gpu/worker":            6,
	"gpu":                   3,
	"gpu/card":              5,
	"gpu/spread":            4,
	"gpu/worker/ossrun-gpu": 2,
	"gpu/split":             5,
	"gpu/placement":         6,
	"gpu/kernels":           7,
	"gpu/driver":            8,
	"gpu/detect":            8,
	"models":                8,
	"jsondoc":               9,
	"assets":                9,
}

// onlyImportedBy names the rooms that are wired in at few places.
var onlyImportedBy = map[string][]string{"runtime/cpu": {"ui/cli", "gpu/spread"}, "gpu/device": {"ui/cli", "gpu", "gpu/card"},
	"gpu/card": {"ui/cli", "gpu", "gpu/spread", "gpu/worker/ossrun-gpu"}}

// mustNotImport keeps outside packages out of rooms that have no business with them.
var mustNotImport = map[string][]string{
	"harmony":        {"net/http", "github.com/charmbracelet"},
	"runtime/engine": {"net/http", "github.com/charmbracelet"},
	"runtime/sched":  {"net/http", "github.com/charmbracelet"},
	"runtime/openai": {"github.com/charmbracelet", "github.com/urfave"},
	"runtime":        {"github.com/urfave"},
	"ui/chat":        {"net/http"},
}

// room is the longest prefix of path in the table.
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
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	edges := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		from := strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")
		fromRoom, ok := room(from)
		if !ok {
			t.Errorf("%s is in no room: give it a level in imports_test.go and a place in docs/design.md", from)
			continue
		}
		for _, imp := range fields[1:] {
			for prefix, banned := range mustNotImport {
				for _, b := range banned {
					if (from == prefix || strings.HasPrefix(from, prefix+"/")) && strings.HasPrefix(imp, b) {
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
			if only := onlyImportedBy[toRoom]; only != nil && !slices.Contains(only, fromRoom) && fromRoom != toRoom {
				t.Errorf("%s imports %s, which only %s may", from, to, strings.Join(only, " and "))
			}
		}
	}
	if edges < 20 {
		t.Errorf("only %d imports inside the module were seen: the list is not whole", edges)
	}
}
