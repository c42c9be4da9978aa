// Holds that the code speaks the field's language: names are nouns, verbs or adjectives, and
// comments are read once. testdata/dialect.txt counts what is left of older ones in each file. The
// counts may only shrink, and a new file has none.

package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/dialect.txt again, where it has shrunk")

const dialectFile = "testdata/dialect.txt"

// noNames are prepositions, adverbs and participles, which name nothing when they stand alone.
var noNames = strings.Fields(`
	of by at so some over far said made told given left asked wanted found held kept taken begun
	gone known unsaid comes coming behind before after beside less more whole near off own other
	others alone apart there here instead otherwise either each such like along meant leaving leaves
	shown hidden ended answered cleaned settled still soon late once twice again anew stays went
	goes tries tried`)

// dialect are words of comments for which the field has plainer ones.
var dialect = regexp.MustCompile(`\b(behind|beside|anew|nobody|whoever|is told|are told|is said|` +
	`are said|stands?|lies|but for)\b|\b[Ww]hat (is|was|are|were|has|had|comes|came|stands)\b|` +
	`\bwhere (there|it|one|they|that|none)\b`)

func TestCodeSpeaksTheFieldsLanguage(t *testing.T) {
	now, sum := map[string]int{}, 0 // by "FILE comments" or "FILE NAME"
	count := func(place string, n int) {
		if n > 0 {
			now[place] += n
			sum += n
		}
	}
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "test/") ||
			strings.HasPrefix(file, ".ci/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range parsed.Comments {
			for _, c := range group.List {
				count(file+" comments", len(dialect.FindAllString(c.Text, -1)))
			}
		}
		for _, id := range declared(parsed) {
			if slices.Contains(noNames, strings.ToLower(id.Name)) {
				count(file+" "+id.Name, 1)
			}
		}
	}
	recorded, total := map[string]int{}, 0
	text, err := os.ReadFile(dialectFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var file, word string
		var n int
		if _, err := fmt.Sscan(line, &file, &word, &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		recorded[file+" "+word] = n
		total += n
	}
	if *update && sum <= total {
		var out strings.Builder
		for _, place := range slices.Sorted(maps.Keys(now)) {
			fmt.Fprintln(&out, place, now[place])
		}
		if err := os.WriteFile(dialectFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for place, n := range now {
		if n > recorded[place] {
			t.Errorf("%s: %d, not %d: say it in the field's words (%s)", place, n, recorded[place],
				dialectFile)
		}
	}
	for place, n := range recorded {
		if n > now[place] {
			t.Errorf("%s: only %d of %d are left: go test -run Field -update .", place, now[place],
				n)
		}
	}
}

// declared lists what a file declares: functions, types, fields, parameters, variables.
func declared(file *ast.File) (names []*ast.Ident) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.RangeStmt:
			names = appendIdents(names, n.Tok, n.Key, n.Value)
		case *ast.AssignStmt:
			names = appendIdents(names, n.Tok, n.Lhs...)
		}
		return true
	})
	return names
}

// appendIdents appends the expressions that := declares.
func appendIdents(names []*ast.Ident, tok token.Token, exprs ...ast.Expr) []*ast.Ident {
	for _, e := range exprs {
		if id, ok := e.(*ast.Ident); ok && tok == token.DEFINE {
			names = append(names, id)
		}
	}
	return names
}
