//go:build unix

package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshootingKnowsTheMessages: the fixed words of a message of the page are the program's.
func TestTroubleshootingKnowsTheMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var literals strings.Builder
	err = filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			ast.Inspect(file, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok {
					literals.WriteString(literalOf(e) + "\n")
				}
				return true
			})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## By message\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1)
	for _, row := range rows {
		longest := ""
		for _, piece := range regexp.MustCompile(`"?\b[A-Z]+\b"?|\.\.\.`).Split(row[1], -1) {
			if piece = strings.TrimSpace(piece); len(piece) > len(longest) {
				longest = piece
			}
		}
		if !strings.Contains(literals.String(), longest) {
			t.Errorf("no message has %q, of %q", longest, row[1])
		}
	}
	if len(rows) < 15 {
		t.Errorf("%d messages", len(rows))
	}
}
