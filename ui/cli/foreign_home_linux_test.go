package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// unnamed are command lines of every verb that name no file of a home.
const unnamed = `
chat --model demo --max-tokens 8 hi
run demo --alone --max-tokens 8 hi
chat --print-config --model demo
serve --model demo --port 0
vllm plan 120b --hardware H100
vllm serve 20b
launch --print opencode
ps
stop
keys list
keys usage
keys rotate anna
keys rm anna
keys off
sessions list
sessions show x
sessions export x x.md
sessions rm x --yes
pull demo
pull 20b --offline
import ./none
list
show demo
rm demo
bench none.json
bench serve --base-url http://127.0.0.1:9
bench ops --synthetic 1
eval gpqa
eval aime25
eval compat --base-url http://127.0.0.1:9
eval harmony --base-url http://127.0.0.1:9
batch none.jsonl out.jsonl
service print
doctor --json
mcp python
harmony encode
harmony decode
harmony render
harmony parse
version
completion bash
`

// toHome are those that are to write a file of the home.
const toHome = `
keys add anna
keys rotate anna
keys rm anna
keys off
service install
service remove
`

// A home that cannot be used, as containers and services give one, changes no exit code and no
// error of a verb that names nothing in it. A verb that is to write there reports why it cannot.
func TestHomeThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("only root can play another user")
		}
		t.Skip("only root can play another user")
	}
	program, folder := programForAll(t)
	ofRoot, usable := filepath.Join(folder, "root"), filepath.Join(folder, "nobody")
	if err := errors.Join(os.Mkdir(ofRoot, 0o700), os.Mkdir(usable, 0o700),
		os.Chown(usable, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	verbs := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(unnamed), "\n") {
		verb, _, _ := strings.Cut(line, " ")
		verbs[verb] = true
		want, wantOut, wantErrs := runAs(t, program, 65534, usable, line)
		for uid, home := range map[uint32]string{65534: ofRoot, 0: os.DevNull, 65533: ""} {
			code, out, errs := runAs(t, program, uid, home, line)
			if strings.Contains(toHome, "\n"+line+"\n") {
				if code == 0 || !strings.Contains(errs, "denied") &&
					!strings.Contains(errs, "not a directory") && uid != 65533 {
					t.Errorf("%s, HOME=%q: %d, %s", line, home, code, errs)
				}
				continue
			}
			if code != want || (out == "") != (wantOut == "") ||
				lastLine(errs, home) != lastLine(wantErrs, usable) {
				t.Errorf("%s, HOME=%q: %d, %s, not %d, %s", line, home, code, errs, want, wantErrs)
			}
		}
	}
	for _, c := range newApp(Terminal{}).Commands {
		if !c.Hidden && !verbs[c.Name] {
			t.Errorf("no line has the verb %s", c.Name)
		}
	}
}

// A server that others can reach does not start without a key where a file that may ask for one
// cannot be read: in a home of another user, or in a folder of root in one's own (sudo made it).
func TestUnreadableKeysOpenNoServer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("only root can play another user")
		}
		t.Skip("only root can play another user")
	}
	program, folder := programForAll(t)
	ofRoot, own := filepath.Join(folder, "root"), filepath.Join(folder, "own")
	settings := filepath.Join(folder, "settings")
	for _, path := range []string{own, settings} {
		hosttest.Check(t, os.MkdirAll(filepath.Join(path, ".config", "ossrun"), 0o755))
		hosttest.Check(t, os.Chown(path, 65534, 65534))
	}
	hosttest.Check(t, os.Mkdir(ofRoot, 0o700))
	hosttest.Check(t, os.Chmod(filepath.Join(own, ".config", "ossrun"), 0o700))
	hosttest.Check(t, os.WriteFile(filepath.Join(settings, ".config", "ossrun", "config.yaml"),
		[]byte("api-key: secret\n"), 0o600))
	const public = "serve --model demo --port 0 --host 0.0.0.0"
	for _, home := range []string{ofRoot, own, settings} {
		for _, line := range []string{public, "serve --model demo --port 0 --any-user"} {
			if code, _, errs := runAs(t, program, 65534, home, line); code != exitUsage ||
				!strings.Contains(errs, "may ask for one and cannot be read") {
				t.Errorf("%s, HOME=%s: %d, %s", line, home, code, errs)
			}
		}
		for _, line := range []string{"serve --model demo --port 0",
			public + " --api-key 0123456789abcdefghij"} {
			if code, _, errs := runAs(t, program, 65534, home, line); code != exitOK {
				t.Errorf("%s, HOME=%s: %d, %s", line, home, code, errs)
			}
		}
	}
	for _, home := range []string{os.DevNull, filepath.Join(folder, "none")} { // no file at all
		if code, _, errs := runAs(t, program, 65534, home, public); code != exitOK {
			t.Errorf("HOME=%s: %d, %s", home, code, errs)
		}
	}
}

// programForAll copies this program to a folder that every user can enter.
func programForAll(t *testing.T) (program, folder string) {
	t.Helper()
	folder = t.TempDir()
	for path := folder; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
		hosttest.Check(t, os.Chmod(path, 0o755))
	}
	self := hosttest.Must(os.Executable())(t)
	program = filepath.Join(folder, "ossrun") // others cannot enter the folder of the test's
	if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	return program, folder
}

// lastLine is the last line but notices of what was skipped, with CACHE for the home's cache.
func lastLine(text, home string) (last string) {
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "skipped") {
			last = strings.ReplaceAll(line, home+"/.cache", "CACHE")
		}
	}
	return last
}

// runAs runs a command line as another user; a server is ended once it is ready.
func runAs(t *testing.T, program string, uid uint32, home, line string) (code int, out,
	errs string) {
	t.Helper()
	var o bytes.Buffer
	var e heard
	c := exec.CommandContext(t.Context(), program, strings.Fields(line)...)
	c.Dir, c.Stdout, c.Stderr = "/", &o, &e
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	if home != "" {
		c.Env = append(c.Env, "HOME="+home)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // ProcessState has it
	}()
	if strings.HasPrefix(line, "serve") {
		happens(func() bool {
			select {
			case <-ended:
				return true
			default:
				return strings.Contains(e.String(), "startup complete")
			}
		})
		_ = c.Process.Signal(os.Interrupt)
	}
	<-ended
	return c.ProcessState.ExitCode(), o.String(), e.String()
}
