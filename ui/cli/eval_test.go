// ossrun eval, on a fake server that answers every sum.

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
			Input, Messages []struct{ Content string }
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		var a, b int
		text := append(body.Input, body.Messages...)[0].Content
		if i := strings.Index(text, "sum: "); i >= 0 { // the letter in front of the right choice
			_, _ = fmt.Sscanf(text[i:], "sum: %d plus %d", &a, &b)
			i = strings.Index(text, fmt.Sprintf(") is %d", a+b))
			text = fmt.Sprintf("Answer: %c", text[i-1])
		} else {
			_, _ = fmt.Sscanf(text, "%d plus %d", &a, &b)
			text = fmt.Sprintf(`\\boxed{%d}`, a+b)
		}
		fmt.Fprintf(w, `{"status":"completed","output":[{"type":"message","content":[{"type":`+
			`"output_text","text":"%s"}]}],"usage":{"output_tokens":9,`+
			`"output_tokens_details":{"reasoning_tokens":4}}}`, text)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func runEval(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runHere(t.Context(), append([]string{"eval"}, args...)...)
}

func TestEval(t *testing.T) {
	url, folder := oracle(t), t.TempDir()
	data, results := filepath.Join(folder, "q.jsonl"), filepath.Join(folder, "r.jsonl")
	text := `{"question":"1 plus 2","answer":"3"}` + "\n" + `{"question":"2 plus 2","answer":"5"}`
	write(t, data, text)
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

// GPQA from a CSV file: three questions, two of which the fake server knows, in any order of
// choices.
func TestEvalGPQA(t *testing.T) {
	url, data := oracle(t), filepath.Join(t.TempDir(), "q.csv")
	text := "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3\n" +
		"sum: 1 plus 2,is 3,is 4,is 5,is 6\nsum: 7 plus 8,is 15,is 14,is 13,is 12\n" +
		"sum: 2 plus 2,is 5,is 4,is 3,is 2\n"
	write(t, data, text)
	for _, seed := range []string{"1", "2", "3"} {
		code, out, errs := runEval(t, "gpqa", "--base-url", url, "--data", data, "--attempts", "8",
			"--reasoning-effort", "high", "--seed", seed)
		lines := strings.Split(out, "\n")
		if code != 0 || errs != "" || len(lines) != 4 || !strings.HasPrefix(strings.Join(
			strings.Fields(lines[1]), " "), "high 66.7 ±65.3 70.9 24 0 0 ") {
			t.Errorf("%d %s%s", code, out, errs)
		}
	}
}

// A server that never calls a tool: all four rows are there, every run with its reason.
func TestEvalCompat(t *testing.T) {
	url := oracle(t)
	code, out, errs := runEval(t, "compat", "--base-url", url, "-k", "2", "--json")
	var m struct {
		K    int
		Rows []struct {
			API                   string
			Stream                bool
			Runs, Passed, Invalid int
			Why                   map[string]int
		}
	}
	if err := json.Unmarshal([]byte(out), &m); code != 0 || err != nil || m.K != 2 ||
		len(m.Rows) != 4 {
		t.Fatalf("%d %v %s%s", code, err, out, errs)
	}
	for i, r := range m.Rows {
		why := 0
		for _, n := range r.Why {
			why += n
		}
		if r.API != []string{"responses", "chat"}[i/2] || r.Stream != (i%2 == 1) || r.Runs != 60 ||
			r.Passed != 0 || why != 60 {
			t.Errorf("%+v", r)
		}
	}
	code, out, errs = runEval(t, "compat", "--base-url", url)
	if lines := strings.Split(out, "\n"); code != 0 || len(lines) != 6 ||
		!strings.HasPrefix(lines[0], "API") || !strings.Contains(lines[1], "0.0 %") ||
		!strings.Contains(errs, " x ") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// --fetch openai gets the questions with curl, from OpenAI's addresses and no other.
func TestEvalFetchesOpenAIs(t *testing.T) {
	folder := t.TempDir()
	args := filepath.Join(folder, "args")
	write(t, filepath.Join(folder, "curl"), "#!/bin/sh\necho \"$@\" > "+args+
		"\ncat <<'E'\n"+`{"question":"1 plus 2","answer":"3^\\circ"}`+"\nE\n")
	if err := os.Chmod(filepath.Join(folder, "curl"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	code, out, errs := runEval(t, "aime25", "--base-url", oracle(t), "--attempts", "1",
		"--reasoning-effort", "low", "--fetch", "openai")
	if code != 0 || !strings.Contains(out, "100.0") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if got, err := os.ReadFile(args); err != nil || string(got) != "-sSfL "+
		"https://huggingface.co/datasets/opencompass/AIME2025/raw/main/aime2025-I.jsonl "+
		"https://huggingface.co/datasets/opencompass/AIME2025/raw/main/aime2025-II.jsonl\n" {
		t.Errorf("%s %v", got, err)
	}
}

func TestEvalRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"gpqa":                         "--data",
		"gpqa --data /nonexistent":     "no such file",
		"gpqa --data . --fetch y":      "Give one",
		"gpqa --fetch false":           "exit status 1",
		"aime25 --fetch echo":          "no questions",
		"gpqa --reasoning-effort none": "low, medium or high",
		"aime25 --temperature 3":       "between 0 and 2",
		"healthbench":                  "gpqa, aime25, compat and harmony",
		"compat -k 0":                  "at least 1",
		"harmony --base-url ftp://x":   "address of a server",
		"harmony --api completions":    "responses or chat",
		"compat x":                     "x",
	} {
		if code, out, errs := runEval(t, strings.Fields(args)...); code != exitUsage ||
			!strings.Contains(errs, want) || out != "" {
			t.Errorf("%s: %d %s%s", args, code, out, errs)
		}
	}
}

// The demo model on our own port: no turn shows a client a fault, and no request is refused.
func TestEvalOfOurPort(t *testing.T) {
	t.Parallel()
	s := askDemo(t)
	for _, api := range []string{"chat", "responses"} {
		code, out, errs := runEval(t, "harmony", "--base-url", s.url, "--turns", "6", "--json",
			"--max-tokens", "100", "--n-threads", "8", "--api", api, "--stream")
		var f struct {
			Turns, Faulty, Failed int
			Why                   map[string]int
		}
		if err := json.Unmarshal([]byte(out), &f); code != 0 || err != nil || f.Turns != 6 ||
			f.Failed != 0 || f.Faulty != 0 {
			t.Errorf("%s: %d %s %s", api, code, out, errs)
		}
	}
}
