package process

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// late accepts nothing while the gate is locked.
type late struct {
	net.Listener
	gate *sync.RWMutex
}

func (l late) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.gate.RLock()
	defer l.gate.RUnlock()
	return c, err
}

// What a program of another user sends is not served, over TCP and Unix sockets, and not when it
// closes its end before it can be looked at. Only root can play two users.
//
// SECURITY.md: Linux tells whose a connection is (`SO_PEERCRED`, `sock_diag`); a connection
// whose owner is gone is a stranger's.
func TestStrangersAreNoted(t *testing.T) {
	if err := OwnersAreKnown(); err != nil {
		t.Skip(err)
	}
	python := hosttest.Program(t, "/usr/bin/python3") // which every user may run
	var served, refused, closed atomic.Int64
	var gate sync.RWMutex
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !PeerOf(r.Context()).Ours {
			refused.Add(1)
			return
		}
		served.Add(1)
	})
	folder, err := os.MkdirTemp("", "peer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: handler, ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				closed.Add(1)
			}
		}}
		if err := NotePeers(s); err != nil {
			t.Fatal(err)
		}
		go s.Serve(late{l, &gate}) //nolint:errcheck // it ends with the test
		t.Cleanup(func() { s.Close() })
		return l
	}
	tcp, six := listen("tcp", "127.0.0.1:0"), listen("tcp", "[::1]:0")
	listen("unix", path)
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	port := func(l net.Listener) string {
		_, port, _ := net.SplitHostPort(l.Addr().String())
		return port
	}
	const client = `
import socket, sys
v4, v6, path, hurry = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "hurry"
def send(family, address, wait):
    s = socket.socket(family)
    s.connect(address)
    s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    if wait:
        assert s.recv(12) == b"HTTP/1.1 200"
    s.close()
for _ in range(100 if hurry else 1):
    send(socket.AF_INET, ("127.0.0.1", v4), not hurry)
    send(socket.AF_INET6, ("::1", v6), not hurry)
if not hurry:
    send(socket.AF_INET6, ("::ffff:127.0.0.1", v4), True)
    send(socket.AF_UNIX, path, True)
`
	send := func(user uint32, how string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), python, "-c", client, port(tcp), port(six), path, how)
		c.Dir = "/"
		if user != 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user,
				Gid: user}}
		}
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Run(); err != nil {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
	run := func(user uint32) {
		t.Helper()
		closed.Store(0)
		send(user, "wait")
		gate.Lock() // those who hurry have closed their end before they are looked at
		send(user, "hurry")
		gate.Unlock()
		hosttest.Until(t, "all are closed", func() bool { return closed.Load() == 204 })
	}
	run(0)
	if served.Load() < 4 {
		t.Fatalf("of this user's, %d are served and %d refused", served.Load(), refused.Load())
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can play another user")
	}
	served.Store(0)
	run(12345)
	if served.Load() != 0 || refused.Load() < 4 {
		t.Errorf("of another user's, %d are served and %d refused", served.Load(), refused.Load())
	}
}
