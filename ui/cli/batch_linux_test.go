// ossrun batch whose output is on a full disk: the results that are in it are kept, a cut line is
// no result, and the same command continues.

package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestBatchOnAFullDisk(t *testing.T) {
	const n, atOnce = 40, 8
	disk := hosttest.SmallDisk(t)
	in, out := filepath.Join(t.TempDir(), "in.jsonl"), filepath.Join(disk, "out.jsonl")
	filler := filepath.Join(disk, "filler")
	hosttest.Check(t, os.WriteFile(filler, make([]byte, 2_500_000), 0o600)) // of 3 MiB
	var mu sync.Mutex
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		asked++
		size := 50_000 + asked*100
		mu.Unlock()
		fmt.Fprintf(w, `{"id":"a","text":%q}`, strings.Repeat("x", size))
	}))
	defer srv.Close()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"%d","method":"POST","url":"/v1/completions","body":{}}`+"\n",
			i)
	}
	write(t, in, b.String())
	args := []string{in, out, "--base-url", srv.URL, "--max-concurrency", fmt.Sprint(atOnce)}
	code, errs := runBatch(t, t.Context(), args...)
	if code != exitFailure || !strings.Contains(errs, "no space left on device. Run the same "+
		"command to resume") || strings.Contains(errs, "new") {
		t.Fatalf("%d %s", code, errs)
	}
	text := string(hosttest.Must(os.ReadFile(out))(t))
	whole := strings.Count(text, "\n")
	if rest := text[strings.LastIndex(text, "\n")+1:]; whole == 0 || whole >= n ||
		strings.Contains(rest, "}}") {
		t.Errorf("%d results, and %.100s", whole, rest)
	}
	hosttest.Check(t, os.Remove(filler))
	if code, errs = runBatch(t, t.Context(), args...); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	if all := results(t, out); len(all) != n || asked > n+atOnce+1 {
		t.Errorf("%d results of %d requests", len(all), asked)
	}
}
