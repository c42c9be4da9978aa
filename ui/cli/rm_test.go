package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
)

// TestRemoveOrdered: rm deletes a GGUF file's copy in the cache after a confirmation, unless it is
// in use, and never the file.
func TestRemoveOrdered(t *testing.T) {
	golden, err := checkpoint.Open("../../testdata/model/T1/checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	path, err := modeltest.WriteGGUF(golden, t.TempDir(), "tune", modeltest.LlamaBF16, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(xdg.Reload) // once the variable is what it was
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	xdg.Reload()
	found, err := checkpoint.Resolve(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.FileStates().Files) == 0 {
		t.Skip("this system does not tell when a file was changed")
	}
	rm := func(args ...string) (code int, said string) {
		code, out, errs := runHere(t.Context(), append([]string{"rm", path}, args...)...)
		return code, out + errs
	}
	if code, said := rm("--yes"); code != exitUsage || !strings.Contains(said, "only reads") {
		t.Errorf("%d: %s", code, said)
	}
	if !happens(func() bool { // a file that was changed just now is not ordered
		found, err = checkpoint.Resolve(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := found.Open()
		if err != nil {
			t.Fatal(err)
		}
		refused := c.WriteOrdered(func() error { return nil })
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		return refused == nil
	}) {
		t.Fatal("it is not ordered")
	}
	if code, said := rm(); code != exitUsage || !strings.Contains(said, "Give --yes") {
		t.Errorf("%d: %s", code, said)
	}
	ordered := found.Ordered()
	c, err := found.Open()
	if err != nil {
		t.Fatal(err)
	}
	if code, said := rm("--yes"); code != exitFailure || !strings.Contains(said, "uses") {
		t.Errorf("%d: %s", code, said)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ordered); err != nil {
		t.Fatal(err)
	}
	code, said := rm("--yes")
	if code != 0 || !strings.HasPrefix(said, "deleted the ordered weights of ") {
		t.Errorf("%d: %s", code, said)
	}
	left, _ := filepath.Glob(filepath.Join(checkpoint.OrderedFolder(), "*"))
	if _, err := os.Stat(path); err != nil || len(left) > 0 {
		t.Errorf("%v; %v are left", err, left)
	}
}
