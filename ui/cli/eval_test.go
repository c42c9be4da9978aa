// ossrun eval, against a stand-in that answers every sum.

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// oracle answers sums over the Responses API.
func oracle(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			fmt.Fprint(w, `{"data":[{"id":"openai/gpt-oss-20b"}]}`)
			return
		}
		var body struct {
			Input []struct{ Content string }
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		var a, b int
		_, _ = fmt.Sscanf(body.Input[0].Content, "%d plus %d", &a, &b)
		fmt.Fprintf(w, `{"status":"completed","output":[{"type":"message","content":[{"type":`+
			`"output_text","text":"\\boxed{%d}"}]}],"usage":{"output_tokens":9,`+
			`"output_tokens_details":{"reasoning_tokens":4}}}`, a+b)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func runEval(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), append([]string{"ossrun", "eval"}, args...),
		Terminal{In: strings.NewReader(""), Out: &out, Err: &errs})
	return code, out.String(), errs.String()
}

func TestEval(t *testing.T) {
	url, folder := oracle(t), t.TempDir()
	data, results := filepath.Join(folder, "q.jsonl"), filepath.Join(folder, "r.jsonl")
	text := `{"question":"1 plus 2","answer":"3"}` + "\n" + `{"question":"2 plus 2","answer":"5"}`
	if err := os.WriteFile(data, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range [][]string{{"--data", data}, {"--fetch", "cat " + data}} {
		code, out, errs := runEval(t, append([]string{"aime25", "--base-url", url, "--attempts", "2",
			"--reasoning-effort", "low,high", "--results", results}, source...)...)
		if code != 0 || errs != "" {
			t.Fatalf("%d %s", code, errs)
		}
		lines := strings.Split(out, "\n")
		if len(lines) != 5 || strings.Join(strings.Fields(lines[1]), " ") !=
			"low 50.0 ±98.0 38.8 4 0 0 9 4" || !strings.HasPrefix(lines[2], "high") {
			t.Errorf("%s", out)
		}
	}
	if b, err := os.ReadFile(results); err != nil || bytes.Count(b, []byte("\n")) != 8 {
		t.Errorf("%v %s", err, b)
	}
	code, out, _ := runEval(t, "aime25", "--base-url", url, "--data", data, "--json", "--attempts",
		"1", "--examples", "1")
	var m struct{ Scores []struct{ Percent float64 } }
	if err := json.Unmarshal([]byte(out), &m); code != 0 || err != nil || len(m.Scores) != 3 ||
		m.Scores[0].Percent != 100 {
		t.Errorf("%d %v %s", code, err, out)
	}
}

func TestEvalRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"gpqa":                         "--data",
		"gpqa --data /nonexistent":     "no such file",
		"gpqa --data x --fetch y":      "leave one out",
		"gpqa --fetch false":           "exit status 1",
		"aime25 --fetch echo":          "no questions",
		"gpqa --reasoning-effort none": "low, medium or high",
		"aime25 --temperature 3":       "between 0 and 2",
		"healthbench":                  "gpqa, aime25, compat and harmony",
		"compat -k 0":                  "at least 1",
		"harmony --base-url ftp://x":   "http://host:port",
		"harmony --api completions":    "responses or chat",
		"compat x":                     "x",
	} {
		if code, out, errs := runEval(t, strings.Fields(args)...); code != exitUsage ||
			!strings.Contains(errs, want) || out != "" {
			t.Errorf("%s: %d %s%s", args, code, out, errs)
		}
	}
}

// The demo model behind our own port: no turn shows a client what it should not see, and no request
// is refused.
func TestEvalOfOurPort(t *testing.T) {
	s := serveDemo(t)
	for _, api := range []string{"chat", "responses"} {
		code, out, errs := runEval(t, "harmony", "--base-url", s.url, "--turns", "24", "--json",
			"--max-tokens", "200", "--n-threads", "8", "--api", api, "--stream")
		var f struct {
			Turns, Faulty, Failed int
			Why                   map[string]int
		}
		if err := json.Unmarshal([]byte(out), &f); code != 0 || err != nil || f.Turns != 24 ||
			f.Failed != 0 || f.Faulty != 0 {
			t.Errorf("%s: %d %s %s", api, code, out, errs)
		}
	}
}
