//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
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

// A conversation with a model in a folder continues with that folder, from any other one, in a new
// chat and in one that has another model; without the folder with a sentence and a choice.
func TestConversationsKeepTheirFolder(t *testing.T) {
	t.Parallel()
	first := ossrun(t, nil, "chat", "--model", "./mine", "--max-tokens", "40", "Hello")
	home := homeOf(first)
	folder := filepath.Join(home, "mine")
	demo, err := checkpoint.OpenDemo()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(modeltest.WriteOriginal(demo, folder), demo.Close()); err != nil {
		t.Fatal(err)
	}
	saved := func() (id, model, source string, questions int) {
		t.Helper()
		out, err := sameHome(first, "sessions", "list", "--json").Output()
		var all []struct {
			ID, Model, Source string
			Questions         int
		}
		if err = errors.Join(err, json.Unmarshal(out, &all)); err != nil || len(all) == 0 {
			t.Fatalf("%v: %s", err, out)
		}
		return all[0].ID, all[0].Model, all[0].Source, all[0].Questions
	}
	first.Dir = home
	term, cmd := runInTerminal(t, 80, 24, first)
	<-term.over
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, term.text())
	}
	for i, line := range [][]string{{"-c"}, {"--resume", ""}} {
		id, _, _, _ := saved()
		if line[0] == "--resume" {
			line[1] = id
		}
		line = append(append([]string{"chat"}, line...), "--max-tokens", "40", "And now?")
		if out, err := sameHome(first, line...).CombinedOutput(); err != nil {
			t.Errorf("%q: %v, %s", line, err, out)
		}
		if _, model, source, n := saved(); model != "mine" || source != folder || n != 2+i {
			t.Errorf("%q: %s in %q, %d questions", line, model, source, n)
		}
	}
	id, _, _, _ := saved()
	term, cmd = runInTerminal(t, 100, 24, sameHome(first, "chat", "--model", "demo"))
	term.wait("demo")
	term.send("/resume " + id + "\r")
	term.wait("The next answers come from mine")
	term.send("And here?\r")
	term.wait("And here?")
	if !happens(func() bool {
		_, _, source, n := saved()
		return source == folder && n == 4
	}) {
		t.Error("another chat asks another model")
	}
	term.send("\x03")
	term.send("/quit\r")
	<-term.over
	_ = cmd.Wait()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	out, err := sameHome(first, "chat", "-c", "And now?").CombinedOutput()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil || exit.ExitCode() != exitModel ||
		!strings.Contains(string(out), "the conversation was with "+folder) ||
		!strings.Contains(string(out), "Give --model NAME") {
		t.Errorf("without its folder: %v, %s", err, out)
	}
}
