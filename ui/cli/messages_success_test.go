// Messages of success, for testdata/messages.golden: a pull, a server with its requests, and
// doctor, in a pipe and on a terminal; and the notices of the chat, read from its sources, with %s
// for names and numbers.

package cli

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// ways runs do on a terminal and on a pipe, and returns the output of each.
func ways(t *testing.T, title string, do func(Terminal, *heard)) (blocks []string) {
	t.Helper()
	piped := &heard{}
	do(Terminal{In: strings.NewReader(""), Out: piped, Err: piped}, piped)
	near, far, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	if err := pty.Setsize(far, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	shown, ended := &heard{}, make(chan struct{})
	go func() {
		_, _ = io.Copy(shown, near) // it ends with the other end
		close(ended)
	}()
	do(Terminal{In: strings.NewReader(""), Out: far, Err: far}, shown)
	far.Close()
	<-ended
	on := regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]").ReplaceAllString(shown.String(), "")
	on = strings.ReplaceAll(on, "\r\n", "\n")
	on = regexp.MustCompile(`(?m)^.*\r`).ReplaceAllString(on, "") // a bar that was drawn over
	return []string{"$ ossrun " + title + "    (in a pipe)\n" + piped.String(),
		"$ ossrun " + title + "    (on a terminal)\n" + on}
}

// succeeding are what the verbs print where nothing is wrong.
func succeeding(t *testing.T) (blocks []string) {
	hub, err := startHub()
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	t.Setenv("HF_ENDPOINT", hub.Hub.URL)
	for _, line := range []string{"pull 20b", "pull 20b", "pull 20b --offline", "list", "rm 20b --yes"} {
		blocks = append(blocks, ways(t, line, func(on Terminal, _ *heard) {
			if code := Run(t.Context(), strings.Fields("ossrun "+line), on); code != exitOK &&
				line != "rm 20b --yes" && line != "pull 20b --offline" {
				t.Errorf("%s: %d", line, code)
			}
		})...)
	}
	blocks = append(blocks, ways(t, "serve demo", func(on Terminal, said *heard) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan int)
		go func() {
			ended <- Run(ctx, strings.Fields("ossrun serve demo --device cpu --threads 2 --port 0 "+
				"--max-model-len 4096 --tools none --swap-space 0 --no-remember-on-disk"), on)
		}()
		said.until(t, `startup complete|Ready in`)
		base := said.until(t, `http://127\.0\.0\.1:\d+`)
		for i, request := range [][2]string{{"/health", ""}, {"/v1/models", ""},
			{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"seed":1}`},
			{"/v1/chat/completions", `{"messages":[],"temperature":9}`}, {"/v1/nothing", ""}} {
			method := http.MethodPost
			if request[1] == "" {
				method = http.MethodGet
			}
			asked, err := http.NewRequestWithContext(t.Context(), method, base+request[0],
				strings.NewReader(request[1]))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(asked)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			said.until(t, fmt.Sprintf(`(?s)(?:(?:msg=request|\d\d:\d\d:\d\d  [2-5]).*){%d}`, i+1))
		}
		stop()
		if code := <-ended; code != exitOK {
			t.Errorf("serve: %d", code)
		}
	})...)
	var doctor bytes.Buffer
	if err := printSummary(&doctor, recordedMachine()); err != nil {
		t.Fatal(err)
	}
	return append(blocks, "$ ossrun doctor    (of a recorded machine)\n"+doctor.String())
}

// noticesOfTheChat are the texts that the chat's sources tell the person.
func noticesOfTheChat(t *testing.T) string {
	tells := []string{"showNotice", "showError", "note", "shortNote", "failure",
		"sessionChanged", "report"}
	sources, err := filepath.Glob(filepath.Join(sourceFolder, "ui/chat/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var made ast.Expr
			var arguments []ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				made, arguments = n.Fun, n.Args
			case *ast.CompositeLit:
				made, arguments = n.Type, n.Elts
			}
			if len(arguments) == 0 {
				return true
			}
			name := ""
			switch f := made.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			if text := spelled(arguments[0]); slices.Contains(tells, name) && len(text) > 4 {
				all = append(all, text)
			}
			return true
		})
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) < 60 {
		t.Errorf("%d notices of the chat", len(all))
	}
	return "$ ossrun chat    (its notices)\n" + strings.Join(all, "\n") + "\n"
}

// spelled is a text in the sources, with %s for its variables.
func spelled(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			return ""
		}
		return text
	case *ast.BinaryExpr:
		return spelled(e.X) + spelled(e.Y)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Sprintf" ||
			f.Sel.Name == "Errorf" || f.Sel.Name == "New") {
			return spelled(e.Args[0])
		}
	}
	return "%s"
}

// sourceFolder is the module's, which a test that changes its folder no longer sees as ../..
var sourceFolder = func() string {
	folder, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return folder
}()

var (
	aSentence = regexp.MustCompile(`[^.?!]*(?:[.?!](?:\S[^.?!]*)?)*?(?:[.?!]\s|$)`)
	breaks    = regexp.MustCompile(`[:;] `)
)

// tooLong names a sentence of a message that has more than 25 words, or more than one colon or
// semicolon.
func tooLong(block string) string {
	_, text, _ := strings.Cut(block, "\n")
	var whole strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		whole.WriteString(line)
		if len([]rune(line)) != 80 {
			whole.WriteByte('\n')
		}
	}
	for line := range strings.SplitSeq(whole.String(), "\n") {
		message, own := strings.CutPrefix(line, "ossrun: ")
		if !own && !strings.Contains(block, "(its notices)") {
			continue
		}
		for _, s := range aSentence.FindAllString(message, -1) {
			if n := len(strings.Fields(s)); n > 25 {
				return fmt.Sprintf("%d words in %q", n, s)
			}
			if n := len(breaks.FindAllString(s, -1)); n > 1 {
				return fmt.Sprintf("%d colons in %q", n, s)
			}
		}
	}
	return ""
}

// TestTooLong: what the limits of a message find.
func TestTooLong(t *testing.T) {
	words := strings.Repeat("word ", 13)
	for message, wrong := range map[string]bool{words + words: true, words + "v1.5 end. " + words: false,
		"a: b: c": true, "a: b. C: d": false, "a: b; c": true, "http://x:1/y cannot: be": false,
		"config.yaml: port: 3": true} {
		block := "$ x\n" + shownAt80("ossrun: "+message)
		if got := tooLong(block); (got != "") != wrong {
			t.Errorf("%q: %q", message, got)
		}
	}
	if _, err := os.Stat(filepath.Join(sourceFolder, "go.mod")); err != nil {
		t.Error(err)
	}
}
