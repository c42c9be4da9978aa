//go:build unix

// kill -9 of an import: the next run goes on, and the files are those of one that nobody killed.

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
)

func TestImportKilled(t *testing.T) {
	demo, err := checkpoint.OpenDemo()
	if err != nil {
		t.Fatal(err)
	}
	defer demo.Close()
	style := modeltest.LlamaBF16
	style.Experts = "Q4_1"
	source := filepath.Join(t.TempDir(), "tune.gguf")
	if err := ggufAt(demo, source, style); err != nil {
		t.Fatal(err)
	}
	t.Run("file", func(t *testing.T) { importKilled(t, source) })
	server, err := startHub()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.Throttle(20 << 20)
	t.Setenv("HF_ENDPOINT", server.Hub.URL)
	t.Setenv("HF_HOME", t.TempDir())
	t.Run("hub", func(t *testing.T) { importKilled(t, "hf:someone/wide") })
}

func importKilled(t *testing.T, source string) {
	dir := t.TempDir()
	program, err := exec.LookPath("ossrun") // testscript.Main has put it there
	if err != nil {
		t.Fatal(err)
	}
	start := func(out string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command(program, "import", source, "--out", filepath.Join(dir, out))
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	if err := start("whole").Wait(); err != nil {
		t.Fatal(err)
	}
	files := func(pattern string) int {
		names, _ := filepath.Glob(filepath.Join(dir, "killed", pattern)) // it is well formed
		return len(names)
	}
	// in the middle of a file, or soon after one is whole; the last of the six is never whole
	for round := range max(*kills, 10) {
		before := files("model-*.safetensors")
		cmd := start("killed")
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			further := files("model-*.safetensors") > before
			if files("*.part") > 0 && (further || round%2 == 0 || before > 3) {
				time.Sleep(moment(7, round, 20*time.Millisecond))
				break
			}
			if time.Now().After(until) {
				t.Fatal("it does not get on")
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("round %d: it had ended: %v", round, err)
		}
		<-ended
	}
	if n := files("model-*.safetensors"); n < 2 || files("config.json") > 0 {
		t.Fatalf("%d files are whole after all kills", n)
	}
	if err := start("killed").Wait(); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(filepath.Join(dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		sameFiles(t, filepath.Join(dir, "whole", name.Name()),
			filepath.Join(dir, "killed", name.Name()))
	}
	left, err := os.ReadDir(filepath.Join(dir, "killed"))
	if err != nil || len(left) != len(names) {
		t.Errorf("%d files of %d: %v", len(left), len(names), left)
	}
}

func sameFiles(t *testing.T, one, other string) {
	t.Helper()
	a, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(other); err != nil || string(a) != string(b) {
		t.Errorf("%s differs: %v", other, err)
	}
}
