// Where a server listens and whom it answers, with the demo in a process of its own.

package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// asks is the status of GET url, with a key.
func asks(t *testing.T, transport *http.Transport, url, key string) int {
	t.Helper()
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestServeOnASocket(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "ossrun") // a socket's path has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "port")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false) // as a server that was killed leaves it
	left.Close()
	s := serveIn(t, t.TempDir(), []string{"VLLM_API_KEY=of vLLM", "OSSRUN_API_KEY=ours"}, "--uds",
		path, "--log-level", "warning")
	if s.url != "unix:"+path {
		t.Errorf("url %s", s.url)
	}
	dial := func() *http.Transport {
		return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (
			net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}}
	}
	for key, want := range map[string]int{"ours": 200, "of vLLM": 401, "": 401} {
		if got := asks(t, dial(), "http://any.name/v1/models", key); got != want {
			t.Errorf("key %q: %d, want %d", key, got, want)
		}
	}
	s.end(os.Interrupt)
	if log := s.err.String(); !strings.Contains(log, "Application startup complete.") ||
		strings.Contains(log, "msg=request") {
		t.Errorf("log: %s", log)
	}
}

// SECURITY.md: the network between: HTTPS with `--ssl-certfile`; without it, nothing
func TestServeTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plan := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, plan, plan, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, b []byte) string {
		return write(t, filepath.Join(folder, name), string(b))
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	s := serveDemo(t, "--ssl-certfile", file("c.pem", public), "--ssl-keyfile",
		file("k.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		"--api-key-file", file("key", []byte("  secret\n")))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(public)
	for key, want := range map[string]int{"secret": 200, "": 401} {
		got := asks(t, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
			s.url+"/v1/models/demo", key)
		if got != want || !strings.HasPrefix(s.url, "https://") {
			t.Errorf("%s with the key %q: %d, want %d", s.url, key, got, want)
		}
	}
}

func TestListenUnixRefuses(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "x")
	write(t, path, "")
	if _, err := listenUnix(path, 0o600); err == nil {
		t.Error("a file was taken for a socket")
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		t.Error("a file was removed")
	}
}

// TestAddressesReachTheListener: for a wildcard listener the addresses that a client can use, for
// another one its own.
func TestAddressesReachTheListener(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "::", "::1", "localhost"} {
		l, err := listen(host, 0)
		if err != nil {
			t.Logf("%s: %v", host, err) // a machine without IPv6
			continue
		}
		for _, address := range addresses(l) {
			name, _, err := net.SplitHostPort(address)
			if ip := net.ParseIP(name); err != nil || ip == nil || ip.IsUnspecified() {
				t.Errorf("%s: nobody can use %s: %v", host, address, err)
			}
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Errorf("%s is not reached at %s: %v", host, address, err)
				continue
			}
			c.Close()
		}
		l.Close()
	}
}

// The umask of a service is often 022, and of some containers 0.
func TestASocketIsItsUsers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("sockets have no mode")
	}
	path := filepath.Join(t.TempDir(), "s")
	for range 2 { // the second finds an earlier server's socket
		l, err := listenUnix(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info.Mode(), err)
		}
		if err := errors.Join(os.Chmod(path, 0o666), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
