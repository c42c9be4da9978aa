// The command line as text scripts (testdata/*.txtar), each run in process with a home folder of
// its own. A new verb or error gets a script, not Go code.

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ossrun/ossrun/runtime/remote/local"
)

func TestScripts(t *testing.T) {
	golden, err := filepath.Abs("../../testdata/model")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := filepath.Abs("testdata/guide")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
			env.Setenv("XDG_RUNTIME_DIR", filepath.Join(env.WorkDir, "run"))
			env.Setenv("GOLDEN", golden)
			env.Setenv("GUIDE", guide)
			env.Setenv(testDemo, os.Getenv(testDemo))
			return errors.Join(os.MkdirAll(home, 0o755),
				os.MkdirAll(filepath.Join(env.WorkDir, "run"), 0o700))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": wantExit, "copydir": copyDir, "cut": cutFile, "listen": listenOnFreePort,
			"until-ready": untilReady, "hub": hubCommand, "gguf": ggufCommand,
			"original": originalCommand, "lora": loraCommand,
		},
		RequireExplicitExec: false,
	})
}

// wantExit CODE ARGS... runs ossrun and wants that exit code; stdout and stderr are there for the
// checks that follow.
func wantExit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("ossrun", args[1:]...)
	got := 0
	if err != nil {
		if _, scanErr := fmt.Sscanf(err.Error(), "exit status %d", &got); scanErr != nil {
			ts.Fatalf("%v", err)
		}
	}
	if got != want {
		ts.Fatalf("exit code %d, wanted %d", got, want)
	}
}

// copyDir FROM TO copies a folder of plain files.
func copyDir(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}

// cutFile FILE BYTES takes bytes off the end.
func cutFile(ts *testscript.TestScript, neg bool, args []string) {
	path := ts.MkAbs(args[0])
	less, err := strconv.Atoi(args[1])
	ts.Check(err)
	info, err := os.Stat(path)
	ts.Check(err)
	ts.Check(os.Truncate(path, info.Size()-int64(less)))
}

// listenOnFreePort takes a port until the script ends and puts it into $PORT.
func listenOnFreePort(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv("PORT", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// untilReady waits until a server of the script answers.
func untilReady(ts *testscript.TestScript, neg bool, args []string) {
	folder := filepath.Join(ts.Getenv("XDG_RUNTIME_DIR"), "ossrun")
	if !happens(func() bool {
		list, err := local.Servers(context.Background(), folder)
		ts.Check(err)
		return len(list) > 0 && list[0].State == local.Ready
	}) {
		ts.Fatalf("no server became ready")
	}
}
