package cli

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSeveralValues: a flag of vLLM takes all the words behind it, but for the model where nothing
// else names it.
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

// TestTablesInConfigFiles: tables are JSON, as vLLM puts them on its command line.
func TestTablesInConfigFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	text := "\xef\xbb\xbfa: {level: 3, b: {c: [1, x]}}\r\nl: [1, b]\r\nt: [{n: 1}, {n: 2}]\r\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readConfig(path)
	want := map[string]string{"a": `{"b":{"c":[1,"x"]},"level":3}`, "l": "1,b",
		"t": `{"n":1},{"n":2}`}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
}
