package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
)

// TestRemoveOrdered: rm deletes what a GGUF file has in the cache, once it was asked to and nobody
// uses it, and never the file.
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
		var out bytes.Buffer
		code = Run(t.Context(), append([]string{"ossrun", "rm", path}, args...),
			Terminal{In: strings.NewReader(""), Out: &out, Err: &out})
		return code, out.String()
	}
	if code, said := rm("--yes"); code != exitUsage || !strings.Contains(said, "only reads") {
		t.Errorf("%d: %s", code, said)
	}
	time.Sleep(checkpoint.Settling + time.Second)
	c, err := found.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Order(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	ordered := found.Ordered()
	if code, said := rm(); code != exitUsage || !strings.Contains(said, "Give --yes") {
		t.Errorf("%d: %s", code, said)
	}
	if c, err = found.Open(); err != nil {
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
