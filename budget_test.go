// Holds what the house may grow to, and the names that do not come back: all product Go has one
// budget of lines, and a word that the field has another for is not a name here.

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"strings"
	"testing"
)

// budget is how many lines of product Go there are, as .ci/lines counts them. It is raised only in
// a commit that says what it took away instead, or which issue allows how much.
const budget = 110366

// most is how many lines a file has, so that one idea is read in one sitting.
const most = 700

// TestTheHouseKeepsItsBudget counts lines. Below the budget by 100, the number is lowered.
func TestTheHouseKeepsItsBudget(t *testing.T) {
	lines := 0
	for _, name := range files(t, ".go") {
		if strings.HasPrefix(name, ".ci/") || strings.HasSuffix(name, "_test.go") ||
			strings.Contains(name, "test/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n := bytes.Count(text, []byte("\n"))
		lines += n
		if n > most {
			t.Errorf("%s has %d lines and may have %d: it has more than one idea", name, n, most)
		}
		if _, ok := room(strings.TrimPrefix(path.Dir(name), ".")); !ok {
			t.Errorf("%s is in no room", name)
		}
	}
	if lines > budget || lines < budget-100 {
		t.Errorf("%d lines of product Go, and a budget of %d: take something away, or lower the "+
			"number", lines, budget)
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
