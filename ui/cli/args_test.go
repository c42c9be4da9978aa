package cli

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestSeveralValues: some flags of vLLM take all following words, except the model if nothing else
// names it.
func TestSeveralValues(t *testing.T) {
	app := newApp(Terminal{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	for line, want := range map[string]string{
		"--served-model-name a":                     "--served-model-name=a",
		"--served-model-name a b --model demo":      "--served-model-name=a,b --model=demo",
		"--model demo --served-model-name a b c":    "--model=demo --served-model-name=a,b,c",
		"--model=demo --served_model_name a b":      "--model=demo --served-model-name=a,b",
		"demo --served-model-name a b":              "--served-model-name=a,b -- demo",
		"--served-model-name a demo":                "--served-model-name=a -- demo",
		"--served-model-name a b demo --port 1":     "--served-model-name=a,b --port=1 -- demo",
		"--served-model-name=a demo":                "--served-model-name=a -- demo",
		"--served-model-name a b -- demo":           "--served-model-name=a,b -- demo",
		"demo --cuda-graph-sizes 1 2 4 --port 1":    "--cuda-graph-sizes=1,2,4 --port=1 -- demo",
		"demo --max-model-len auto":                 "demo",
		"demo --max-model-len -1 --port 1":          "--port=1 -- demo",
		"demo --max-model-len=auto":                 "demo",
		"demo --max-model-len 32k --max_model_len=": "--max-model-len=32000 --max-model-len= -- demo",
	} {
		got := flagsFirst(app, append([]string{"ossrun", "serve"}, strings.Fields(line)...))
		if !slices.Equal(got[2:], strings.Fields(want)) {
			t.Errorf("%s: %q, want %s", line, got[2:], want)
		}
	}
}

// TestPromptsWithADash: a word with blanks is no flag, even if it begins like one; every other word
// with a dash is.
func TestPromptsWithADash(t *testing.T) {
	app := newApp(Terminal{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	for _, prompt := range []string{"- a list", "-1 + 2", "--answer in short", "-\ta", "-\na",
		"-1 + 2 = x", "--effort is what?", "-- a", "-m or -p?"} {
		for _, args := range [][]string{{"chat", prompt}, {"chat", "--json", prompt},
			{"chat", prompt, "--effort", "low"}, {"run", "demo", prompt}, {"chat", "say", prompt}} {
			got := flagsFirst(app, append([]string{"ossrun"}, args...))
			at := slices.Index(got, prompt)
			if at < 0 || !slices.Contains(got[:at], "--") && got[at-1] != "say" {
				t.Errorf("%q: %q", args, got)
			}
		}
	}
	for _, flag := range []string{"--efort", "-x", "--efort=very low", "-system=be brief"} {
		if got := flagsFirst(app, []string{"ossrun", "chat", flag}); slices.Contains(got, "--") {
			t.Errorf("%q: %q", flag, got)
		}
	}
}

// TestOtherProgramsWords: what other programs call our verbs works, or is an error that names one
// of ours; and no flag of any verb has a name twice, on which the parser would panic.
func TestOtherProgramsWords(t *testing.T) {
	app := newApp(Terminal{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	for word, verb := range map[string]string{"ls": "list", "models": "list", "download": "pull",
		"get": "pull", "delete": "rm", "remove": "rm"} {
		if cmd := app.Command(word); cmd == nil || cmd.Name != verb {
			t.Errorf("%s is not %s", word, verb)
		}
	}
	for _, of := range []string{"sessions", "keys"} {
		for word, verb := range map[string]string{"ls": "list", "delete": "rm", "remove": "rm"} {
			found := false
			for _, cmd := range app.Command(of).Subcommands {
				found = found || cmd.Name == verb && cmd.HasName(word)
			}
			if !found {
				t.Errorf("%s %s is not %s", of, word, verb)
			}
		}
	}
	for verb, words := range foreignVerbs {
		first, _, _ := strings.Cut(verb, " ")
		for _, word := range strings.Fields(words) {
			if cmd := app.Command(first); cmd == nil || cmd.Hidden || app.Command(word) != nil {
				t.Errorf("%s means %s", word, verb)
			}
		}
	}
	for _, verb := range app.Commands {
		for _, cmd := range append([]*cli.Command{verb}, verb.Subcommands...) {
			words := []string{"ossrun", verb.Name}
			if cmd != verb {
				words = append(words, cmd.Name)
			}
			var said strings.Builder
			if code := Run(t.Context(), append(words, "--help"), Terminal{Out: &said,
				Err: &said}); code != exitOK || !strings.Contains(said.String(), cmd.Usage) {
				t.Errorf("%s: %d, %s", words, code, &said)
			}
			for _, f := range cmd.Flags {
				for want := range strings.FieldsSeq(shortNames[f.Names()[0]]) {
					if !slices.Contains(f.Names(), want) {
						t.Errorf("%s --%s has no -%s", words, f.Names()[0], want)
					}
				}
			}
		}
	}
}

// TestTablesInConfigFiles: tables are JSON, as vLLM puts them on its command line.
func TestTablesInConfigFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	text := "\xef\xbb\xbfa: {level: 3, b: {c: [1, x]}}\r\nl: [1, b]\r\nt: [{n: 1}, {n: 2}]\r\n"
	write(t, path, text)
	got, err := readConfig(path)
	want := map[string]string{"a": `{"b":{"c":[1,"x"]},"level":3}`, "l": "1,b",
		"t": `{"n":1},{"n":2}`}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
}
