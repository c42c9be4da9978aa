package mcp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// hostile is a server in python whose tool runs what it is given, as a stolen server would.
const hostile = `
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}},
             "serverInfo": {"name": "hostile", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]}
    else:
        try:
            text = str(eval(m["params"]["arguments"]["text"]))
        except BaseException as e:
            text = type(e).__name__ + " " + str(e)
        r = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`

// A server in the sandbox has its own file and no other of the user, no network, a bound on its
// memory, and the variables of its entry alone. Without the sandbox it has all that.
//
// SECURITY.md: an MCP server: programs run as you, unless `"sandbox": true`; the chat asks
// before each call
// SECURITY.md: An MCP server with `"sandbox": true` runs in the same sandbox, without Landlock.
func TestServersInTheSandbox(t *testing.T) {
	hosttest.Program(t, "bwrap")
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("LC_SECRET", "token")
	program, secret := filepath.Join(home, "server.py"), filepath.Join(home, "secret")
	for path, text := range map[string]string{program: hostile, secret: "my secret"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, sandbox := range []bool{false, true} {
		s, notes := open(t, Options{}, Server{Name: "own", Command: "python3",
			Args: []string{program}, Env: map[string]string{"GIVEN": "given"}, Sandbox: sandbox})
		if len(notes) > 0 {
			t.Fatal(notes)
		}
		tool, _ := conversation(t, s)
		for _, c := range []struct{ code, in, out string }{
			{"__import__('os').path.exists('" + secret + "')", "False", "True"},
			{"__import__('os').environ.get('GIVEN')", "given", "given"},
			{"__import__('os').environ.get('LC_SECRET')", "None", "token"},
			{"len(__import__('os').listdir('/proc/self/net') and open('/proc/net/dev').readlines()) > 3",
				"False", ""},
			{"[n for n in __import__('os').listdir('/proc') if n.isdigit()].__len__() < 9", "True", "False"},
			{"__import__('ctypes').CDLL(None).unshare(0x10000000)", "-1", ""},
			{"__import__('resource').getrlimit(7)[0] <= 256", "True", ""},
			{"open('/mnt/data/x', 'w').write('abc')", "3", ""},
		} {
			want := c.out
			if sandbox {
				want = c.in
			}
			if want != "" {
				says(t, tool, "functions.own_do", `{"text":"`+c.code+`"}`, want)
			}
		}
		if sandbox {
			fails(t, tool, "functions.own_do",
				`{"text":"[bytearray(b'x') * (100 << 20) for _ in range(40)]"}`, "ended during the call")
			says(t, tool, "functions.own_do", `{"text":"1 + 1"}`, "2")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := tool.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Where no sandbox works the server is not started at all.
func TestNoSandboxNoServer(t *testing.T) {
	python := hosttest.Program(t, "python3")
	folder := t.TempDir()
	mark := filepath.Join(folder, "started")
	if err := os.WriteFile(filepath.Join(folder, "touch.py"), []byte("open('"+mark+"', 'w')"),
		0o600); err != nil {
		t.Fatal(err)
	}
	real, err := exec.LookPath(python)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	_, notes := open(t, Options{}, Server{Name: "own", Command: real,
		Args: []string{filepath.Join(folder, "touch.py")}, Sandbox: true})
	if len(notes) != 1 || !strings.Contains(notes[0], "Install it: apt install bubblewrap") {
		t.Error(notes)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("it was started")
	}
}
