// Checks that every GPU test runs in full somewhere. If README's tests skip or shorten it, a CI
// step names it, or its name ends in Long, which .ci/long runs.

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// shortened returns the tests of a file that call drivertest.Long or drivertest.Some.
func shortened(t *testing.T, name string) (tests []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "Long" && s.Sel.Name != "Some" {
				return true
			}
			if x, ok := s.X.(*ast.Ident); !ok || x.Name != "drivertest" {
				return true
			}
			if !strings.HasPrefix(f.Name.Name, "Test") {
				t.Errorf("%s: %s shortens the tests that call it: let them do so", name, f.Name)
			}
			tests = append(tests, f.Name.Name)
			return false
		})
	}
	return tests
}

func TestShortenedGPUTestsAreInAStep(t *testing.T) {
	run := map[string]bool{} // "package test"
	call := regexp.MustCompile(`(?m)^\.ci/passed (\S+)((?: |\\\n|\w+)+)$`)
	for _, step := range []string{"gpu", "long-forms", "firstcard"} {
		text, err := os.ReadFile(".ci/steps/" + step)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			for _, test := range strings.Fields(strings.ReplaceAll(m[2], "\\", "")) {
				if run[m[1]+" "+test] {
					t.Errorf("%s of %s runs twice", test, m[1])
				}
				run[m[1]+" "+test] = true
			}
		}
	}
	n := 0
	for _, name := range files(t, ".go") {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "gpu/") && strings.Contains(string(text), `"OSSRUN_LONG"`) {
			t.Errorf("%s asks for OSSRUN_LONG: drivertest.Long and Some do", name)
		}
		if !strings.Contains(string(text), "drivertest.") {
			continue
		}
		for _, test := range shortened(t, name) {
			n++
			if !strings.HasSuffix(test, "Long") && !run[path.Dir(name)+" "+test] {
				t.Errorf("%s of %s is in no step of CI", test, path.Dir(name))
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d tests are shortened", n)
	}
}
