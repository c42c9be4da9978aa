package hub_test

import (
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/models/hub"
)

// TestTLSProxy pulls from an https hub that only a proxy reaches, through its CONNECT, with a
// certificate of an authority that SSL_CERT_FILE names.
func TestTLSProxy(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the system keeps the authorities there, not SSL_CERT_FILE")
	}
	const name = "example.com" // what httptest's certificate is for
	r := sample(300_000)
	server := hubWith(t, r)
	secure := httptest.NewUnstartedServer(server.Hub.Config.Handler)
	store := httptest.NewUnstartedServer(server.Store.Config.Handler)
	for _, s := range []*httptest.Server{secure, store} {
		// connections that were not needed end in their handshake
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		defer s.Close()
	}
	plain := server.Store.URL
	server.Store.URL = store.URL // no client goes from https to http
	defer func() { server.Store.URL = plain }()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}),
		0o644); err != nil {
		t.Fatal(err)
	}
	var tunnels atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodConnect || q.Host != name+":443" {
			http.Error(w, "this proxy knows CONNECT "+name+":443 only", http.StatusBadGateway)
			return
		}
		tunnels.Add(1)
		there, err := net.Dial("tcp", secure.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			there.Close()
			return
		}
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n") // an end that went away closes both
		go func() {
			_, _ = io.Copy(there, here)
			there.Close()
		}()
		_, _ = io.Copy(here, there)
		here.Close()
	}))
	defer proxy.Close()
	pull := func(root string) (string, error) {
		cmd := exec.Command(os.Args[0], childName, "https://"+name, root)
		for _, variable := range os.Environ() {
			if name, _, _ := strings.Cut(strings.ToUpper(variable), "="); !strings.HasSuffix(name,
				"_PROXY") && name != "SSL_CERT_FILE" {
				cmd.Env = append(cmd.Env, variable)
			}
		}
		cmd.Env = append(cmd.Env, "HTTPS_PROXY="+proxy.URL, "SSL_CERT_FILE="+authority)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	o := hub.Options{Root: t.TempDir(), Repo: tune}
	if out, err := pull(o.Root); err != nil {
		t.Fatalf("the pull through a tunnel: %v: %s", err, out)
	}
	whole(t, o, r)
	if tunnels.Load() == 0 {
		t.Error("nothing went through the proxy")
	}
}
