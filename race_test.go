// Holds what the race detector leaves out: .ci/steps/race names tests and packages with a reason,
// and none of them is left out by mistake.

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// raceList is one of the lists of the step, without reasons.
func raceList(t *testing.T, text, name string) (lines []string) {
	t.Helper()
	_, list, _ := strings.Cut(text, "\n"+name+"='\n")
	list, _, found := strings.Cut(list, "\n'\n")
	if !found {
		t.Fatalf("the step has no list %s", name)
	}
	for line := range strings.Lines(list) {
		what, why, _ := strings.Cut(line, "#")
		if len(strings.TrimSpace(why)) < 10 {
			t.Errorf("no reason: %s", line)
		}
		lines = append(lines, strings.Join(strings.Fields(what), " "))
	}
	return lines
}

// functions are those of a folder's files, and the methods, by their names.
func functions(t *testing.T, folder string, tests bool) map[string][]*ast.FuncDecl {
	t.Helper()
	all := map[string][]*ast.FuncDecl{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") != tests {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				all[f.Name.Name] = append(all[f.Name.Name], f)
			}
		}
	}
	return all
}

// starts tells whether a function starts a goroutine, and what it calls.
func starts(f *ast.FuncDecl) (yes bool, calls []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			yes = true
		case *ast.CallExpr:
			switch called := n.Fun.(type) {
			case *ast.Ident:
				calls = append(calls, called.Name)
			case *ast.SelectorExpr:
				calls = append(calls, called.Sel.Name)
				yes = yes || called.Sel.Name == "Go" || called.Sel.Name == "Parallel"
			}
		}
		return true
	})
	return yes, calls
}

// startsIn is the function that starts a goroutine, of name and those of its package that it calls.
func startsIn(all map[string][]*ast.FuncDecl, name string, seen map[string]bool) string {
	if seen[name] {
		return ""
	}
	seen[name] = true
	for _, f := range all[name] {
		yes, calls := starts(f)
		if yes {
			return name
		}
		for _, n := range calls {
			if found := startsIn(all, n, seen); found != "" {
				return found
			}
		}
	}
	return ""
}

func TestRaceLeavesOutTextsOnly(t *testing.T) {
	b, err := os.ReadFile(".ci/steps/race")
	if err != nil {
		t.Fatal(err)
	}
	step := string(b)
	texts := map[string]string{} // folders by test: one name is skipped in all of them
	for _, line := range raceList(t, step, "texts") {
		folder, name, _ := strings.Cut(line, " ")
		texts[name] = folder
		all := functions(t, folder, true)
		if all[name] == nil {
			t.Errorf("%s has no %s", folder, name)
		}
		if in := startsIn(all, name, map[string]bool{}); in != "" {
			t.Errorf("%s %s is no text: %s starts a goroutine", folder, name, in)
		}
	}
	line := regexp.MustCompile(`(?m)^packages=\((.*)\)$`).FindStringSubmatch(step)
	if line == nil {
		t.Fatal("the step names no packages")
	}
	raced := strings.Fields(strings.ReplaceAll(line[1], "./", ""))
	elsewhere := raceList(t, step, "elsewhere")
	folders := map[string]bool{}
	for _, name := range files(t, ".go") {
		folders[path.Dir(name)] = true
	}
	for folder := range folders {
		if strings.HasSuffix(folder, "test") || strings.Contains(folder, "testdata") ||
			strings.HasPrefix(folder, ".ci") {
			continue
		}
		yes := false
		for _, list := range functions(t, folder, false) {
			for _, f := range list {
				some, _ := starts(f)
				yes = yes || some
			}
		}
		run := slices.ContainsFunc(raced, func(p string) bool {
			root, below := strings.CutSuffix(p, "/...")
			return folder == p || below && (folder == root || strings.HasPrefix(folder, root+"/"))
		})
		if run {
			for name := range functions(t, folder, true) {
				if of := texts[name]; of != "" && of != folder {
					t.Errorf("%s is skipped in %s too, and means %s", name, folder, of)
				}
			}
		}
		if yes && !run && !slices.Contains(elsewhere, folder) {
			t.Errorf("%s starts goroutines, and .ci/steps/race does not name it", folder)
		}
	}
	for _, folder := range elsewhere {
		if !folders[folder] {
			t.Errorf("there is no %s", folder)
		}
	}
}
