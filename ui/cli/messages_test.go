//go:build unix

// Messages that command lines provoke, as a terminal of 80 columns shows them: a review reads
// testdata/messages.golden at the root. And the words and shapes that no message, help or page may
// have. go test ./ui/cli -run TestMessages -update writes the file.

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/adrg/xdg"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/assets"
)

// provoking are command lines, in a folder with the files of messageFiles; SERVER is a server that
// answers nothing well, NOWHERE an address at which none is.
const provoking = `
chatt
help chatt
chat --efort high hi
chat -x hi
chat -t
chat --temperature hot hi
chat --temperature 3 hi
chat --effort huge hi
chat --device tpu hi
chat --threads -1 hi
chat --cpu-experts some hi
chat --max-tokens 0 hi
chat --max-model-len 32x hi
chat --max-model-len 5 --model demo hi
chat --model /tmp/nonexist hi
chat --model 20n hi
chat --model openai/gpt-4 hi
chat --model 20b hi
chat --model bad.gguf hi
chat --model empty hi
chat --lora empty --model demo hi
chat --endpoint NOWHERE hi
chat --endpoint SERVER hi
chat --endpoint :: hi
chat --endpoint NOWHERE --dense q8 hi
chat --continue hi
chat --resume x hi
chat --no-history -c hi
chat --json
chat --schema none.json hi
chat --schema bad.json hi
chat --schema wrong.json hi
chat --gpu 0 hi
chat --gpu x hi
chat --device gpu --model demo hi
chat --tools pythn --model demo hi
chat --python-tool chroot hi
chat --search nope --tools browser --model demo hi
chat --mcp-config none.json --model demo hi
chat --mcp-config bad.json --model demo hi
chat --tool-server :: --model demo hi
chat --theme pink hi
chat --theme light,green=pink hi
chat --browser-allow all hi
chat --config bad.yaml hi
chat --config none.yaml hi
run
serve --config port.yaml
serve --port
serve --port abc
serve --port 70000
serve ---x
serve 20b 120b
serve 20b --model 120b
serve 20b
serve demo --max-model-len 200
serve demo --max-body 0
serve demo --log-level loud
serve demo --ssl-certfile x
serve demo --ssl-certfile empty.txt
serve demo --ssl-certfile empty.txt --ssl-keyfile empty.txt
serve demo --api-key a --api-key-file empty.txt
serve demo --api-key-file none
serve demo --api-key-file empty.txt
serve demo --tensor-parallel-size 2
serve demo --speculative-config x
serve demo --speculative-config {"model":"x","num_speculative_tokens":3}
serve demo --preset fast
serve demo --keep-alive soon
serve demo --enable-prefix-caching --no-enable-prefix-caching
serve demo --engine tensor
serve demo --hardware H100
serve demo --host 300.1.1.1 --device cpu
vllm plan 120b
vllm plan 120b --hardware H100 --swap-space 4
vllm plan 120b --lora empty --hardware H100
launch
launch vim
launch codex
launch --print --url NOWHERE claude
launch --print --url SERVER claude
ps
ps x
stop
stop 123
keys
keys ad
keys add
keys add a/b
keys add bob --rate x
keys rm bob
keys list
keys usage
sessions list
sessions show
sessions show x
sessions export x
sessions rm
sessions rm x
sessions rm --before soon --yes
list
list x
show
show 20b
show 21b
pull demo
rm demo
rm bad.gguf
rm 20b
bench ops nope --synthetic 20b --layers 1
bench --synthetic 21b
bench --layers 4
bench --copy --suite seed
bench --compare none.json
bench serve --base-url NOWHERE --num-prompts 1
bench serve --dataset-name sharegpt
bench serve --dataset-name sharegpt --dataset-path bad.json
bench serve --extra-request-body x
bench serve --goodput x
bench serve --random-range-ratio 1.0
batch
batch none.jsonl out.jsonl
batch empty.txt empty.txt
eval gpq
eval gpqa
eval gpqa --data none.csv
eval gpqa --data empty.txt --fetch b
eval compat --base-url NOWHERE
service
service status
service status extra
mcp
mcp files
mcp python --python-tool chroot
harmony
harmony encod
harmony encode none
version --verify
version extra
version --from x
completion tcsh
completion bash zsh
doctor --gpu 0,1
doctor --golden none
doctor --bundle none/bundle
`

