// Package goldentest reads the goldens of harmony and its tokenizer in tests: gzip-compressed files
// of one JSON object per line.
package goldentest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
)

// Each calls check for every case of a file, in order. A file ending in .gz is unpacked; one
// without cases fails the test.
func Each[T any](t testing.TB, path string, check func(t testing.TB, c T)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := io.Reader(f)
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var c T
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s, line %d: %v", path, n+1, err)
		}
		check(t, c)
	}
	if lines.Err() != nil || n == 0 {
		t.Fatalf("%s: %d cases, %v", path, n, lines.Err())
	}
	t.Logf("%s: %d cases", path, n)
}
