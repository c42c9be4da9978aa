// Commands of the scripts that write the demo model as other programs keep models, and goldens held by converted weights.

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/modeltest"
)

// ggufCommand FILE llama|ollama writes the demo as a GGUF file.
func ggufCommand(ts *testscript.TestScript, neg bool, args []string) {
	demo, err := models.OpenDemo()
	ts.Check(err)
	defer demo.Close()
	style := map[string]modeltest.GGUFStyle{"llama": modeltest.LlamaBF16, "ollama": modeltest.Ollama}[args[1]]
	path := ts.MkAbs(args[0])
	written, err := modeltest.WriteGGUF(demo, filepath.Dir(path), "new", style, 1)
	ts.Check(err)
	ts.Check(os.Rename(written, path))
}

// originalCommand FOLDER writes the demo in the original/ layout.
func originalCommand(ts *testscript.TestScript, neg bool, args []string) {
	demo, err := models.OpenDemo()
	ts.Check(err)
	defer demo.Close()
	ts.Check(modeltest.WriteOriginal(demo, ts.MkAbs(args[0])))
}

// TestConvertedGoldens: T2 as a GGUF file, converted, and in the original/ layout, gives the golden logits.
func TestConvertedGoldens(t *testing.T) {
	source := filepath.Join("..", "..", "testdata", "model", "T2")
	checkpoint, err := models.Open(filepath.Join(source, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	defer checkpoint.Close()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path, err := modeltest.WriteGGUF(checkpoint, t.TempDir(), "checkpoint", modeltest.LlamaBF16, 1)
	if err != nil {
		t.Fatal(err)
	}
	found, err := models.Resolve(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Convert.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(t.TempDir(), "checkpoint")
	if err := modeltest.WriteOriginal(checkpoint, original); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{found.Path, original} {
		dir := filepath.Dir(folder)
		if err := os.CopyFS(filepath.Join(dir, "golden"), os.DirFS(filepath.Join(source, "golden"))); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := Run(t.Context(), []string{"ossrun", "doctor", "--golden", dir}, Terminal{In: bytes.NewReader(nil), Out: &out, Err: &errs}); code != exitOK {
			t.Errorf("%s: exit code %d: %s%s", folder, code, out.String(), errs.String())
		}
	}
}
