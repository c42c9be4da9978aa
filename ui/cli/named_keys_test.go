package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// with is the program's own answer on a command line in the home of a server.
func (s *served) with(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(s.cmd.Path, args...)
	cmd.Env = s.cmd.Env
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("ossrun %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// as asks a server with a key.
func (s *served) as(key, method, path, body string) (status int, answer string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	got, err := s.web.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return got.StatusCode, string(b)
}

// Keys that are made while a server runs count at once; who they are for finds after kill -9 what
// was begun before it, and nobody else does; what was used is counted over all of it.
func TestNamedKeysOfARunningServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a lease runs out first, which takes 15 s")
	}
	home := t.TempDir()
	s := serveIn(t, home)
	const ask = `{"input":"How do I serve an OpenAI API?","max_output_tokens":20}`
	if status, body := s.as("", "POST", "/v1/responses", ask); status != 200 {
		t.Fatalf("without keys: %d %s", status, body)
	}
	alice, mallory := s.with("keys", "add", "alice"), s.with("keys", "add", "mallory", "--admin")
	for key, want := range map[string]int{"": 401, "wrong": 401, alice: 200, mallory: 200} {
		if status, body := s.as(key, "POST", "/v1/responses", ask); status != want {
			t.Errorf("%q: %d %s, want %d", key, status, body, want)
		}
	}
	status, body := s.as(alice, "POST", "/v1/responses", `{"input":"How do I serve an OpenAI API?",`+
		`"background":true,"ignore_eos":true,"max_output_tokens":600}`)
	var begun struct{ ID, Status string }
	if err := json.Unmarshal([]byte(body), &begun); err != nil || status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	time.Sleep(time.Second) // some of it, and what was used, is in the store
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.done
	s.ended = true
	s = serveIn(t, home)
	path := "/v1/responses/" + begun.ID
	if status, body := s.as(mallory, "GET", path, ""); status != 404 {
		t.Errorf("another finds it: %d %s", status, body)
	}
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		status, body := s.as(alice, "GET", path, "")
		if status != 200 || time.Now().After(end) {
			t.Fatalf("its owner: %d %s; %s", status, body, s.err.String())
		}
		if err := json.Unmarshal([]byte(body), &begun); err != nil {
			t.Fatal(err)
		}
		if begun.Status == "incomplete" {
			break
		}
	}
	for _, method := range []string{"POST", "DELETE"} {
		if status, body := s.as(mallory, method, path+map[string]string{"POST": "/cancel"}[method],
			""); status != 404 {
			t.Errorf("another's %s: %d %s", method, status, body)
		}
	}
	renewed := s.with("keys", "rotate", "alice")
	s.with("keys", "rm", "mallory")
	for key, want := range map[string]int{alice: 401, mallory: 401, renewed: 200} {
		if status, body := s.as(key, "GET", path, ""); status != want {
			t.Errorf("%q: %d %s, want %d", key, status, body, want)
		}
	}
	var used []usedInDay
	var total usedInDay
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if err := json.Unmarshal([]byte(s.with("keys", "usage", "--json")), &used); err != nil {
			t.Fatal(err)
		}
		total = usedInDay{}
		for _, u := range used { // of two days, at midnight
			if u.Name == "alice" {
				total.Requests += u.Requests
				total.Completion += u.Completion
			}
		}
		if total.Completion == 620 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if total.Requests != 2 || total.Completion != 620 {
		t.Errorf("alice has used %+v; all are %+v", total, used)
	}
}
