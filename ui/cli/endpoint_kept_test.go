//go:build unix

package cli

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
)

// A conversation with a server's model continues with that server, and without it with a sentence
// and a choice, never with another model.
func TestConversationsKeepTheirServer(t *testing.T) {
	t.Parallel()
	s := askDemo(t)
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(to)
	connections := &http.Transport{} // other tests close the default's
	defer connections.CloseIdleConnections()
	proxy.Transport = connections
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			asked.Add(1)
		}
		// The proxy looks for more of a body that the server closes once it answers.
		body, _ := io.ReadAll(r.Body)
		r.Host, r.Body = to.Host, io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	defer server.Close()
	term, cmd := startInTerminal(t, 80, 24, "chat", "--endpoint", server.URL, "--temperature", "0",
		"How do I serve an OpenAI API?")
	<-term.over
	if err := cmd.Wait(); err != nil || asked.Load() != 1 {
		t.Fatalf("%v, asked %d times", err, asked.Load())
	}
	if out, err := sameHome(cmd, "chat", "-c", "And how do I stop it?").CombinedOutput(); err != nil ||
		asked.Load() != 2 {
		t.Errorf("-c: %v, asked %d times: %s", err, asked.Load(), out)
	}
	if out, err := sameHome(cmd, "chat", "-c", "--model", "demo", "--max-tokens", "60",
		"Hello").CombinedOutput(); err != nil || asked.Load() != 2 {
		t.Errorf("another model that is named: %v, asked %d times: %s", err, asked.Load(), out)
	}
	_, _ = sameHome(cmd, "chat", "-c", "--endpoint", server.URL, "Hi").Output()
	server.Close()
	out, err := sameHome(cmd, "chat", "-c", "And now?").CombinedOutput()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil || !strings.Contains(string(out), "the conversation was with demo: "+server.URL) ||
		!strings.Contains(string(out), "Give --model NAME") {
		t.Errorf("without its server: %v, %s", err, out)
	}
	for _, named := range [][]string{{"--endpoint", server.URL}, {"--model", "120b"}} {
		out, err := sameHome(cmd, append([]string{"chat", "-c", "And now?"},
			named...)...).CombinedOutput()
		if err == nil || strings.Contains(string(out), "conversation was with") {
			t.Errorf("%q is not the conversation's: %v, %s", named, err, out)
		}
	}
}
