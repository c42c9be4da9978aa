package cli

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The real server, asked by a program of another user.
//
// SECURITY.md: another user of the computer: the owner of each connection is checked on Linux;
// files and sockets are yours alone
// SECURITY.md: programs of your user and root, on this computer: everything, without a key
// SECURITY.md: programs of other users of this computer: nothing, unless there is a key or
// `--any-user`
// SECURITY.md: `--any-user`: the port, or the socket, to every user of this computer
func TestServeAnswersItsOwnUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can play another user")
	}
	python := hosttest.Program(t, "/usr/bin/python3")
	const client = `
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1] + "/v1/models").status)
except urllib.error.HTTPError as e:
    print(e.code, e.read().decode())
`
	t.Parallel()
	for want, s := range map[string]*served{"200": serveDemo(t, "--any-user"), "403 " +
		`{"error":{"message":"this server serves the programs of its own user`: askDemo(t)} {
		if got := s.status("/v1/models"); got != 200 {
			t.Errorf("its own user gets %d", got)
		}
		c := exec.CommandContext(t.Context(), python, "-c", client, s.url)
		c.Dir = "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345,
			Gid: 12345}}
		if out, err := c.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("another user gets %s, %v, not %s", out, err, want)
		}
	}
}
