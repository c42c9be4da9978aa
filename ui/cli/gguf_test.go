// Commands of the scripts that write the demo model as other programs keep models, and goldens held
// by weights in those layouts.

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
)

// ggufCommand FILE llama|ollama|bf16|Q8_0 writes the demo as a GGUF file, its experts of another
// type by the last two.
func ggufCommand(ts *testscript.TestScript, neg bool, args []string) {
	demo, err := checkpoint.OpenDemo()
	ts.Check(err)
	defer demo.Close()
	style := map[string]modeltest.GGUFStyle{"llama": modeltest.LlamaBF16,
		"ollama": modeltest.Ollama}[args[1]]
	if style == (modeltest.GGUFStyle{}) {
		style = modeltest.LlamaBF16
		style.Experts = strings.ToUpper(args[1])
	}
	ts.Check(ggufAt(demo, ts.MkAbs(args[0]), style))
}

// originalCommand FOLDER writes the demo in the original/ layout.
func originalCommand(ts *testscript.TestScript, neg bool, args []string) {
	demo, err := checkpoint.OpenDemo()
	ts.Check(err)
	defer demo.Close()
	ts.Check(modeltest.WriteOriginal(demo, ts.MkAbs(args[0])))
}

// TestGGUFGoldens: T2 as GGUF files and in the original/ layout, each in place, gives a case's
// golden logits in every mode.
func TestGGUFGoldens(t *testing.T) {
	checkpoint, err := checkpoint.Open(filepath.Join(goldenT2, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	for name, write := range map[string]func(path string) error{
		"llama.cpp": func(path string) error { return ggufAt(checkpoint, path, modeltest.LlamaBF16) },
		"ollama":    func(path string) error { return ggufAt(checkpoint, path, modeltest.Ollama) },
		"original":  func(path string) error { return modeltest.WriteOriginal(checkpoint, path) },
	} {
		dir := goldenCases(t, 2, 3)
		path := filepath.Join(dir, "checkpoint")
		if err := errors.Join(os.RemoveAll(path), write(path)); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := runDoctor(t, "--golden", dir); code != exitOK {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
	}
}

// TestPublishedMixes: the demo in popular mixes of types, opened in place, gives the same answers.
func TestPublishedMixes(t *testing.T) {
	demo, err := checkpoint.OpenDemo()
	if err != nil {
		t.Fatal(err)
	}
	defer demo.Close()
	for _, mix := range []string{"Q2_K_L", "Q4_K_M", "Q5_K_M"} {
		t.Run(mix, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), mix+".gguf")
			if err := ggufAt(demo, path, modeltest.Published[mix]); err != nil {
				t.Fatal(err)
			}
			code, out, errs := runHere(t.Context(), "chat", "--alone", "--model", path,
				"--temperature", "0", "What is ossrun?")
			if code != exitOK || !strings.HasPrefix(out,
				"ossrun is one program that runs OpenAI's gpt-oss models on your own machine.") {
				t.Errorf("exit code %d: %s%s", code, out, errs)
			}
		})
	}
}

// ggufAt writes a GGUF file of any name.
func ggufAt(c *checkpoint.Checkpoint, path string, style modeltest.GGUFStyle) error {
	written, err := modeltest.WriteGGUF(c, filepath.Dir(path), "new", style, 1)
	if err != nil {
		return err
	}
	return os.Rename(written, path)
}
