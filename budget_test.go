// Holds what the house may grow to, and the names that do not come back: each room has a budget of
// lines, and a word that the field has another for is not a name here.

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// budget is how many lines of product code each room of imports_test.go has: Go, and the C++ and
// CUDA that ship with it, without tests. A room may grow by two in a hundred; whoever makes it grow
// by more changes its number here, and says why in that commit.
var budget = map[string]int{
	"":                           20,
	"assets":                     783,
	"gpu":                        850,
	"gpu/detect":                 1452,
	"gpu/device":                 4560,
	"gpu/driver":                 1125,
	"gpu/kernels":                8043,
	"gpu/multi":                  2179,
	"gpu/worker":                 2368,
	"gpu/worker/ossrun-gpu":      29,
	"harmony":                    2174,
	"harmony/jsondoc":            1023,
	"harmony/token":              1162,
	"models":                     12900,
	"runtime/cpu":                7975,
	"runtime/engine":             2930,
	"runtime/grammar":            1516,
	"runtime/grammar/automaton":  4425,
	"runtime/grammar/schema":     3275,
	"runtime/kv":                 1435,
	"runtime/measure/bench":      1346,
	"runtime/measure/eval":       993,
	"runtime/measure/jsonlines":  72,
	"runtime/measure/load":       1095,
	"runtime/openai":             1393,
	"runtime/openai/answer":      4811,
	"runtime/openai/chat":        549,
	"runtime/openai/completions": 445,
	"runtime/openai/keys":        468,
	"runtime/openai/messages":    645,
	"runtime/openai/ollama":      601,
	"runtime/openai/responses":   3205,
	"runtime/process":            264,
	"runtime/remote":             767,
	"runtime/remote/client":      560,
	"runtime/remote/local":       1226,
	"runtime/remote/pool":        1105,
	"runtime/remote/vllm":        1270,
	"runtime/sample":             1230,
	"runtime/sched":              2350,
	"runtime/sched/draft":        332,
	"runtime/serve":              3650,
	"runtime/session":            3880,
	"runtime/tools":              5899,
	"runtime/tools/pdf":          175,
	"ui/chat":                    8950,
	"ui/cli":                     9600,
}

// TestRoomsKeepTheirBudgets counts the lines of each room. One that shrank by a tenth has too large
// a budget.
func TestRoomsKeepTheirBudgets(t *testing.T) {
	lines := map[string]int{}
	for _, name := range files(t, ".go", ".cpp", ".h", ".cu") {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "test/") ||
			strings.HasPrefix(name, ".ci/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		in, ok := room(strings.TrimPrefix(path.Dir(name), "."))
		if !ok {
			t.Errorf("%s is in no room", name)
		}
		lines[in] += bytes.Count(text, []byte("\n"))
	}
	for _, in := range slices.Sorted(maps.Keys(lines)) {
		switch n, most := lines[in], budget[in]; {
		case n > most+most/50:
			t.Errorf("%q has %d lines and a budget of %d: make it shorter, or change the budget "+
				"and say why in the commit", in, n, most)
		case n < most-most/10:
			t.Errorf("%q has %d lines and a budget of %d: give back what it does not need", in, n,
				most)
		}
	}
	for in := range budget {
		if lines[in] == 0 {
			t.Errorf("%q has a budget and no code", in)
		}
	}
}

// sleeps is how many calls of time.Sleep the tests have: in loops that ask, in fake peers and in
// bubbles of testing/synctest. It may only shrink: a test that sleeps judges by the clock.
const sleeps = 34

func TestSleepsOnlyShrink(t *testing.T) {
	var places []string
	for _, name := range files(t, ".go") {
		if !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "test/") {
			continue
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok || call.Sel.Name != "Sleep" {
				return true
			}
			if in, ok := call.X.(*ast.Ident); ok && in.Name == "time" {
				places = append(places, positions.Position(call.Pos()).String())
			}
			return true
		})
	}
	if len(places) != sleeps {
		t.Errorf("%d calls of time.Sleep in tests, not %d: wait for an event, or lower the number\n%s",
			len(places), sleeps, strings.Join(places, "\n"))
	}
}

// left are names that the code had, and what the field calls the thing.
var left = map[string]string{
	"takeSeat": "chooseModel", "rejoining": "failover", "movable": "retried", "guest": "client",
	"guestTurn": "clientTurn", "hand": "deliver", "handout": "delivery", "elsewhere": "upstream",
	"tell": "report", "lies": "contradiction", "complain": "showError", "complaint": "stderr",
	"complaints": "problems", "remark": "markedText", "speech": "answerText", "thought": "reasoning",
	"mailbox": "queue", "shelf": "class", "stretch": "segment", "somewhere": "onAnyServer",
	"prospect": "nextAttempt", "takeIn": "queueIncoming", "fare": "record", "saysTheSame": "sameTexts",
	"nowhere": "discard", "remade": "rebuilt", "replica": "pool",
}

// TestLeftNamesStayAway looks through the declarations of the product: functions, types, fields and
// variables of a package.
func TestLeftNamesStayAway(t *testing.T) {
	for _, name := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		declared := []*ast.Ident{file.Name}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				declared = append(declared, f.Name)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				declared = append(declared, n.Name)
			case *ast.Field:
				declared = append(declared, n.Names...)
			}
			return true
		})
		for _, id := range declared {
			first := strings.ToLower(id.Name[:1]) + id.Name[1:]
			if instead := left[first]; instead != "" {
				t.Errorf("%s: %s is %s to a reader of the field", positions.Position(id.Pos()),
					id.Name, instead)
			}
		}
	}
}
