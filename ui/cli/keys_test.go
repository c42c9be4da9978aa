package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The key each verb sends to a server, by the environment: OPENAI_API_KEY goes to OpenAI, or to the
// server of OPENAI_BASE_URL, and to no other, not even on the next port.
func TestKeysGoWhereTheyBelong(t *testing.T) {
	var mu sync.Mutex
	heard := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		heard[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] = true
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
	}))
	defer server.Close()
	beside := httptest.NewServer(http.NotFoundHandler())
	defer beside.Close()
	folder := t.TempDir()
	input := filepath.Join(folder, "in.jsonl")
	line := `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m",` +
		`"messages":[{"role":"user","content":"x"}]}}` + "\n"
	write(t, input, line)
	for name, verb := range map[string][]string{
		"chat":  {"chat", "--endpoint", server.URL + "/v1", "Hello"},
		"bench": {"bench", "serve", "--base-url", server.URL, "--num-prompts", "1"},
		"eval":  {"eval", "compat", "--base-url", server.URL},
		"batch": {"batch", "--base-url", server.URL, input, filepath.Join(folder, "out.jsonl")},
	} {
		for _, c := range []struct{ ours, vllm, openai, base, want string }{
			{"", "", "sk-1", "", ""},
			{"", "", "sk-1", beside.URL + "/v1", ""},
			{"", "", "sk-1", "https" + strings.TrimPrefix(server.URL, "http"), ""},
			{"", "", "sk-1", server.URL + "/v1", "sk-1"},
			{"a", "b", "sk-1", server.URL + "/v1", "a"},
			{"", "b", "sk-1", "", "b"},
		} {
			t.Setenv("OSSRUN_API_KEY", c.ours)
			t.Setenv("VLLM_API_KEY", c.vllm)
			t.Setenv("OPENAI_API_KEY", c.openai)
			t.Setenv("OPENAI_BASE_URL", c.base)
			clear(heard)
			_ = os.Remove(filepath.Join(folder, "out.jsonl")) // the first time there is none
			_, out, errs := runHere(t.Context(), verb...)
			mu.Lock()
			if len(heard) != 1 || !heard[c.want] {
				t.Errorf("%s with %+v: heard %v; %s%s", name, c, heard, out, errs)
			}
			mu.Unlock()
			if told := strings.Contains(errs, "wants its key: set OSSRUN_API_KEY; "+
				"OPENAI_API_KEY is sent to OpenAI"); name != "batch" && !told {
				t.Errorf("%s: %s", name, errs)
			}
		}
	}
	for base, want := range map[string]string{"https://api.openai.com/v1": "sk-1",
		"http://api.openai.com/v1": "", "https://api.openai.com.evil.example": "",
		"https://api.openai.com@evil.example": "", "api.openai.com": "", "unix:/run/x": ""} {
		for _, name := range []string{"OSSRUN_API_KEY", "VLLM_API_KEY", "OPENAI_BASE_URL"} {
			t.Setenv(name, "")
		}
		if got := portKey(base); got != want {
			t.Errorf("%s is sent %q", base, got)
		}
	}
}