var messageFiles = map[string]string{"bad.yaml": "bogus: 1\n", "port.yaml": "port: abc\n",
	"bad.gguf": "GGUF\x01\x02\x03\x04aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bad.json": `{"type":`,
	"wrong.json": `{"type": "obj"}`, "empty.txt": ""}

// steady replaces what differs from machine to machine and from run to run.
var steady = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`\d+\.\d+ GB free`), "N GB free"},
	// of what runs
	{regexp.MustCompile(`time=\S+`), "time=TIME"},
	{regexp.MustCompile(`id=req_\w+`), "id=req_ID"},
	{regexp.MustCompile(`\bms=\d+`), "ms=N"},
	{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `), "12:03:41 "},
	{regexp.MustCompile(`\d+\.\d+ GB`), "N GB"},
	{regexp.MustCompile(`\d+ MB now`), "N MB now"},
	{regexp.MustCompile(`\d+\.\d+ MB/s`), "N MB/s"},
	{regexp.MustCompile(`\b\d+(?:\.\d+)? s\b`), "N s"},
	{regexp.MustCompile(`\d+ conversations?\b`), "N conversations"},
	{regexp.MustCompile(`2 threads, \w+`), "2 threads, ISA"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "COMMIT"},
}

func TestMessages(t *testing.T) {
	stored := assets.DemoPack
	assets.DemoPack = embeddedDemo // whose size is listed
	defer func() { assets.DemoPack = stored }()
	home := t.TempDir()
	work := filepath.Join(home, "work")
	golden, err := filepath.Abs("../../testdata/messages.golden")
	err = errors.Join(err, os.MkdirAll(filepath.Join(work, "empty"), 0o755))
	for name, text := range messageFiles {
		err = errors.Join(err, os.WriteFile(filepath.Join(work, name), []byte(text), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "the engine fell over", http.StatusInternalServerError)
	}))
	defer server.Close()
	nowhere := httptest.NewServer(nil)
	nowhere.Close()

	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home,
		"XDG_STATE_HOME": home, "XDG_CACHE_HOME": home, "XDG_RUNTIME_DIR": home,
		"HF_HUB_CACHE": filepath.Join(home, "hub"), "PATH": work} {
		t.Setenv(name, value)
	}
	t.Chdir(work)
	xdg.Reload()
	t.Cleanup(xdg.Reload)
	lines := strings.Split(strings.TrimSpace(provoking), "\n")
	said := make([]string, len(lines))
	for i, line := range lines {
		args := strings.Fields("ossrun " + strings.NewReplacer("SERVER", server.URL, "NOWHERE",
			nowhere.URL).Replace(line))
		var out bytes.Buffer
		code := Run(t.Context(), args, Terminal{In: strings.NewReader(""), Out: &out, Err: &out})
		text := strings.ReplaceAll(out.String(), home, "/home/me")
		for _, s := range steady {
			text = s.from.ReplaceAllString(text, s.to)
		}
		said[i] = fmt.Sprintf("$ ossrun %s    (exit code %d)\n%s", line, code, shownAt80(text))
	}
	provoked := len(said)
	for _, block := range succeeding(t) {
		text := strings.ReplaceAll(block, home, "/home/me")
		for _, s := range steady {
			text = s.from.ReplaceAllString(text, s.to)
		}
		said, lines = append(said, shownAt80(text)), append(lines, "what succeeds")
	}
	said, lines = append(said, noticesOfTheChat(t)), append(lines, "the chat's notices")
	now := "Made by `go test ./ui/cli -run TestMessages -update`: each command line, and what a " +
		"terminal\nof 80 columns shows of it.\n\n" + strings.Join(said, "\n")
	if *updatePage {
		write(t, golden, now)
	}
	before, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	kept := strings.Split(string(before), "\n$ ")
	for i, s := range strings.Split(now, "\n$ ") {
		if i >= len(kept) || kept[i] != s {
			t.Errorf("%s has another text than\n$ %s", golden, s)
		}
	}
	for i, s := range said {
		_, text, _ := strings.Cut(s, "\n")
		parts := []string{text}
		if i >= provoked { // of many messages
			parts = strings.Split(text, "\n")
		}
		for _, part := range parts {
			if wrong := badWords(part); wrong != "" {
				t.Errorf("%s: %s in\n%s", lines[i], wrong, text)
			}
		}
		if wrong := tooLong(s); wrong != "" {
			t.Errorf("%s: %s", lines[i], wrong)
		}
		if n := strings.Count(strings.TrimSpace(text), "\n"); n > 2 && i < provoked &&
			strings.HasPrefix(text, "ossrun: ") {
			t.Errorf("%s: a message of %d lines:\n%s", lines[i], n+1, text)
		}
	}
}

// shownAt80 breaks lines where a terminal does.
func shownAt80(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		runes := []rune(line)
		for len(runes) > 80 {
			b.WriteString(string(runes[:80]) + "\n")
			runes = runes[80:]
		}
		b.WriteString(string(runes) + "\n")
	}
	return b.String()
}

// leftWords are those that have a plainer one, with it.
var leftWords = []struct {
	word    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bOpenAI port\b|\b(?:this|the) port (?:ended|failed|takes|gives|counts)\b`),
		"server, API"},
	{regexp.MustCompile(`(?i)\bnobody\b|\b(?:is|are|was) (?:not )?here\b|\bnot here\b`),
		"installed, downloaded, running, available"},
	{regexp.MustCompile(`(?i)what other programs have`), "models from Ollama, LM Studio"},
	{regexp.MustCompile(`(?i)\b(?:says|said|told|tells) so\b`), "reported, shown, warns"},
	{regexp.MustCompile(`(?i)\b(?:is|are|was|were|be|been) left out\b`), "skipped, ignored, omitted"},
	{regexp.MustCompile(`(?i)\bmodel's own (?:words|form)\b`), "answer format, schema"},
	{regexp.MustCompile(`(?i)\bbehind the (?:first )?answers\b`), "built in the background"},
	{regexp.MustCompile(`(?i)\b(?:has|have|is) no room\b`), "memory, disk space, does not fit"},
	{regexp.MustCompile(`(?i)\basks? again\b|\basking again\b`), "retries, Regenerate"},
	{regexp.MustCompile(`(?i)\bgo(?:es|ing)? on\b`), "continues, resumes"},
	{regexp.MustCompile(`(?i)\bstands? (?:in|behind)\b`), "is in, follows"},
	{regexp.MustCompile(`(?i)\b(?:held|holds|keeps) to\b`), "validated against, follows"},
	{regexp.MustCompile(`(?i)\b(?:is|are) taken\b`), "used, accepts"},
	{regexp.MustCompile(`(?i)\bpushed out\b`), "evicted (from memory)"},
	{regexp.MustCompile(`(?i)\bwhere (?:it|that) lies\b`), "location, in place"},
	{regexp.MustCompile(`(?i)\b(?:a|the|this|on|no) card\b`), "GPU"},
	{regexp.MustCompile(`(?i)\banew\b`), "again, from the start"},
	// and shapes
	{regexp.MustCompile(`(?:^|[.!?] |ossrun: )(?i:(?:what|that|those|one|such|none|whoever) )(?:\w+ )*?` +
		`(?:is|are|says|stands|has|have|goes|can)\b`), "a noun that the reader knows"},
	{regexp.MustCompile(`fork/exec|dial tcp|parse error|strconv\.|invalid character|%!`),
		"a cause in words"},
	{regexp.MustCompile(`^ossrun: (?:[^"\n]*?[a-z]: ){4}`), "one cause"},
}

