// ossrun bench --suite seed: every run of both documents, the published figures, and resuming after
// an interruption.

package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func runSuite(ctx context.Context, url string, args ...string) (code int, stdout, stderr string) {
	return runHere(ctx, append([]string{"bench", "--suite", "seed", "--base-url", url}, args...)...)
}

// shortSuite is one request of a run, of a hundredth of its tokens.
var shortSuite = []string{"--num-prompts", "1", "--token-fraction", "0.01"}

func TestBenchSuite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed.jsonl")
	s := &standIn{}
	interrupt := func() {}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.bodies) == 3 { // of the second random run, whose warm-up it is
			interrupt()
		}
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	interrupt = cancel
	args := append([]string{"--output-file", file, "--json"}, shortSuite...)
	code, out, errs := runSuite(ctx, srv.URL, args...)
	if code != exitInterrupted || out != "" || !strings.Contains(errs, "after the runs in "+file) {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	interrupt = func() {}
	before := len(s.bodies)
	if code, out, errs = runSuite(t.Context(), srv.URL, args...); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	var lengths []float64
	for _, b := range s.bodies[before:] {
		lengths = append(lengths, b["max_tokens"].(float64))
	}
	// the guide's run is already in the file; each other one has its warm-up
	if want := []float64{11, 11, 60, 60, 20, 20}; !slices.Equal(lengths, want) {
		t.Errorf("asked for %v tokens, not %v", lengths, want)
	}
	var report struct {
		Model string
		Runs  []suiteResult
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Runs) != 5 ||
		report.Model != "openai/gpt-oss-20b" {
		t.Fatalf("%v %s", err, out)
	}
	for _, r := range report.Runs {
		left := r.Workload == "sharegpt"
		published := map[bool]int{true: 2}[!left && r.Workload != "guide"]
		if !r.Shortened || left != (r.Skipped != "") || left == (r.Ours["completed"] == 1) ||
			len(r.Published) != published ||
			published > 0 && !strings.Contains(r.Published[0].Name+r.Published[0].Source, "vLLM") {
			t.Errorf("%+v", r)
		}
	}
	before = len(s.bodies)
	code, out, _ = runSuite(t.Context(), srv.URL, append([]string{"--output-file", file},
		shortSuite...)...)
	if code != 0 || len(s.bodies) != before || strings.Count(out, "taken from "+file) != 4 ||
		strings.Contains(out, "(published)") || !strings.Contains(out, "shortened") {
		t.Errorf("%d, %d requests: %s", code, len(s.bodies)-before, out)
	}
}

// A run whose requests all fail is reported and not saved, and the others are made.
func TestBenchSuiteFailures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed.jsonl")
	s, broken := &standIn{}, true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken && r.Method == "POST" {
			http.Error(w, `{"error":{"message":"too long"}}`, http.StatusBadRequest)
			return
		}
		s.ServeHTTP(w, r)
	}))
	defer srv.Close()
	args := append([]string{"--output-file", file}, shortSuite...)
	code, out, errs := runSuite(t.Context(), srv.URL, args...)
	if code != exitFailure || !strings.Contains(errs, "guide: ") ||
		!strings.Contains(errs, "failed runs of the suite: 4") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	broken = false
	if code, out, errs = runSuite(t.Context(), srv.URL, args...); code != 0 ||
		strings.Contains(out, "taken from") || len(s.bodies) != 8 {
		t.Errorf("%d %s%s", code, out, errs)
	}
	for flags, want := range map[string]string{"--suite all": "must be seed",
		"--fraction 0": "above 0", "--suite seed --num-prompts 0": "at least 1", "--suite seed x": "x"} {
		if code, _, text := runHere(t.Context(), append([]string{"bench"},
			strings.Fields(flags)...)...); code != exitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", flags, code, text)
		}
	}
}

// The whole set against the demo model.
func TestBenchSuiteOfOurPort(t *testing.T) {
	t.Parallel()
	code, out, errs := runSuite(t.Context(), askDemo(t).url, shortSuite...)
	if code != 0 || len(regexp.MustCompile(`(?m)^Successful requests +1\.00`).FindAllString(out, -1)) != 4 ||
		strings.Contains(out, "(published)") || !strings.Contains(out, "name no GPU") {
		t.Errorf("%d %s\n%s", code, out, errs)
	}
}
