// Checks what the race detector skips: .ci/steps/race lists tests and packages with a reason. No
// test skipped there starts a goroutine, and it names every package that starts one.

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

// raceList returns one of the step's lists, without the reasons.
func raceList(t *testing.T, text, name string) (lines []string) {
	t.Helper()
	_, list, _ := strings.Cut(text, "\n"+name+"='\n")
	list, _, ok := strings.Cut(list, "\n'\n")
	if !ok {
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

// functions returns the functions and methods of a folder's files by name.
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

// starts reports whether a function starts a goroutine, and returns the functions it calls.
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

// startsIn returns the function that starts a goroutine: name, or a function of its package that it
// calls.
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
			if name := startsIn(all, n, seen); name != "" {
				return name
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
				ok, _ := starts(f)
				yes = yes || ok
			}
		}
		run := slices.ContainsFunc(raced, func(p string) bool {
			root, below := strings.CutSuffix(p, "/...")
			return folder == p || below && (folder == root || strings.HasPrefix(folder, root+"/"))
		})
		if run {
			for name := range functions(t, folder, true) {
				if listed := texts[name]; listed != "" && listed != folder {
					t.Errorf("%s is skipped in %s too, and means %s", name, folder, listed)
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
