// What a command line can be refused for is looked at before anything else happens: before a model
// is looked for, a server is asked or a line is printed. Over every verb and flag that the program
// has.

package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/urfave/cli/v2"
)

// eachVerb calls do with every verb that does something, and with its words.
func eachVerb(do func(words []string, cmd *cli.Command)) {
	app := newApp(Terminal{Out: io.Discard, Err: io.Discard})
	for _, verb := range app.Commands {
		if len(verb.Subcommands) == 0 || verb.Name == "bench" {
			do([]string{verb.Name}, verb)
		}
		for _, cmd := range verb.Subcommands {
			do([]string{verb.Name, cmd.Name}, cmd)
		}
	}
}

// atOnce runs a command line that must be refused, in one line, without output and without a
// request to the server that SERVER in it is replaced by.
func atOnce(t *testing.T, words []string, code int) string {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
	}))
	defer server.Close()
	args := mapSlice(words, func(w string) string {
		return strings.ReplaceAll(w, "SERVER", server.URL)
	})
	got, out, said := runHere(t.Context(), args...)
	if got != code || out != "" || asked.Load() > 0 || strings.Count(said, "\n") != 1 {
		t.Errorf("ossrun %s: exit code %d, not %d; %d requests; printed %q and %q",
			strings.Join(words, " "), got, code, asked.Load(), out, said)
	}
	return said
}

// TestStrayArgumentsAreRefused: no verb takes more arguments than its usage shows.
func TestStrayArgumentsAreRefused(t *testing.T) {
	alone(t)
	several := 0
	eachVerb(func(words []string, cmd *cli.Command) {
		if strings.Contains(cmd.ArgsUsage, "...") || strings.Contains(cmd.ArgsUsage, "-- FLAGS") {
			several++
			return
		}
		text := atOnce(t, append(words, "a", "b", "c", "d"), exitUsage)
		if cmd.ArgsUsage == "" && !strings.Contains(text, ` takes no arguments, not "a". Run `) {
			t.Errorf("%s: %s", words, text)
		}
	})
	if several != 8 { // chat, run, sessions rm, bench, its two, and two of service
		t.Errorf("%d verbs take any number of arguments", several)
	}
}

// anyText are the flags whose value may be any text, with what it is.
var anyText = map[string]string{"model": "a name or a folder", "models": "names",
	"served-model-name": "names", "upstream-model": "a name", "system": "text", "prompt": "text",
	"host": "an address", "uds": "a socket that is made", "allowed-hosts": "names",
	"allowed-origins": "names", "api-key": "a key", "from": "a folder or an address",
	"resume": "a name", "out": "a folder that is made", "result-dir": "a folder that is made",
	"result-filename": "a name", "fetch": "a command", "vllm-version": "a version",
	"hardware": "a name of a plan", "docker-arg": "text",
	"spec-bench-category": "a word of the file", "request-id-prefix": "text", "label": "text",
	"lora-modules": "names of the server", "timed-trace-label-timestamp": "a word of the file",
	"timed-trace-label-input-length":  "a word of the file",
	"timed-trace-label-output-length": "a word of the file",
	"timed-trace-label-hash-ids":      "a word of the file"}

// TestEveryFlagIsCheckedFirst gives every flag that takes a value one that it cannot have.
func TestEveryFlagIsCheckedFirst(t *testing.T) {
	alone(t)
	needed := map[string][]string{"chat": {"hi"}, "run": {"20b", "hi"}, "keys add": {"bob"},
		"launch": {"claude"}, "mcp": {"browser"}, "sessions rm": {"--yes"}}
	checked := 0
	eachVerb(func(words []string, cmd *cli.Command) {
		for _, f := range cmd.Flags {
			name := f.Names()[0]
			visible := f.(cli.VisibleFlag).IsVisible() && f.(cli.DocGenerationFlag).TakesValue()
			if !visible || anyText[name] != "" {
				continue
			}
			checked++
			line := append(slices.Clone(words), "--"+name+"=/nope/pink:x")
			code := exitUsage
			if name == "lora" {
				code = exitModel
			}
			text := atOnce(t, append(line, needed[strings.Join(words, " ")]...), code)
			if name = dashed(name); name == "--config" {
				name = "config file"
			}
			if !strings.HasPrefix(text, "ossrun: "+name) {
				t.Errorf("%s %s: %s", words, name, text)
			}
		}
	})
	if checked < 170 {
		t.Errorf("%d flags", checked)
	}
}

// TestFilesAndPairsAreCheckedFirst: what a file of a flag holds, and flags that need another.
func TestFilesAndPairsAreCheckedFirst(t *testing.T) {
	alone(t)
	for name, text := range map[string]string{"bad.json": `{"type":`, "empty.json": "",
		"good.json": "{}"} {
		write(t, name, text)
	}
	if err := os.MkdirAll(filepath.Join("half", "golden"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"bench serve --base-url SERVER --dataset-name sharegpt",
		"bench serve --base-url SERVER --dataset-name sharegpt --dataset-path bad.json",
		"bench serve --base-url SERVER --workload sharegpt",
		"bench serve --base-url SERVER --compare bad.json",
		"bench serve --base-url SERVER --random-range-ratio 1",
		"bench serve --base-url SERVER --output-file half",
		"bench --suite seed --base-url SERVER --dataset-path bad.json",
		"bench --layers 3",
		"bench --synthetic 2x64x64x4 --layers 3",
		"bench ops --synthetic 2x64x64x4 --layers 3",
		"doctor --golden half",
		"doctor --bundle half",
		"doctor --gpu 0,1",
		"eval gpqa --base-url SERVER",
		"eval gpqa --base-url SERVER --data bad.json",
		"eval gpqa --base-url SERVER --data good.json --fetch true",
		"chat hi --model 20b --schema bad.json",
		"chat hi --model 20b --mcp-config bad.json",
		"chat hi --model 20b --mcp-config good.json",
		"chat hi --endpoint SERVER --mcp-config empty.json",
		"chat hi --endpoint SERVER --dense q8",
		"chat hi --endpoint SERVER --theme light,green=pink",
		"chat hi --endpoint SERVER --no-history -c",
		"chat hi --model 20b --tools browser,pythn",
		"serve 20b --mcp-config bad.json",
		"serve 20b --ssl-certfile good.json",
		"serve 20b --ssl-certfile good.json --ssl-keyfile good.json",
		"serve 20b --api-key-file empty.json",
		"serve 20b --hardware H100",
		"launch --url SERVER --api-key-file empty.json claude",
		"launch --url SERVER vim",
		"batch bad.json out.json --base-url SERVER",
		"batch good.json good.json --base-url SERVER",
		"version --from x",
		"completion bash zsh",
		"rm demo",
		"rm demo --yes",
	} {
		atOnce(t, strings.Fields(line), exitUsage)
	}
}

// alone gives the test folders of its own.
func alone(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		"XDG_RUNTIME_DIR", "HF_HUB_CACHE"} {
		t.Setenv(name, home)
	}
	t.Chdir(home)
}