// badWords names a word or a shape of a text that has another, "" for none.
func badWords(text string) string {
	flat := strings.Join(strings.Fields(text), " ")
	for _, l := range leftWords {
		if m := l.word.FindString(flat); m != "" {
			return fmt.Sprintf("%q, in place of %s", m, l.instead)
		}
	}
	return ""
}

var scriptText = regexp.MustCompile(`"[^"\n]* [^"\n]*"`)

// TestHelpsAndPagesHavePlainWords looks through every help and the pages for users.
func TestHelpsAndPagesHavePlainWords(t *testing.T) {
	texts := map[string]string{}
	app := newApp(Terminal{Out: io.Discard, Err: io.Discard})
	texts["--help"] = app.Description
	var add func(commands []*cli.Command)
	add = func(commands []*cli.Command) {
		for _, cmd := range commands {
			if slices.Contains(unheld, "ui/cli/"+cmd.Name+".go") {
				continue
			}
			texts[cmd.HelpName+" "+cmd.Name] = helpTemplate(cmd, nil)
			add(cmd.Subcommands)
		}
	}
	add(app.Commands)
	files, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(files) < 12 || len(texts) < 35 {
		t.Fatalf("%d pages, %d helps: %v", len(files), len(texts), err)
	}
	for _, name := range append(files, "../../README.md", "../../docs/configuration.md",
		"../../docs/port.md", "../../docs/status.md", "variables.txt") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, paragraph := range strings.Split(string(text), "\n\n") {
			if !strings.HasPrefix(paragraph, "    ") {
				texts[fmt.Sprintf("%s, paragraph %d", name, i+1)] = paragraph
			}
		}
	}
	scripts, err := filepath.Glob("../../runtime/openai/page/*.*s")
	if err != nil || len(scripts) < 8 {
		t.Fatal(scripts, err)
	}
	for _, name := range append(scripts, "../../runtime/openai/page/chat.html",
		"../../runtime/openai/page/fields.txt") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if texts[name] = string(text); strings.HasSuffix(name, "s") { // without the comments
			texts[name] = strings.Join(scriptText.FindAllString(string(text), -1), "\n\n")
		}
	}
	for where, text := range texts {
		if strings.Contains(strings.ToLower(text), "no card has run") {
			continue // the sentence of README's box, which docs_test.go counts
		}
		if wrong := badWords(text); wrong != "" {
			t.Errorf("%s: %s", where, wrong)
		}
	}
}

