// Checks rules of docs/CONTRIBUTING.md: lines fit 100 columns, and files open with their purpose.
// The picture of the rooms in docs/design.md matches the tree, and few types implement a turn or
// a runner.

package main

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// columns is the maximum width of a line; a tab counts as four.
const columns = 100

// files lists the tree's files with one of the endings, without build output.
func files(t *testing.T, endings ...string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (name == ".git" || name == "dist" || e.Name() == "testdata"):
			return fs.SkipDir
		case e.Type().IsRegular() && slices.Contains(endings, path.Ext(name)):
			list = append(list, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil || len(list) == 0 {
		t.Fatalf("%d files with %v: %v", len(list), endings, err)
	}
	return list
}

// TestActionsArePinned wants commits: an attacker who owns an action's repository can move a tag.
//
// SECURITY.md: The job that signs and uploads runs only GitHub's actions, pinned by commit, and
// the signing library, pinned by hash.
func TestActionsArePinned(t *testing.T) {
	used := regexp.MustCompile(`uses: *(\S+)`)
	pinned := regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40}$`)
	for _, name := range files(t, ".yml") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range used.FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s uses %s, which is not a commit", name, m[1])
			}
		}
	}
}

func TestLinesFit(t *testing.T) {
	for _, name := range files(t, ".go", ".md", ".cpp", ".h", ".cu") {
		if name == "gpu/kernels/kernels.md" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		number, raw, wide := 0, false, []int(nil)
		for line := range strings.Lines(string(text)) {
			number++
			line = strings.TrimRight(line, "\r\n")
			inside := raw
			if strings.HasSuffix(name, ".go") && strings.Count(line, "`")%2 == 1 {
				raw = !raw
			}
			width := len([]rune(line)) + 3*strings.Count(line, "\t")
			if width <= columns || inside || raw || mayBeLong(name, line) {
				continue
			}
			wide = append(wide, number)
		}
		if len(wide) > 0 {
			t.Errorf("%s: more than %d columns in lines %v", name, columns,
				wide[:min(len(wide), 9)])
		}
	}
}

// literal matches a string literal of Go.
var literal = regexp.MustCompile(`"([^"\\]|\\.)*"`)

// mayBeLong reports whether a line cannot be broken well: a row of a Markdown table, README's
// one-line command, a string in backquotes or a line without a blank. In tests, the text of strings
// does not count.
func mayBeLong(name, line string) bool {
	if strings.HasSuffix(name, ".md") && strings.HasPrefix(strings.TrimSpace(line), "|") ||
		name == "README.md" && strings.HasPrefix(line, "    $(command -v sudo) apt-get ") {
		return true
	}
	code := !strings.HasPrefix(strings.TrimSpace(line), "//")
	if strings.HasSuffix(name, ".go") && code && strings.Contains(line, "`") ||
		strings.HasPrefix(line, "//go:") || strings.HasPrefix(line, "#cgo") {
		return true
	}
	if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "test/") {
		line = literal.ReplaceAllString(line, `""`)
		return len([]rune(line))+3*strings.Count(line, "\t") <= columns
	}
	text := strings.TrimLeft(strings.TrimSpace(line), "/#*- ")
	return !strings.Contains(strings.TrimSpace(text), " ")
}

// TestFilesSayWhy requires a comment at the top of every product Go file, just before or just after
// the package clause.
func TestFilesSayWhy(t *testing.T) {
	for _, name := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		says := false
		for s := bufio.NewScanner(file); s.Scan() && !says; {
			line := s.Text()
			says = strings.HasPrefix(line, "// ") || strings.HasPrefix(line, "/* ")
			if strings.HasPrefix(line, "func ") || strings.HasPrefix(line, "type ") {
				break
			}
		}
		file.Close()
		if !says {
			t.Errorf("%s does not open with why it exists", name)
		}
	}
}

