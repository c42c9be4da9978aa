//go:build unix

package convert

// kill -9 of an import: the next run resumes, and the files equal those of an uninterrupted one.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// importsUntil makes this test binary an import of the variable's source, killed after so many
// pieces.
const importsUntil = "IMPORT_KILLED_AFTER"

func TestKilled(t *testing.T) {
	t.Run("folder", func(t *testing.T) { killed(t, twin(t, "T2", 2), "") })
	t.Run("hub", func(t *testing.T) {
		server, _, _ := upload(t, twin(t, "T2", 2))
		killed(t, "", server.Hub.URL)
	})
}

// killed kills imports at the first piece, in the middle of a file and soon after one is complete.
func killed(t *testing.T, source, endpoint string) {
	folder := t.TempDir()
	start := func(out string, pieces int) *os.ProcessState {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run=^TestImportUntilItIsKilled$")
		cmd.Env = append(os.Environ(), fmt.Sprint(importsUntil, "=", pieces), "SOURCE="+source,
			"ENDPOINT="+endpoint, "OUT="+filepath.Join(folder, out), "HF_HOME="+folder)
		said, _ := cmd.CombinedOutput() // its state is looked at
		if state := cmd.ProcessState; !state.Success() &&
			state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%v: %s", state, said)
		}
		return cmd.ProcessState
	}
	files := func(pattern string) int {
		names, _ := filepath.Glob(filepath.Join(folder, "killed", pattern)) // it is well formed
		return len(names)
	}
	most := 0
	for round, pieces := range []int{1, 20, 2, 60, 90} {
		if start("killed", pieces).Success() {
			t.Fatalf("round %d: it was whole after fewer than %d pieces", round, pieces)
		}
		if files(store.TempPrefix+"*") != 1 || files("config.json") > 0 {
			t.Errorf("round %d: no file is written, or all are", round)
		}
		most = files("model-*.safetensors")
	}
	if most == 0 {
		t.Error("no file is whole after all kills")
	}
	for _, out := range []string{"whole", "killed"} {
		if state := start(out, 1<<30); !state.Success() {
			t.Fatal(out, state)
		}
	}
	names := hosttest.Must(os.ReadDir(filepath.Join(folder, "whole")))(t)
	for _, name := range names {
		one := hosttest.Must(os.ReadFile(filepath.Join(folder, "whole", name.Name())))(t)
		if other, err := os.ReadFile(filepath.Join(folder, "killed", name.Name())); err != nil ||
			string(one) != string(other) {
			t.Errorf("%s differs: %v", name.Name(), err)
		}
	}
	if n := files("*"); n != len(names) {
		t.Errorf("%d files of %d", n, len(names))
	}
}

// TestImportUntilItIsKilled is the process of TestKilled.
func TestImportUntilItIsKilled(t *testing.T) {
	pieces, err := strconv.Atoi(os.Getenv(importsUntil))
	if err != nil {
		t.Skip("it is TestKilled's")
	}
	o := Options{Out: os.Getenv("OUT")}
	if endpoint := os.Getenv("ENDPOINT"); endpoint != "" {
		client := hub.New(endpoint)
		defer client.Close()
		if o.Remote, err = client.Remote(t.Context(), tune, ""); err != nil {
			t.Fatal(err)
		}
	}
	var made atomic.Int64
	onPiece = func() {
		if made.Add(1) == int64(pieces) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	hosttest.Must(Run(t.Context(), os.Getenv("SOURCE"), o))(t)
}