// unheld are what tests of their own hold, what speaks to the model and what writes files.
var unheld = []string{"runtime/session/compact.go", "runtime/remote/vllm/print.go", "assets/",
	"gpu/kernels"}

// TestErrorsHavePlainWords looks through the literals that errors, notices and reports are made of.
func TestErrorsHavePlainWords(t *testing.T) {
	makes := map[string]bool{"Errorf": true, "New": true, "fail": true, "report": true,
		"Report": true, "note": true, "Notify": true, "notify": true, "once": true, "row": true,
		"showNotice": true, "showError": true, "shortNote": true, "Refusal": true,
		"Fprintln": true, "Fprintf": true, "Sprintf": true}
	seen := 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.Contains(name, "test/") || strings.Contains(name, "testdata") ||
			slices.ContainsFunc(unheld, func(u string) bool { return strings.HasPrefix(name, u) }) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			of := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				of = f.Name
			case *ast.SelectorExpr:
				of = f.Sel.Name
			}
			for _, argument := range call.Args {
				if text := literalOf(argument); makes[of] && strings.Contains(text, " ") {
					seen++
					if wrong := badWords(text); wrong != "" {
						t.Errorf("%s: %s: %q", name, wrong, text)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil || seen < 700 {
		t.Errorf("%d texts: %v", seen, err)
	}
}

// literalOf is a string, or the strings of a sum.
func literalOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return literalOf(e.X) + literalOf(e.Y)
	}
	return ""
}