// TestThePictureIsTheTree compares the rooms drawn in docs/design.md with the tree's packages.
func TestThePictureIsTheTree(t *testing.T) {
	drawn := map[string]bool{}
	design, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, picture, ok := strings.Cut(string(design), "## The rooms\n")
	if !ok {
		t.Fatal("docs/design.md has no section of the rooms")
	}
	picture, _, _ = strings.Cut(picture, "\n## ")
	var folders []string
	for line := range strings.Lines(picture) {
		text, ok := strings.CutPrefix(line, "    ")
		fields := strings.Fields(text)
		if !ok || len(fields) == 0 || !strings.HasSuffix(fields[0], "/") {
			continue
		}
		depth := (len(text) - len(strings.TrimLeft(text, " "))) / 2
		if depth > len(folders) {
			continue // the rest of a description
		}
		folders = append(folders[:depth], strings.TrimSuffix(fields[0], "/"))
		drawn[path.Join(folders...)] = true
	}
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	built := map[string]bool{}
	for p := range strings.FieldsSeq(string(out)) {
		p = strings.TrimPrefix(strings.TrimPrefix(p, module), "/")
		if strings.Contains(p, "testdata") || p == "" {
			continue
		}
		for ; p != "."; p = path.Dir(p) {
			built[p] = true
		}
	}
	if len(built) < 30 {
		t.Fatalf("only %d packages were seen: the list is not whole", len(built))
	}
	for _, p := range slices.Sorted(maps.Keys(built)) {
		if !drawn[p] {
			t.Errorf("%s is not in the picture of docs/design.md", p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(drawn)) {
		if !built[p] {
			t.Errorf("docs/design.md draws %s, which has no package", p)
		}
	}
}

// step matches one line of a walk: its number, a file and a function.
var step = regexp.MustCompile("^[1-8]\\. `([a-z0-9_/]+\\.go)` `([A-Za-z0-9_]+)`: ")

// TestTheWalksExist finds each function of the walks of docs/design.md in the file that the walk
// names.
func TestTheWalksExist(t *testing.T) {
	design, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, _ := strings.Cut(string(design), "## Seven walks\n")
	walks, _, _ = strings.Cut(walks, "\n## ")
	steps := 0
	for line := range strings.Lines(walks) {
		if line[0] < '0' || line[0] > '9' {
			continue
		}
		m := step.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("not a step of a walk, or the ninth: %s", line)
			continue
		}
		steps++
		text, err := os.ReadFile(m[1])
		if err != nil {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
			continue
		}
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + m[2] + `[\[(]`).Match(text) {
			t.Errorf("%s has no function %s", m[1], m[2])
		}
	}
	if steps < 45 {
		t.Errorf("only %d steps were found", steps)
	}
}

// TestMappingNamesTests checks that each test, test script or program named in docs/coverage.md
// exists.
func TestMappingNamesTests(t *testing.T) {
	text, err := os.ReadFile("docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources []byte
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		sources = append(sources, b...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[3], "---") || cells[3] == " held by " {
			continue
		}
		rows++
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[3], -1)
		if len(names) == 0 {
			t.Errorf("nothing holds %s", line)
		}
		for _, m := range names {
			name := m[1]
			there := bytes.Contains(sources, []byte("func "+name+"(t "))
			for _, path := range []string{name, "ui/cli/testdata/" + name} {
				if _, err := os.Stat(path); err == nil {
					there = true
				}
			}
			if !there {
				t.Errorf("there is no %s", name)
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows", rows)
	}
}

// TestFewTypesMakeTurns limits the types that implement a turn or a runner. Wrappers use the
// functions of runtime/session/wrap.go, which forward every method they do not change.
func TestFewTypesMakeTurns(t *testing.T) {
	most := map[string]int{"Next func() (Event, bool)": 5,
		"Start func(context.Context, Request) (Turn, error)": 6}
	places := map[string][]string{}
	for _, name := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "test/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			method := f.Name.Name + " " + unnamed(f.Type)
			if most[method] > 0 {
				places[method] = append(places[method], name)
			}
			if strings.HasPrefix(name, "ui/cli/") && f.Name.Name == "Start" {
				t.Errorf("%s has a type that starts something: which model answers is no "+
					"business of ui/cli", name)
			}
		}
	}
	for method, n := range most {
		if len(places[method]) < 2 || len(places[method]) > n {
			t.Errorf("%d types have the method %s, and %d may: %v", len(places[method]), method, n,
				places[method])
		}
	}
}

// unnamed returns a function's type without parameter names and without the prefix session.
func unnamed(f *ast.FuncType) string {
	for _, list := range []*ast.FieldList{f.Params, f.Results} {
		for i := 0; list != nil && i < len(list.List); i++ {
			list.List[i].Names = nil
		}
	}
	return strings.ReplaceAll(types.ExprString(f), "session.", "")
}

// The chat's Model is made of parts that have methods of their own.
func TestTheModelStaysSmall(t *testing.T) {
	fields, methods := 0, 0
	for _, name := range files(t, ".go") {
		if path.Dir(name) != "ui/chat" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && types.ExprString(n.Recv.List[0].Type) == "*Model" {
					methods++
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && n.Name.Name == "Model" {
					fields = s.Fields.NumFields()
				}
			}
			return true
		})
	}
	if fields == 0 || fields > 25 || methods == 0 || methods > 50 {
		t.Errorf("ui/chat.Model has %d fields and %d methods, and may have 25 and 50", fields,
			methods)
	}
}
