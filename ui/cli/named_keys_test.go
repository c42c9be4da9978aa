package cli

import (
	"encoding/json"
	"os"
	"testing"
)

// Keys made while a server runs work at once; after kill -9 only a key's owner finds what was begun
// before it; usage is counted over both runs.
func TestNamedKeysOfARunningServer(t *testing.T) {
	t.Parallel()
	home, lease := t.TempDir(), []string{testLease + "=1s"}
	s := serveIn(t, home, lease)
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
	used := func() (total dailyUsage) {
		t.Helper()
		var days []dailyUsage
		if err := json.Unmarshal([]byte(s.with("keys", "usage", "--json")), &days); err != nil {
			t.Fatal(err)
		}
		for _, u := range days { // of two, at midnight
			if u.Name == "alice" {
				total.Requests += u.Requests
				total.Completion += u.Completion
			}
		}
		return total
	}
	_, id := numbers(t, s.begun(alice, `{"input":"How do I serve an OpenAI API?","stream":true,`+
		`"background":true,"ignore_eos":true,"max_output_tokens":600}`), -1)
	path := "/v1/responses/" + id
	s.eventually("both requests are counted in the store", func() bool {
		return used().Requests == 2
	})
	s.end(os.Kill)
	s = serveIn(t, home, lease)
	if status, body := s.as(mallory, "GET", path, ""); status != 404 {
		t.Errorf("another finds it: %d %s", status, body)
	}
	s.eventually("its owner has the whole response", func() bool {
		var begun struct{ Status string }
		status, body := s.as(alice, "GET", path, "")
		if err := json.Unmarshal([]byte(body), &begun); err != nil || status != 200 {
			t.Fatalf("its owner: %d %s; %s", status, body, s.err)
		}
		return begun.Status == "incomplete"
	})
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
	s.eventually("all is counted, and once", func() bool { return used().Completion >= 620 })
	if total := used(); total.Requests != 2 || total.Completion != 620 {
		t.Errorf("alice has used %+v", total)
	}
}
