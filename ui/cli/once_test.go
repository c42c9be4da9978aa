//go:build unix

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/ui/chat"
)

// TestQuestionsOnATerminal: one question on a terminal shows its progress, is answered with
// unbroken words and without Markdown marks, and is saved; -c continues it with the same history,
// in a pipe too. A question from a pipe without -c leaves nothing.
func TestQuestionsOnATerminal(t *testing.T) {
	t.Parallel()
	s := askDemo(t)
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var bodies []string
	seen := make(chan struct{}) // what the first one waits for
	release := sync.OnceFunc(func() { close(seen) })
	proxy := httputil.NewSingleHostReverseProxy(to)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			bodies = append(bodies, string(body))
			first := len(bodies) == 1
			mu.Unlock()
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if first {
				<-seen
			}
		}
		r.Host = to.Host
		proxy.ServeHTTP(w, r)
	}))
	defer slow.Close()
	defer release()
	const first, second = "How do I serve an OpenAI API?", "And how do I stop it?"
	args := []string{"chat", "--endpoint", slow.URL, "--temperature", "0"}
	term, cmd := startInTerminal(t, 40, 24, append(args, first)...)
	term.until("what it waits for", regexp.MustCompile(
		`Reading, \d+ s\. Ctrl\+C stops\.`).MatchString)
	release()
	<-term.over
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	run := func(args ...string) string {
		t.Helper()
		said, err := sameHome(cmd, args...).Output()
		if err != nil {
			t.Errorf("%v: %v: %s", args, err, said)
		}
		return string(said)
	}
	said := func() (list []chat.Saved) {
		t.Helper()
		if err := json.Unmarshal([]byte(run("sessions", "list", "--json")), &list); err != nil {
			t.Error(err)
		}
		return list
	}
	if list := said(); len(list) != 1 || list[0].Questions != 1 || list[0].Name != first {
		t.Errorf("kept: %+v", list)
	}
	words := func(text string) string {
		text = strings.NewReplacer("`", "", "*", "").Replace(text)
		return strings.Join(strings.Fields(text), " ")
	}
	plain := run(append(args, first)...)
	if screen := term.text(); words(screen) != words(plain) || strings.Contains(screen, "`") ||
		!strings.Contains(plain, "`") {
		t.Errorf("the terminal has\n%s\nand a pipe\n%s", screen, plain)
	}
	if list := said(); len(list) != 1 || list[0].Questions != 1 {
		t.Errorf("a pipe leaves %+v", list)
	}
	run(append(args, "-c", second)...)
	mu.Lock()
	asked := bodies[len(bodies)-1]
	mu.Unlock()
	for _, text := range []string{first, second, "ossrun serve"} {
		if !strings.Contains(asked, text) {
			t.Errorf("the model was not told %q: %s", text, asked)
		}
	}
	if list := said(); len(list) != 1 || list[0].Questions != 2 {
		t.Errorf("after -c: %+v", list)
	}
	term, cmd = runInTerminal(t, 80, 24, sameHome(cmd, append(args, "--no-history", first)...))
	<-term.over
	if err := cmd.Wait(); err != nil {
		t.Errorf("--no-history: %v: %s", err, term.text())
	}
	if list := said(); len(list) != 1 {
		t.Errorf("--no-history leaves %+v", list)
	}
}

// TestAnswersThatAreCut: one that was cut before it began is exit code 4, one that began is shown,
// and stderr has the reason once, for text and JSON.
func TestAnswersThatAreCut(t *testing.T) {
	t.Parallel()
	s := askDemo(t)
	for _, form := range []string{"--json", "--no-history"} {
		for limit, want := range map[string]int{"3": exitCut, "40": exitOK} {
			code, out, errs := runHere(t.Context(), "chat", "--endpoint", s.url, "--temperature", "0",
				"--max-tokens", limit, form, "How do I serve an OpenAI API?")
			began := out != "" && !strings.Contains(out, `"answer":""`)
			if code != want || began != (want == exitOK) || strings.Count(errs, "was cut") != 1 {
				t.Errorf("%s %s: %d, %s, %s", form, limit, code, out, errs)
			}
		}
	}
}
